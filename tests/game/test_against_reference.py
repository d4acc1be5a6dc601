"""Random games over random rules: the engine agrees with the slow referee, ply by ply."""

import numpy as np
import pytest

from tests.support.game import harness
from tests.support.game.comparison import mismatches
from tests.support.reference.games import Record, is_decided_by_tie_order, random_games

# Grid, players, stones: the shapes of the conformance games, whose programs are at hand.
SHAPES = ((3, 2, 1), (5, 2, 2), (7, 2, 4), (7, 3, 2), (7, 4, 2))
SLOW_SHAPES = ((6, 2, 3), (8, 2, 4), (9, 2, 4))
OTHER_SHAPES = (
    *((4, 2, 1), (9, 2, 3), (5, 2, 4)),
    *((5, 3, 1), (9, 3, 2), (8, 3, 4)),
    *((6, 4, 1), (9, 4, 4)),
)


def compare(seed: int, count: int, grid: int, players: int, stones: int, **options) -> list[Record]:
    """Play random games, by default on boards from 3x3 up to the grid, and compare."""
    options = {"sizes": range(3, grid + 1), **options}
    games = random_games(seed, count, grid=grid, players=players, stones=stones, **options)
    shown = harness.replay(
        harness.rules_of([game._asdict() for game in games]),
        [game.actions for game in games],
        grid=grid,
    )
    assert mismatches(games, shown, grid=grid) == {}
    return games


@pytest.mark.parametrize(
    ("grid", "players", "stones"),
    [*SHAPES, *(pytest.param(*shape, marks=pytest.mark.slow) for shape in SLOW_SHAPES)],
)
def test_random_games_agree(grid, players, stones):
    compare(1, 32, grid, players, stones)


def test_tie_rules_agree_in_both_orders():
    orders = (("region", "mover_loses"), ("mover_loses", "region"))
    games = compare(3, 3 * harness.BATCH, 7, 2, 4, sizes=(3, 4), ties=orders)
    assert sum(map(is_decided_by_tie_order, games)) >= 3


@pytest.mark.slow
def test_two_thousand_random_games_agree():
    games = []
    for grid, players, stones in OTHER_SHAPES:
        games += compare(2, 4 * harness.BATCH, grid, players, stones)
    assert len(games) >= 2000


def in_larger_grid(action: int, size: int, grid: int) -> int:
    """The id, in a larger grid, of an action on a board of its own size."""
    cell, play = (action - size**2 * 52, None) if action >= size**2 * 52 else divmod(action, 52)
    row, column = divmod(cell, size)
    cell = row * grid + column
    return grid**2 * 52 + cell if play is None else cell * 52 + play


@pytest.mark.parametrize("variant", ["hkoi", "playwallgo-2p", "8x8"])
def test_board_in_a_larger_grid_plays_as_alone(conformance, variant):
    games = conformance[variant][:20]
    rules, size, grid = harness.rules_of(games), games[0]["rules"]["size"], 9
    alone = harness.replay(rules, [game["actions"] for game in games], grid=size)
    larger = harness.replay(
        rules,
        [[in_larger_grid(action, size, grid) for action in game["actions"]] for game in games],
        grid=grid,
    )
    for field in ("player", "terminated", "territory", "largest", "rewards"):
        np.testing.assert_array_equal(getattr(larger, field), getattr(alone, field))
    public = np.array([in_larger_grid(action, size, grid) for action in range(size**2 * 53)])
    everywhere = larger.actions.all(axis=-1)
    np.testing.assert_array_equal(everywhere, larger.terminated)
    np.testing.assert_array_equal(larger.actions[..., public], alone.actions)
    outside = np.setdiff1d(np.arange(grid**2 * 53), public)
    assert not larger.actions[~everywhere][:, outside].any()
    cells = public[-(size**2) :] - grid**2 * 52
    np.testing.assert_array_equal(larger.reach[..., cells], alone.reach)
    assert larger.reach.sum() == alone.reach.sum()
