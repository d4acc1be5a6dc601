"""Functions that commands share: they read and check options and write files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from train.config import read_config
from train.runtime import files
from train.runtime.errors import UsageError, usage_errors
from wallgo_jax.cli.parsing import Flag
from wallgo_jax.formats import rules_text
from wallgo_jax.game.rules import Rules

if TYPE_CHECKING:
    from train.api.players import Player as NamedPlayer
    from train.players.registry import Player

EXIT_USAGE = 2
MAX_SEED = 2**31
MAX_MOVE_SECONDS = 3600
DEFAULT_RULES = "wallzero-4stone"

ConfigFile = Annotated[
    tyro.conf.Positional[Path | None],
    tyro.conf.arg(metavar="[CONFIG]", help_behavior_hint=""),
]
OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
RulesText = Annotated[
    str,
    tyro.conf.arg(
        metavar="RULES", help_behavior_hint=f"(default: the players' own, else {DEFAULT_RULES})"
    ),
]
"""Rules as `read_rules` takes them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchSettings:
    """Options of every command that lets players meet."""

    rules: RulesText = ""
    """Preset's name, JSON object, or file (JSON or TOML)."""
    opening_plies: int = 2
    """Random plies that all games of an opening start with."""
    seed: int = 0
    """Random seed."""
    config: OptionalFile = None
    """TOML file of a run, whose [heuristics] are the weights of ethen and wjx."""
    transfer: Flag = False
    """Let networks play rules that they were not trained on."""
    move_seconds: float = 60.0
    """Seconds that a program (external:COMMAND) may take for a move; else it loses the game."""
    json: OptionalFile = None
    """File to write the figures to, as JSON."""

    @property
    def inputs(self) -> tuple[str | Path | None, ...]:
        """What may name a file that is read."""
        return self.rules, self.config

    def rules_for(self, names: Iterable[str]) -> Rules:
        """The rules of `--rules`, or else those that the players of these names have learned."""
        return read_rules_for(self.rules, names)

    def player_maker(self, rules: Rules) -> Callable[[str], Player]:
        """Makes players of these rules from names."""
        from train.players import registry

        if not 0 < self.move_seconds <= MAX_MOVE_SECONDS:
            raise UsageError(
                f"--move-seconds {self.move_seconds:g}: allowed: above 0, up to {MAX_MOVE_SECONDS}"
            )
        heuristics = read_config(self.config).heuristics
        return lambda name: registry.make_player(
            name,
            rules,
            heuristics=heuristics,
            transfer=self.transfer,
            move_seconds=self.move_seconds,
        )

    def players_of(self, names: Sequence[str], rules: Rules) -> list[NamedPlayer]:
        """Players of these rules as the interface takes them, the same one for the same name."""
        from train.api.players import Player

        make = self.player_maker(rules)
        made = {
            name: Player(make(name), rules, identity=lambda name=name: name)
            for name in dict.fromkeys(names)
        }
        return [made[name] for name in names]


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


def check_seed(command: str, seed: int) -> None:
    """Refuse a seed that JAX cannot take with a UsageError."""
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"{command}: seed ({seed}) must be from 0 to {MAX_SEED - 1}")


def read_rules(text: str) -> Rules:
    """Rules from a preset's name, a JSON object, or a JSON or TOML file.

    Raises:
      UsageError: what is wrong with them.
    """
    with usage_errors():
        return rules_text.read_rules(text)


def read_rules_for(
    text: str, names: Iterable[str], *, default: str = DEFAULT_RULES, are_networks: bool = False
) -> Rules:
    """The rules of a text, or else those that players have learned, or else a default.

    Args:
      text: as `read_rules` takes it; empty where no rules are said.
      names: of the players.
      default: for players of whom none is trained, as `read_rules` takes it.
      are_networks: the names are of networks, see `train.players.registry.common_rules`.

    Raises:
      UsageError: what is wrong with them, or two players have learned different ones.
    """
    from train.players import registry

    if text:
        return read_rules(text)
    learned = registry.common_rules(names, are_networks=are_networks)
    return read_rules(default) if learned is None else learned


def check_opening(command: str, rules: Rules, plies: int) -> None:
    """Refuse a number of random plies that games cannot begin with by a UsageError."""
    from train.arena import match_programs

    try:
        match_programs.check_opening(rules, plies)
    except UsageError as error:
        raise UsageError(f"{command}: {str(error).removeprefix('match: ')}") from None


def check_games(command: str, rules: Rules, *, games: int, opening_plies: int) -> None:
    """Refuse numbers of games and plies, or rules, that no match of two can have with a
    UsageError."""
    from train.arena.match import MatchOptions
    from train.arena.match_programs import check_opening

    try:
        if rules.players != 2:
            raise ValueError(f"the rules are for {rules.players} players, its games for 2")
        check_opening(rules, opening_plies)
        MatchOptions(games=games, batch=games, opening_plies=opening_plies)
    except ValueError as error:
        raise UsageError(f"{command}: {str(error).removeprefix('match: ')}") from None


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


def write_json(path: Path, data: object) -> None:
    """Write a file of indented JSON, and its directory if it is missing; say so.

    Raises:
      UsageError: it cannot be written.
    """
    with files.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, data)
    say_written(path, "figures")


def say_written(path: Path, what: str) -> None:
    """Tell what was written, and where."""
    print(f"written: {path} ({what})")
