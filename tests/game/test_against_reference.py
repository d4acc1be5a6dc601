"""Random games over random rules: the engine agrees with the slow referee, ply by ply."""

import numpy as np
import pytest

from tests.support.game import harness
from tests.support.game.comparison import mismatches
from tests.support.reference.games import Record, is_decided_by_tie_order, random_games

# Grids of one, two and three words, with one that fills its words; two, three and four players.
SLOW_SHAPES = ((8, 2, 4), (6, 2, 3), (5, 3, 1), (9, 3, 2), (9, 4, 4))


def compare(seed: int, count: int, grid: int, players: int, stones: int, **options) -> list[Record]:
    """Play random games, by default on boards from 3x3 up to the grid, and compare.

    Every fourth board has one stone a player, so that a batch mixes numbers of stones too.
    """
    options = {"sizes": range(3, grid + 1), "players": players, "grid": grid, **options}
    games = random_games(seed, count - count // 4, stones=stones, **options)
    for place, game in enumerate(random_games(seed, count // 4, stones=1, **options)):
        games.insert(4 * place, game)
    shown = harness.replay_records(games)
    assert mismatches(games, shown, grid=grid) == {}
    assert (np.diff(shown.terminated.astype(int), axis=0) >= 0).all()
    return games


@pytest.mark.parametrize(("grid", "players", "stones"), harness.SHAPES)
def test_random_games_agree(grid, players, stones):
    compare(1, 40, grid, players, stones)


def test_tie_rules_agree_in_both_orders():
    orders = (("region", "mover_loses"), ("mover_loses", "region"))
    games = compare(3, 2 * harness.BATCH, 7, 2, 4, sizes=(3,), ties=orders)
    assert sum(map(is_decided_by_tie_order, games)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "players", "stones"), SLOW_SHAPES)
def test_many_random_games_agree(grid, players, stones):
    compare(2, 4 * harness.BATCH, grid, players, stones)
