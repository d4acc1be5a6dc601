"""A batch of several rules, sizes and numbers of stones in one grid plays as its boards do without
the others, in a smaller grid; `tests/test_observation.py` looks at the planes of such a batch."""

import numpy as np

from tests.support.game import harness
from tests.support.game.comparison import to_grid, walls_of_words
from wallgo_jax.game.state import NOT_PLACED

GRID, OWN_GRID = 9, 7
VARIANTS = ("hkoi", "3x3-1stone", "playwallgo-2p", "5x5-2stones")
COUNT = 3


def test_a_mixed_batch_is_its_boards_one_by_one(conformance):
    """Every third game ends by an illegal action."""
    games = [game for i in range(COUNT) for game in (conformance[v][20 + i] for v in VARIANTS)]
    rules, played = harness.rules_of(games), [[*game["actions"]] for game in games]
    for own in played[::3]:
        own[len(own) // 2] = harness.PASS

    def replay(boards, grid):
        numbered = [
            [int(to_grid(a, rules[b].size, grid)) if a >= 0 else a for a in played[b]]
            for b in boards
        ]
        return harness.replay([rules[b] for b in boards], numbered, grid=grid)

    together = replay(range(len(games)), GRID)
    for first in range(len(VARIANTS)):
        boards = range(first, len(games), len(VARIANTS))
        alone = replay(boards, OWN_GRID)
        for place, b in enumerate(boards):
            compare_board(alone, together, place, b, rules[b].size, len(played[b]) + 1)


def compare_board(alone, together, place: int, b: int, size: int, end: int) -> None:
    """One board's plies in the smaller grid and in the larger one."""
    for field in ("player", "terminated", "territory", "largest", "rewards"):
        seen, wanted = getattr(together, field)[:end, b], getattr(alone, field)[:end, place]
        np.testing.assert_array_equal(seen, wanted, field)
    position, own = together.state.position, alone.state.position
    for field in ("ply", "walls_left"):
        seen, wanted = getattr(position, field)[:end, b], getattr(own, field)[:end, place]
        np.testing.assert_array_equal(seen, wanted, field)

    cells = own.stones[:end, place]
    moved = np.where(cells == NOT_PLACED, NOT_PLACED, cells // OWN_GRID * GRID + cells % OWN_GRID)
    stones, missing = np.split(position.stones[:end, b], [moved.shape[-1]], axis=-1)
    np.testing.assert_array_equal(stones, moved)
    assert (missing == NOT_PLACED).all()
    walls, own_walls = walls_of_words(position.walls, GRID), walls_of_words(own.walls, OWN_GRID)
    walls = walls[:end, b].reshape(end, 2, 2, GRID, GRID)[..., :OWN_GRID, :OWN_GRID]
    own_walls = own_walls[:end, place].reshape(end, 2, 2, OWN_GRID, OWN_GRID)
    np.testing.assert_array_equal(walls, own_walls)

    numbers = np.arange(size**2 * 53)
    in_grid, in_smaller = to_grid(numbers, size, GRID), to_grid(numbers, size, OWN_GRID)
    seen, wanted = together.actions[:end, b], alone.actions[:end, place]
    np.testing.assert_array_equal(seen[:, in_grid], wanted[:, in_smaller])
    elsewhere = np.delete(seen, in_grid, axis=1)
    over = np.broadcast_to(together.terminated[:end, b, None], elsewhere.shape)
    np.testing.assert_array_equal(elsewhere, over)
