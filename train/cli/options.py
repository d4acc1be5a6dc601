"""Options that commands share, their checks before the work, and the end of a command."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro

from train.api.arguments import GROWN, PICTURE, READ, WRITTEN, FileUse, arg
from train.api.signatures import check_effects, checked, names_in
from train.config import SHIPPED
from train.runtime import files
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import AtLeastOne
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.runtime.showing import is_unwritten, sparing, tell

EXIT_USAGE = 2

Positional = tyro.conf.Positional


ConfigFile = Annotated[Positional[Path | None], arg("[CONFIG]", ""), READ]
Written = Annotated[Path | None, WRITTEN, arg("FILE", "")]
Picture = Annotated[Path | None, PICTURE, arg("FILE", "")]
Json = Annotated[Written, tyro.conf.arg(help="File to write the figures to, as JSON.")]
Plot = Annotated[Picture, tyro.conf.arg(help="File to draw the figures into: .png, .svg or .pdf.")]
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
    """Check the options of a command by their types and rules, and its files.

    Raises:
      UsageError: an option has no effect or is not allowed, a file cannot be written or has two
        uses.
    """
    kind = type(command)
    fields = dataclasses.fields(command)
    values = {field.name: getattr(command, field.name) for field in fields}
    every = typing.get_type_hints(kind, include_extras=True)
    hints = {name: every[name] for name in values}
    if not hasattr(kind, "verb"):  # A verb checks its arguments itself.
        name = word_of(kind)
        try:
            checked(kind, values)
        except UsageError as error:
            option, _, wrong = str(error).partition(":")
            raise UsageError(f"{name}: {_spelled(option, hints)}:{wrong}") from None
    defaults = {field.name: field.default for field in fields}
    with usage_errors(word_of(kind)):
        check_effects(values, defaults, hints, lambda option: _spelled(option, hints))
    uses: dict[FileUse, list[Any]] = {use: [] for use in FileUse}
    for name, value in values.items():
        for use in getattr(hints[name], "__metadata__", ()):
            if isinstance(use, FileUse):
                uses[use] += value if isinstance(value, tuple) else [value]
    for picture in filter(None, uses[PICTURE]):
        from train.metrics.figure import check_format

        check_format(picture)
    outputs = *uses[WRITTEN], *uses[PICTURE]
    check_files(*outputs, inputs=uses[READ])
    # A file that grows loses nothing where it is read, too.
    check_files(*outputs, *uses[GROWN])


def word_of(kind: type) -> str:
    """The word of a command's class."""
    return kind.__name__.removesuffix("Command").lower()


def _spelled(option: str, hints: dict[str, Any]) -> str:
    """A field as on the command line: `RUNS` where its place says what it is, else `--some-key`,
    with its value after an equals sign."""
    name, equals, value = option.partition("=")
    field = name.partition(".")[0]
    if Positional in getattr(hints.get(field), "__metadata__", ()):
        return field.upper()
    return f"--{name.replace('_', '-')}{' ' if equals else ''}{value}"


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
