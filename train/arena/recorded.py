"""Matches that record files keep, such as a person's series of games on the page."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from train.arena.result import MatchResult
from train.runtime.errors import usage_errors
from wallgo_jax.cli.sources import LoadedGame, SourceRequest, read_games
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS


def read_matches(paths: Sequence[Path]) -> tuple[list[MatchResult], int]:
    """Read the finished games of files as matches, one for each rule set and group of players, from
    the side of the player with the most games in all.

    Players without a name are called by their colours.

    Returns:
      the matches, and the number of games that are not over and count in none.

    Raises:
      UsageError: a file cannot be read, or holds no games.
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
            names = each.players or COLOURS[: each.game.rules.players]
            games_of.update(set(names))
            group = groups.setdefault((each.game.rules, frozenset(names)), [])
            group.append(each._replace(players=tuple(names)))
    ranks = {name: rank for rank, (name, _) in enumerate(games_of.most_common())}
    return [
        _match_of(rules, sorted(names, key=lambda name: ranks[name]), games)
        for (rules, names), games in groups.items()
    ], unfinished


def _match_of(rules: Rules, names: list[str], loaded: Sequence[LoadedGame]) -> MatchResult:
    games = [each.game for each in loaded]
    ends = [game.states[-1] for game in games]
    return MatchResult(
        names=tuple(names),
        rules=rules,
        seats=np.array([[names.index(name) for name in each.players or ()] for each in loaded]),
        rewards=np.array([game.rewards for game in games]),
        cells=np.array([_territory(state) for state in ends]),
        regions=np.array([_largest_region(state) for state in ends]),
        opening=np.arange(len(games)),
        games=tuple(game.actions for game in games),
    )


_territory, _largest_region = jax.jit(referee.territory), jax.jit(referee.largest_region)
