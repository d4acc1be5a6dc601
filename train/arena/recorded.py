"""Matches that record files keep."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from train.arena.report import match_table
from train.arena.result import MatchResult
from train.runtime.display import Table
from train.runtime.errors import UsageError, usage_errors
from train.runtime.results import Result
from wallgo_jax.formats.sources import LoadedGame, SourceRequest, read_games
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS

_territory = jax.jit(referee.territory)
_largest_region = jax.jit(referee.largest_region)


@dataclasses.dataclass(frozen=True)
class Series(Result):
    """Matches that were read from record files.

    Attributes:
      matches: one for each rule set and group of players.
      unfinished: games that are not over and count in none.
    """

    matches: tuple[MatchResult, ...]
    unfinished: int = 0
    is_interrupted = False

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each match, as its `summary` has it."""
        return [match.summary() for match in self.matches]

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes."""
        return {"matches": self.rows(), "unfinished": self.unfinished}

    def shown(self) -> list[Table]:
        """What `match FILE` prints: a table for each rule set and first player."""
        tables: dict[Any, list[MatchResult]] = {}
        for match in self.matches:
            several = match.names if match.rules.players > 2 else match.first
            tables.setdefault((match.rules, several), []).append(match)
        caption = f"{self.unfinished} games that are not over do not count"
        return [
            match_table(
                each,
                caption=caption if self.unfinished else "",
                has_entrants=each[0].rules.players > 2,
            )
            for each in tables.values()
        ]


def read_series(paths: Sequence[Path]) -> Series:
    """Read the finished games of files as matches, one for each rule set and group of players, from
    the side of the player with the most games in all, of several the one that was read first.

    Players without a name are called by their colours; where all have the same name, it comes
    before the colour.

    Raises:
      UsageError: a file cannot be read, holds no games, or no game of all is over.
    """
    groups: dict[tuple[Rules, frozenset[str]], list[LoadedGame]] = {}
    games_of: Counter[str] = Counter()
    unfinished = 0
    for path in paths:
        with usage_errors():
            loaded = list(read_games(SourceRequest(str(path))))
        for each in loaded:
            if not each.game.is_over:
                unfinished += 1
                continue
            names = _distinct(each.players or COLOURS[: each.game.rules.players])
            # In the order of play: that of a set changes from process to process.
            games_of.update([*dict.fromkeys(names)])
            group = groups.setdefault((each.game.rules, frozenset(names)), [])
            group.append(each._replace(players=names))
    ranks = {name: rank for rank, (name, _) in enumerate(games_of.most_common())}
    if not groups:
        raise UsageError(f"series: none of {unfinished} games is over")
    matches = [
        _match_of(rules, sorted(names, key=lambda name: ranks[name]), games)
        for (rules, names), games in groups.items()
    ]
    return Series(tuple(matches), unfinished)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, behind which stands the colour where one player has all seats."""
    if len({*names}) > 1:
        return tuple(names)
    return tuple(f"{name} as {colour}" for name, colour in zip(names, COLOURS, strict=False))


def _match_of(rules: Rules, names: list[str], loaded: Sequence[LoadedGame]) -> MatchResult:
    games = [each.game for each in loaded]
    ends = [game.states[-1] for game in games]
    return MatchResult(
        names=tuple(names),
        rules=rules,
        seats=np.array([[names.index(name) for name in each.players or ()] for each in loaded]),
        rewards=np.array([game.rewards for game in games]),
        cells=np.array(list(map(_territory, ends))),
        regions=np.array(list(map(_largest_region, ends))),
        opening=np.arange(len(games)),
        games=tuple(game.actions for game in games),
    )
