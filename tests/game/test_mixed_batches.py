"""A batch of several rules, sizes and numbers of stones in one grid plays as its boards do alone,
each in its own."""

import functools
from typing import Any, NamedTuple

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.game.test_against_reference import in_larger_grid
from tests.support.game import harness
from tests.support.game.strategies import rule_sets
from wallgo_jax import observation
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import NOT_PLACED

PLIES = 80


class Family(NamedTuple):
    """Rules that may share a batch: all presets of a shape, and boards of several sizes, those of
    `sizes` with fewer stones."""

    grid: int
    players: int
    stones: int
    sizes: tuple[int, ...]
    fewer: int  # stones of these

    def presets(self) -> list[Rules]:
        """The published rules of this shape."""
        shape = self.players, self.stones
        return [rules for rules in PRESETS.values() if (rules.players, rules.stones) == shape]


FAMILIES = (Family(9, 2, 4, (3,), 2), Family(8, 3, 2, (6,), 1), Family(9, 4, 2, (3,), 2))


class Seen(NamedTuple):
    """A board's values before a ply, and the rewards of the ply."""

    player: Any  # int
    terminated: Any  # bool
    ply: Any  # int
    walls_left: Any  # int[P]
    stones: Any  # int[P, S]
    territory: Any  # int[P]
    rewards: Any  # float[P]
    actions: Any  # bool[|A|]
    planes: Any  # bool[grid, grid, C]


def show_and_step(state, action, legal, *, planes: str, has_playable: bool):
    """One ply of a public action, legal or not, on a board of these legal ones."""
    after, rewards = referee.step(state, actions.slot_of_action(state, action))
    return after, Seen(
        player=state.position.player,
        terminated=state.position.terminated,
        ply=state.position.ply,
        walls_left=state.position.walls_left,
        stones=state.position.stones,
        territory=referee.territory(state),
        rewards=rewards,
        actions=legal,
        planes=observation.observe(state, planes=planes, has_playable=has_playable),
    )


@functools.cache
def play_alone(size: int, planes: str):
    """A jitted `(state, bits [T], slips [T]) -> (actions, Seen) [T]` of one board in its own grid.

    A slip is an id drawn from all, so mostly an illegal one.
    """

    def ply(state, drawn):
        bits, slips = drawn
        legal = actions.legal_actions(state)
        anything = jnp.ones_like(legal)
        action = chance.choose(bits, jnp.where(slips, anything, legal))
        after, seen = show_and_step(state, action, legal, planes=planes, has_playable=False)
        return after, (action, seen)

    return jax.jit(lambda state, bits, slips: jax.lax.scan(ply, state, (bits, slips))[1])


@functools.cache
def play_together(grid: int, planes: str):
    """A jitted `(states [B], actions [T, B]) -> Seen [T, B]`."""

    def ply(state, action):
        legal = actions.legal_actions(state)
        return show_and_step(state, action, legal, planes=planes, has_playable=True)

    return jax.jit(lambda states, played: jax.lax.scan(jax.vmap(ply), states, played)[1])


@functools.cache
def ids_in_grid(size: int, grid: int) -> np.ndarray:
    """For each action of a board, its id in the grid."""
    return np.array([in_larger_grid(action, size, grid) for action in range(size**2 * 53)])


def compare(family: Family, rules: list[Rules], seed: int, planes: str) -> None:
    """Play each board alone, then all together."""
    rng = np.random.default_rng(seed)
    played, alone = [], []
    for each in rules:
        (state,) = _unstack(harness.new_games([each], each.size))
        bits = rng.integers(0, 2**32, PLIES, dtype=np.uint32)
        action, seen = play_alone(each.size, planes)(state, bits, rng.random(PLIES) < 0.01)
        played.append(ids_in_grid(each.size, family.grid)[action])
        alone.append(jax.device_get(seen))
    states = harness.new_games(rules, family.grid)
    together = play_together(family.grid, planes)(states, np.stack(played, axis=1))
    for each, own, board in zip(rules, alone, _unstack(together, axis=1), strict=True):
        compare_board(own, board, each.size, family.grid)


def _unstack(tree, axis: int = 0) -> list:
    tree = jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf), axis, 0), tree)
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)]


def compare_board(alone: Seen, board: Seen, size: int, grid: int) -> None:
    """One board's plies [T] in its own grid and in the larger one."""
    for field in ("player", "terminated", "ply", "walls_left", "territory", "rewards"):
        np.testing.assert_array_equal(getattr(board, field), getattr(alone, field), field)
    moved = alone.stones // size * grid + alone.stones % size
    stones, missing = np.split(board.stones, [moved.shape[-1]], axis=-1)
    np.testing.assert_array_equal(stones, np.where(alone.stones == NOT_PLACED, NOT_PLACED, moved))
    assert (missing == NOT_PLACED).all()

    ids = ids_in_grid(size, grid)
    np.testing.assert_array_equal(board.actions[:, ids], alone.actions)
    elsewhere = np.delete(board.actions, ids, axis=1)
    np.testing.assert_array_equal(
        elsewhere, np.broadcast_to(alone.terminated[:, None], elsewhere.shape)
    )

    np.testing.assert_array_equal(board.planes[:, :size, :size, :-1], alone.planes)
    assert board.planes[:, :size, :size, -1].all()
    assert not board.planes[:, size:].any()
    assert not board.planes[:, :, size:].any()


def drawn_batches(family: Family):
    """The presets of a family beside two boards of any rules of each size, theirs included."""
    shapes = [*((size, family.fewer) for size in family.sizes), (7, family.stones)]
    customs = [
        rule_sets(sizes=(size,), players=family.players, stones=stones)
        for size, stones in shapes * 2
    ]
    return st.tuples(*customs).map(lambda drawn: [*family.presets(), *drawn])


def check(family: Family, planes: str, examples: int) -> None:
    """Compare drawn batches of a family."""
    seeds = st.integers(0, 2**31)
    draw = hypothesis.given(drawn_batches(family), seeds)
    hypothesis.settings(max_examples=examples)(
        draw(lambda rules, seed: compare(family, rules, seed, planes))
    )()


@pytest.mark.parametrize(
    "family",
    [*FAMILIES[:2], pytest.param(FAMILIES[2], marks=pytest.mark.slow)],
    ids=lambda family: f"{family.players} players",
)
def test_a_mixed_batch_is_its_boards_one_by_one(family):
    check(family, "BTRDV", 3)


@pytest.mark.slow
def test_a_mixed_batch_shows_each_board_its_own_past():
    check(FAMILIES[0], "BTRHDV", 10)


def test_every_preset_is_in_a_batch():
    assert sum(len(family.presets()) for family in FAMILIES) == len(PRESETS)
    assert all(family.grid > 7 for family in FAMILIES)
