"""Laws of the game hold in every position of random games over random rules."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.support.game import harness
from tests.support.game.comparison import walls_of_words
from tests.support.game.strategies import rule_sets
from wallgo_jax.game import actions, chance, referee, symmetry
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position

# Grid, players, stones; boards are of 3x3 up to the grid, as far as they hold all stones.
SHAPES = ((7, 3, 2), (6, 2, 3))
SLOW_SHAPES = (
    (9, 2, 4),
    (3, 2, 1),
    (4, 4, 1),
    (6, 3, 3),
    (9, 4, 4),
)
BOARDS, PLIES = 8, 96
TURNS = np.arange(8)
Shape = tuple[int, int, int]


class Walk(NamedTuple):
    """Random plies [T, B]: each board before a ply, compared with its eight turned boards."""

    position: Position
    slots: Any  # bool[A] legal slots
    actions: Any  # bool[|A|] legal public actions
    action_of_slot: Any  # int[A]
    slot_and_back: Any  # int[A] slot of that action
    is_legal: Any  # bool, of the slot played
    same_legal_slots: Any  # bool[8] each turned board against the board, turned
    same_legal_actions: Any  # bool[8]
    same_slot: Any  # bool[8] the turned action is the turned slot
    same_state: Any  # bool[8] after the ply
    same_rewards: Any  # bool[8]
    turned: Any  # uint32[8, P, 2, W] walls of the turned boards


@functools.cache
def make_walk(grid: int):
    """A jitted `(states [B], bits [T, B]) -> Walk [T, B]` of uniform play on all turned boards."""

    def turned_ply(state, action, turn):
        turned_action = symmetry.turn_action(action, turn, state.variant)
        slot = actions.slot_of_action(state, turned_action)
        after, rewards = referee.step(state, slot)
        legal = actions.legal_slots(state), actions.legal_actions(state)
        return after, (rewards, slot, *legal)

    def ply(boards, bits):  # [8]
        state = jax.tree.map(lambda leaf: leaf[0], boards)
        slot = chance.choose_bit(bits, actions.legal_words(state))
        after, shown = jax.vmap(turned_ply, (0, None, 0))(
            boards, actions.action_of_slot(state, slot), TURNS
        )
        over = state.position.terminated
        rewards, turned_slots, slots, public = shown
        phase, variant = symmetry.phase_of(state), state.variant
        all_slots = jnp.arange(slots.shape[1])
        to_action = functools.partial(actions.action_of_slot, state)
        to_slot = functools.partial(actions.slot_of_action, state)
        all_actions = jax.vmap(to_action)(all_slots)

        def compare(turn):
            wanted = symmetry.turn_state(jax.tree.map(lambda leaf: leaf[0], after), turn)
            here = jax.tree.map(lambda leaf: leaf[turn], after)
            policy = symmetry.turn_policy(slots[0], turn, phase, variant)
            ids = symmetry.turn_action(jnp.arange(public.shape[1]), turn, variant)
            turned_slot = symmetry.turn_slot(slot, turn, phase, variant)
            return (
                (slots[turn] == policy).all() | over,
                (public[turn][ids] == public[0]).all() | over,
                (turned_slots[turn] == turned_slot) | over,
                same(here, wanted),
                (rewards[turn] == rewards[0]).all(),
            )

        return after, Walk(
            state.position,
            slots[0],
            public[0],
            all_actions,
            jax.vmap(to_slot)(all_actions),
            actions.is_legal(state, slot),
            *jax.vmap(compare)(TURNS),
            boards.position.walls,
        )

    def walk(states, bits):
        boards = jax.vmap(jax.vmap(symmetry.turn_state, (None, 0)), (0, None))(states, TURNS)
        return jax.lax.scan(jax.vmap(ply), boards, bits)[1]

    return jax.jit(walk)


def same(a, b) -> jax.Array:
    """Whether two trees of arrays are equal."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return jnp.stack([(x == y).all() for x, y in pairs]).all()


class Drawn(NamedTuple):
    """Rules of one shape, and the random games that were walked on them."""

    grid: int
    players: int
    rules: Sequence[Rules]
    walk: Walk


@functools.cache
def random_walks(shape: Shape, examples: int) -> list[Drawn]:
    """Random games over any rules of a shape, walked once for all tests."""
    grid, players, stones = shape
    one = rule_sets(sizes=range(3, grid + 1), players=players, stones=stones)
    drawn = []

    @hypothesis.settings(max_examples=examples)
    @hypothesis.given(st.lists(one, min_size=BOARDS, max_size=BOARDS), st.integers(0, 2**31))
    def draw(rules, seed):
        bits = jax.random.bits(jax.random.key(seed), (PLIES, BOARDS))
        walk = jax.device_get(make_walk(grid)(harness.new_games(rules, grid), bits))
        drawn.append(Drawn(grid, players, rules, walk))

    draw()
    assert len(drawn) >= examples
    return drawn


def each_shape(check):
    """A test of `check(drawn)` on random games over any rules, for every shape."""

    def test(shape, examples):
        for drawn in random_walks(shape, examples):
            check(drawn)

    test.__name__ = check.__name__
    cases = [
        *(pytest.param(shape, 4) for shape in SHAPES),
        *(pytest.param(shape, 8, marks=pytest.mark.slow) for shape in SLOW_SHAPES),
    ]
    return pytest.mark.parametrize(("shape", "examples"), cases, ids=name_of)(test)


def name_of(value) -> str:
    """A shape as `9-2-4`."""
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


@each_shape
def test_turning_then_playing_is_playing_then_turning(drawn):
    walk = drawn.walk
    assert walk.same_slot.all()
    assert walk.same_state.all()
    assert walk.same_rewards.all()
    assert walk.same_legal_slots.all()
    assert walk.same_legal_actions.all()
    walls = walls_of_words(walk.turned[-1], drawn.grid).reshape(BOARDS, len(TURNS), -1)
    for board in walls[walls.any(axis=(1, 2))]:
        assert len(np.unique(board, axis=0)) > 1, "no turn moved a wall"


@each_shape
def test_slots_and_public_actions_biject_on_the_legal_sets(drawn):
    walk = drawn.walk
    for t, b in np.argwhere(~walk.position.terminated):
        slots = np.flatnonzero(walk.slots[t, b])
        public = walk.action_of_slot[t, b, slots]
        assert len(slots) > 0
        assert sorted(public.tolist()) == np.flatnonzero(walk.actions[t, b]).tolist()
        np.testing.assert_array_equal(walk.slot_and_back[t, b, slots], slots)


@each_shape
def test_stones_and_walls_stay_where_they_may(drawn):
    grid, _, rules, walk = drawn
    position = walk.position
    np.testing.assert_array_equal(walk.is_legal, ~position.terminated)
    sizes = np.array([each.size for each in rules])[:, None]
    rows, columns = np.divmod(np.arange(grid**2), grid)
    inside = (rows < sizes) & (columns < sizes)  # [B, N]

    cells = position.stones.reshape(PLIES, BOARDS, -1)
    stones_at = (cells[..., None] == np.arange(grid**2)).sum(axis=2)  # [T, B, N]
    assert (stones_at <= 1).all(), "two stones on a cell"
    assert not stones_at[:, ~inside].any(), "a stone off the board"
    np.testing.assert_array_equal(stones_at.sum(axis=-1), (cells >= 0).sum(axis=-1))

    built = walls_of_words(position.walls, grid).sum(axis=2)  # [T, B, 2, N]
    assert (built <= 1).all(), "an edge walled twice"
    assert not built[:, :, 0][:, ~(inside & (rows < sizes - 1))].any(), "below the board"
    assert not built[:, :, 1][:, ~(inside & (columns < sizes - 1))].any(), "beside the board"


@each_shape
def test_walls_used_are_the_walls_on_the_board(drawn):
    grid, _, rules, walk = drawn
    position = walk.position
    on_board = walls_of_words(position.walls, grid).sum(axis=(3, 4))  # [T, B, P]
    limited = [b for b, each in enumerate(rules) if each.walls is not None]
    budget = np.array([rules[b].walls for b in limited], int).reshape(-1, 1)
    assert (on_board[:, limited] + position.walls_left[:, limited] == budget).all()
    assert (position.walls_left >= 0).all()
    placements = np.array([len(each.order) for each in rules])
    plays = np.maximum(position.ply - placements, 0)
    np.testing.assert_array_equal(on_board.sum(axis=-1), plays)


@each_shape
def test_time_runs_until_the_end_and_then_stands_still(drawn):
    _, players, rules, walk = drawn
    position = walk.position
    running = ~position.terminated
    np.testing.assert_array_equal(np.diff(position.ply, axis=0), running[:-1])
    assert ((position.player >= 0) & (position.player < players)).all()
    for t, b in np.argwhere(~running[:-1]):
        for leaf in position:
            np.testing.assert_array_equal(leaf[t + 1, b], leaf[t, b])
    in_setup = position.ply < np.array([len(each.order) for each in rules])
    assert running[in_setup].all()
    assert (~running[-1]).any(), "no game ended"
