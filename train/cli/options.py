"""What commands have in common: options read and checked, files written."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from train import registry
from train.arena.result import MatchResult
from train.config import read_config
from train.loop import run_directory
from train.players.basic import Player
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130
MAX_SEED = 2**31


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchSettings:
    """What any command that lets players meet asks for."""

    rules: str = "wallzero-4stone"
    """Name of a preset, or custom rules as a JSON object."""
    opening_plies: int = 2
    """Random plies that both games of a pair start with."""
    seed: int = 0
    """Of everything random."""
    config: Path | None = None
    """TOML file of a run, whose [heuristics] weigh ethen and wjx."""
    transfer: bool = False
    """Let networks play rules that they have not learned."""
    json: Path | None = None
    """Write the figures to this file as well."""

    def player_maker(self, rules: Rules) -> Callable[[str], Player]:
        """From a name to a player of these rules."""
        heuristics = read_config(self.config).heuristics
        return lambda name: registry.make_player(
            name, rules, heuristics=heuristics, transfer=self.transfer
        )


def check_seed(command: str, seed: int) -> None:
    """Refuse a seed that JAX cannot take with a UsageError."""
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"{command}: seed ({seed}) must be from 0 to {MAX_SEED - 1}")


def read_rules(text: str) -> Rules:
    """A preset by name, or custom rules from a JSON object.

    Raises:
      UsageError: what is wrong with them.
    """
    try:
        fields = json.loads(text) if text.startswith("{") else None
        return rules_lib.named(text) if fields is None else Rules.from_dict(fields)
    except ValueError as error:
        raise UsageError(str(error)) from None


def write_records(path: Path, result: MatchResult, *, append: bool = False) -> None:
    """A match's games, a JSON object a line, in place of what the file held or behind it.

    Raises:
      UsageError: the file cannot be written.
    """
    names = (result.first, result.second)
    games = zip(result.games, result.first_is_red, result.outcome, strict=True)
    lines = (
        records.Record(
            rules=result.rules,
            actions=game,
            players=names if is_red else names[::-1],
            result=(float(won), -float(won)) if is_red else (-float(won), float(won)),
        )
        for game, is_red, won in games
    )
    try:
        records.write(path, lines, append=append)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def write_json(path: Path, data: object) -> None:
    """A file of indented JSON; the directory is made.

    Raises:
      UsageError: it cannot be written.
    """
    run_directory.make_directory(path.parent)
    try:
        run_directory.write_json(path, data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
