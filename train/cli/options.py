"""Functions that commands share: they read and check options and write files."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from train.config import SHIPPED, read_config
from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.api.players import Player
    from train.api.results import Result
    from wallgo_jax.game.rules import Rules

EXIT_USAGE = 2
MAX_MOVE_SECONDS = 3600
DEFAULT_RULES = "wallzero-4stone"


Positional = tyro.conf.Positional


def arg(metavar: str | None = None, hint: str | None = None) -> Any:
    """How a help page names an option's value, and its default in words; empty for none."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)


ConfigFile = Annotated[
    Positional[Path | None],
    arg("[CONFIG]", ""),
]
OptionalFile = Annotated[Path | None, arg("FILE", "")]
Json = Annotated[OptionalFile, tyro.conf.arg(help="File to write the figures to, as JSON.")]
Records = Annotated[
    OptionalFile,
    tyro.conf.arg(
        help="File to write the games to, a JSON object a line; compressed if it ends in .gz."
    ),
]
Seed = Annotated[int, tyro.conf.arg(help="Random seed.")]
WeightsFile = Annotated[
    OptionalFile,
    tyro.conf.arg(help="TOML file of a run, whose [heuristics] are the weights of ethen and wjx."),
]
RulesText = Annotated[
    str,
    tyro.conf.arg(
        metavar="RULES",
        help="Preset's name, JSON object, or file (JSON or TOML).",
        help_behavior_hint=f"(default: the players' own, else {DEFAULT_RULES})",
    ),
]
"""Rules as `train.api.configs.read_rules` takes them."""
SourceRules = Annotated[
    str,
    tyro.conf.arg(
        metavar="RULES",
        help="Rules of moves and codes: preset's name, JSON object, or file (JSON or TOML).",
    ),
]
GameNumber = Annotated[int, tyro.conf.arg(help="Number of the game in a record file, from 1.")]
ShippedPlayer = Annotated[
    Positional[str],
    arg("[PLAYER]", f"(default: {SHIPPED})"),
]


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
    move_seconds: float = 60.0
    """Seconds that a program (external:COMMAND) may take for a move; else it loses the game."""
    json: Json = None

    @property
    def inputs(self) -> tuple[str | Path | None, ...]:
        """What may name a file that is read."""
        return self.rules, self.config

    @property
    def of_players(self) -> dict[str, Any]:
        """Options of `train.make_player`."""
        if not 0 < self.move_seconds <= MAX_MOVE_SECONDS:
            raise UsageError(
                f"--move-seconds {self.move_seconds:g}: allowed: above 0, up to {MAX_MOVE_SECONDS}"
            )
        return {
            "heuristics": read_config(self.config).heuristics,
            "transfer": self.transfer,
            "move_seconds": self.move_seconds,
        }

    def players_of(self, names: Sequence[str], rules: Rules | None = None) -> list[Player]:
        """Players of some rules: those that are asked for, or that one of them has learned."""
        from train.api.players import make_players

        return make_players(names, rules or self.rules or None, **self.of_players)


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


def check_least(command: Any, **least: float) -> None:
    """Refuse options below their least values with a UsageError."""
    for name, value in least.items():
        if getattr(command, name) < value:
            raise UsageError(
                f"{type(command).__name__.lower()}: {name} ({getattr(command, name)}) must be at "
                f"least {value}"
            )


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
      outputs: files to write, each of which must be another one.
      inputs: files that are read, or text that may name one; none may be an output.

    Raises:
      UsageError: which, and why.
    """
    named = [path for path in outputs if path is not None]
    _check_apart(named, [each for each in inputs if each is not None])
    for path in named:
        files.check_writable(path)


def _check_apart(outputs: Sequence[Path], inputs: Sequence[str | Path]) -> None:
    """Refuse outputs of which one would take the place of another, or of an input."""
    read = {os.path.realpath(each) for each in inputs if os.path.isfile(each)}
    written: set[str] = set()
    for path in outputs:
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # A pipe or a device, which takes all that comes.
        place = os.path.realpath(path)
        if place in read:
            raise UsageError(f"{path}: is read, so it cannot be written to: name another file")
        if place in written:
            raise UsageError(f"{path}: is named for two outputs: name another file for one of them")
        written.add(place)


def check_pictures(*paths: Path | None) -> None:
    """Refuse files of plots as `check_files` does, and those whose ending names no format."""
    from train.metrics.plot_style import check_format

    for path in paths:
        if path is not None:
            check_format(path)
    check_files(*paths)


def show(result: Result) -> None:
    """Print a result of the interface."""
    from train.runtime.display import Display

    console = Display().console
    for shown in result.shown():
        console.print(shown, highlight=False)


def exit_code(result: Result, kept: str) -> int:
    """The exit code of a command; says what is kept of work that a signal ended."""
    if not result.is_interrupted:
        return 0
    print(f"stopped: {kept}", file=sys.stderr)
    return EXIT_INTERRUPTED


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


def refuse_unused(command: Any, *names: str, where: str) -> None:
    """Refuse options that were given although they have no effect.

    Args:
      command: as it was parsed, a dataclass whose fields are its options.
      names: fields of options that have no effect.
      where: they have none, such as `with --check`.

    Raises:
      UsageError: which option was given, and where it has no effect.
    """
    for field in dataclasses.fields(command):
        if field.name in names and getattr(command, field.name) != field.default:
            option = field.name.replace("_", "-")
            raise UsageError(
                f"{type(command).__name__.lower()}: --{option} has no effect {where}; leave it out"
            )
