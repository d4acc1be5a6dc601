"""Options that commands share, their checks before the work, and the end of a command."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from train.api.arguments import (
    DEFAULT_RULES,
    PICTURE,
    READ,
    WRITTEN,
    File,
    FileUse,
    Written,
    arg,
    checked,
)
from train.api.arguments import AtLeastOne as AtLeastOne
from train.api.arguments import Count as Count
from train.api.arguments import RandomSeed as RandomSeed
from train.api.arguments import Read as Read
from train.api.arguments import Seed as Seed
from train.api.arguments import WeightsFile as WeightsFile
from train.config import SHIPPED
from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.runtime.showing import is_unwritten, sparing, tell

EXIT_USAGE = 2

Positional = tyro.conf.Positional


class Rule(NamedTuple):
    """An option has no effect with, or without, any of some others."""

    is_with: bool
    others: tuple[str, ...]


def only(*options: str) -> Rule:
    """The option has no effect without one of some options, such as `late` or `what=search`."""
    return Rule(False, options)


def without(*options: str) -> Rule:
    """The option has no effect with any of some options."""
    return Rule(True, options)


ConfigFile = Annotated[Positional[Path | None], arg("[CONFIG]", ""), READ]
Picture = Annotated[File, PICTURE]
Json = Annotated[Written, tyro.conf.arg(help="File to write the figures to, as JSON.")]
RulesText = Annotated[
    str,
    READ,
    tyro.conf.arg(
        metavar="RULES",
        help="Preset's name, JSON object, or file (JSON or TOML).",
        help_behavior_hint=f"(default: the players' own, else {DEFAULT_RULES})",
    ),
]
"""Rules as `train.api.configs.read_rules` takes them."""
SourceRules = Annotated[
    str,
    READ,
    tyro.conf.arg(
        metavar="RULES",
        help="Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML).",
    ),
]
GameNumber = Annotated[
    AtLeastOne, tyro.conf.arg(help="Number of the game in a record file, from 1.")
]
ShippedPlayer = Annotated[Positional[str], arg("[PLAYER]", f"(default: {SHIPPED})")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """Options that commands spell otherwise than the interface's calls."""

    rules: RulesText = ""
    json: Json = None

    def arguments(self, record: type) -> dict[str, Any]:
        """The keyword arguments of a call whose options are a record: all that have a value."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(record)}
        return {name: value for name, value in values.items() if value not in (None, "")}


def changed_options(command: Any, *left_out: str) -> list[str]:
    """The options of a command that are not by default, as words of the command line.

    Args:
      command: a dataclass whose fields are its options.
      left_out: fields that are no options.
    """
    words = []
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if field.name not in left_out and value != field.default:
            values = value if isinstance(value, tuple) else () if value is True else (value,)
            words += [f"--{field.name.replace('_', '-')}", *map(str, values)]
    return words


def check(command: Any) -> None:
    """Check the options of a command by their types and rules.

    Raises:
      UsageError: an option has no effect or is not allowed, a file cannot be written or has two
        uses.
    """
    name, kind = type(command).__name__.lower(), type(command)
    values = {field.name: getattr(command, field.name) for field in dataclasses.fields(command)}
    hints = typing.get_type_hints(kind, include_extras=True)
    try:
        checked(kind, values)
    except UsageError as error:
        option, _, wrong = str(error).partition(":")
        raise UsageError(f"{name}: {_spelled(option, hints)}:{wrong}") from None
    uses: dict[FileUse, list[Any]] = {use: [] for use in FileUse}
    for field in dataclasses.fields(command):
        value = values[field.name]
        for rule in getattr(hints[field.name], "__metadata__", ()):
            if isinstance(rule, FileUse):
                uses[rule] += value if isinstance(value, tuple) else [value]
            elif isinstance(rule, Rule) and value != field.default:
                given = [other for other in rule.others if _is_given(command, other)]
                if bool(given) == rule.is_with:
                    others = given or rule.others
                    words = " or ".join(_spelled(each, hints) for each in others)
                    option, how = _spelled(field.name, hints), "with" if given else "without"
                    raise UsageError(f"{name}: {option} has no effect {how} {words}; leave it out")
    for picture in filter(None, uses[PICTURE]):
        from train.metrics.figure import check_format

        check_format(picture)
    check_files(*uses[WRITTEN], *uses[PICTURE], inputs=uses[READ])


def _spelled(option: str, hints: dict[str, Any]) -> str:
    """A field as on the command line: `RUNS` where its place says what it is, else `--some-key`,
    with its value after an equals sign."""
    name, equals, value = option.partition("=")
    field = name.partition(".")[0]
    if Positional in getattr(hints.get(field), "__metadata__", ()):
        return field.upper()
    return f"--{name.replace('_', '-')}{' ' if equals else ''}{value}"


def _is_given(command: Any, option: str) -> bool:
    """Whether an option is not by default, or `what=search` has that among its values."""
    name, has_value, value = option.partition("=")
    given, defaults = (
        getattr(command, name),
        {x.name: x.default for x in dataclasses.fields(command)},
    )
    return value in names_in(given) if has_value else given != defaults[name]


def names_in(text: str) -> tuple[str, ...]:
    """The names of an option, with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers_of(option: str, text: str) -> tuple[int, ...]:
    """The numbers of an option, with commas between; none if it is empty."""
    names = names_in(text)
    if not all(name.isdecimal() and int(name) > 0 for name in names) or (text and not names):
        raise UsageError(f"--{option} {text!r} must be numbers from 1 on, with commas")
    return tuple(map(int, names))


def check_files(*outputs: Path | None, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse files that cannot be written, before the work whose results go there.

    Args:
      outputs: files to write, each of which must be another one; pipes and devices take all.
      inputs: files that are read, or text that may name one; none may be an output.

    Raises:
      UsageError: which, and why.
    """
    read = {os.path.realpath(each) for each in inputs if each is not None and os.path.isfile(each)}
    named, written = [path for path in outputs if path is not None], set[str]()
    for path in named:
        place = os.path.realpath(path)
        if os.path.exists(path) and not os.path.isfile(path):
            continue
        if place in read:
            raise UsageError(f"{path}: is read, so it cannot be written to: name another file")
        if place in written:
            raise UsageError(f"{path}: is named for two outputs: name another file for one of them")
        written.add(place)
    for path in named:
        files.check_writable(path)


def finish(result: Any, json: Path | None = None, *written: tuple[Path | None, str]) -> int:
    """Print a result of the interface, say which of its files are written, and write its figures.

    Args:
      result: of `train.api.results.Result`.
      json: file of the figures, if one is named.
      written: files that are written already, with what they hold.

    Returns:
      The exit code.
    """
    from train.runtime.display import Display

    console = Display().console
    for shown in result.shown():
        console.print(shown, highlight=False)
    for path, what in written:
        if path is not None:
            say_written(path, what)
    write_json(json, result.summary())
    return exit_code(result.is_interrupted, result.kept)


def exit_code(is_interrupted: bool, kept: str) -> int:
    """The exit code of finished work, or of work that a signal ended, of which it says what is
    kept."""
    if is_interrupted:
        tell(f"stopped: {kept}")
    return EXIT_INTERRUPTED if is_interrupted else 0


def write_json(path: Path | None, data: object) -> None:
    """Write a file of indented JSON, if one is named, and its directory if it is missing; say so,
    or why it cannot be written."""
    if path is None:
        return
    with sparing(path, "the figures are those above"):
        files.write_json(path, data)
    say_written(path, "figures")


def say_written(path: Path, what: str) -> None:
    """Tell what was written, and where, unless that failed."""
    if not is_unwritten(path):
        print(f"written: {path} ({what})")
