"""Options that commands share, their checks before the work, and the end of a command."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from train.config import SHIPPED, read_config
from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.api.players import Player
    from wallgo_jax.game.rules import Rules

EXIT_USAGE = 2
DEFAULT_RULES = "wallzero-4stone"


Positional = tyro.conf.Positional


def arg(metavar: str | None = None, hint: str | None = None) -> Any:
    """How a help page names an option's value, and its default in words; empty for none."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)


class Rule(NamedTuple):
    """What is asked of an option before its command runs."""

    kind: str
    of: tuple[Any, ...] = ()


def only(*options: str) -> Rule:
    """The option has no effect without one of some options, such as `late` or `what=search`."""
    return Rule("without", options)


def without(*options: str) -> Rule:
    """The option has no effect with any of some options."""
    return Rule("with", options)


def least(number: float, most: float = math.inf) -> Rule:
    """The option, or each of its values, has a least and a largest value."""
    return Rule("range", (number, most))


READ, WRITTEN, PICTURE = Rule("read"), Rule("written"), Rule("picture")
"""The option is a file; or text that may name one that is read."""

ConfigFile = Annotated[Positional[Path | None], arg("[CONFIG]", ""), READ]
OptionalFile = Annotated[Path | None, arg("FILE", "")]
OutputFile = Annotated[OptionalFile, WRITTEN]
Picture = Annotated[OptionalFile, PICTURE]
Json = Annotated[OutputFile, tyro.conf.arg(help="File to write the figures to, as JSON.")]
Records = Annotated[
    OutputFile,
    tyro.conf.arg(
        help="File to write the games to, a JSON object a line; compressed if it ends in .gz."
    ),
]
SEED = least(0, 2**31 - 1)
Seed = Annotated[int, SEED, tyro.conf.arg(help="Random seed.")]
WeightsFile = Annotated[
    OptionalFile,
    READ,
    tyro.conf.arg(help="TOML file of a run, whose [heuristics] are the weights of ethen and wjx."),
]
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
GameNumber = Annotated[int, tyro.conf.arg(help="Number of the game in a record file, from 1.")]
ShippedPlayer = Annotated[Positional[str], arg("[PLAYER]", f"(default: {SHIPPED})")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchSettings:
    """Options of every command that lets players meet."""

    rules: RulesText = ""
    opening_plies: int = 2
    """Random plies that all games of an opening start with."""
    seed: Seed = 0
    config: WeightsFile = None
    transfer: Flag = False
    """Let networks play rules that they were not trained on."""
    move_seconds: Annotated[float, least(0.001, 3600)] = 60.0
    """Seconds that a program (external:COMMAND) may take for a move; else it loses the game."""
    json: Json = None

    def players_of(self, names: Sequence[str], rules: Rules | None = None) -> list[Player]:
        """Players of some rules: those that are asked for, or that one of them has learned."""
        from train.api.players import make_players

        return make_players(
            names,
            rules or self.rules or None,
            heuristics=read_config(self.config).heuristics,
            transfer=self.transfer,
            move_seconds=self.move_seconds,
        )


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
    """Check the options of a command by their rules.

    Raises:
      UsageError: an option has no effect or is too small, a file cannot be written or has two uses.
    """
    hints = typing.get_type_hints(type(command), include_extras=True)
    outputs, inputs = list[Any](), list[Any]()
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        for rule in getattr(hints[field.name], "__metadata__", ()):
            if not isinstance(rule, Rule):
                continue
            if complaint := _complaint(command, rule, value, field.default):
                option = field.name.replace("_", "-")
                raise UsageError(f"{type(command).__name__.lower()}: --{option} {complaint}")
            values: list[Any] = [*value] if isinstance(value, tuple) else [value]
            if rule.kind == "read":
                inputs += values
            elif rule.kind in ("written", "picture"):
                outputs += values
            if rule.kind == "picture" and value is not None:
                from train.metrics.plot_style import check_format

                check_format(*values)
    check_files(*outputs, inputs=inputs)


def _complaint(command: Any, rule: Rule, value: Any, default: Any) -> str:
    """What is wrong with the value of an option, if anything is."""
    kind, of = rule
    if kind == "range" and value is not None:
        for each in value if isinstance(value, tuple) else (value,):
            if not of[0] <= each <= of[1] or each == math.inf:
                most = "" if of[1] == math.inf else f", at most {of[1]}"
                return f"({each}) must be at least {of[0]}{most}"
    if kind in ("with", "without") and value != default:
        given = [other for other in of if _is_given(command, other)]
        if bool(given) == (kind == "with"):
            words = [f"--{each.replace('_', '-').replace('=', ' ')}" for each in given or of]
            return f"has no effect {kind} {' or '.join(words)}; leave it out"
    return ""


def _is_given(command: Any, option: str) -> bool:
    """Whether an option is not by default, or `what=search` has that among its values."""
    name, has_value, value = option.partition("=")
    given = getattr(command, name)
    return value in names_of(given) if has_value else given != type(command).__dict__.get(name)


def names_of(text: str) -> tuple[str, ...]:
    """The names of an option, with commas between."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers_of(option: str, text: str) -> tuple[int, ...]:
    """The numbers of an option, with commas between; none if it is empty."""
    names = names_of(text)
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


def finish(
    result: Any,
    json: Path | None = None,
    *written: tuple[Path | None, str],
    kept: str = "the same command starts anew",
) -> int:
    """Print a result of the interface, say which of its files are written, and write its figures.

    Args:
      result: with `shown`, `summary` and `is_interrupted`.
      json: file of the figures, if one is named.
      written: files that are written already, with what they hold.
      kept: what is said of work that a signal ended.

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
    return exit_code(result.is_interrupted, kept)


def exit_code(is_interrupted: bool, kept: str) -> int:
    """The exit code of finished work, or of work that a signal ended, of which it says what is
    kept."""
    if is_interrupted:
        print(f"stopped: {kept}", file=sys.stderr)
    return EXIT_INTERRUPTED if is_interrupted else 0


def write_json(path: Path | None, data: object) -> None:
    """Write a file of indented JSON, if one is named, and its directory if it is missing; say so.

    Raises:
      UsageError: it cannot be written.
    """
    if path is None:
        return
    with files.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, data)
    say_written(path, "figures")


def say_written(path: Path, what: str) -> None:
    """Tell what was written, and where."""
    print(f"written: {path} ({what})")
