"""The eight symmetries: on states, slots, policies, public actions and planes."""

import functools
import random

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.board.test_geometry import SYMMETRIES
from tests.support.game import harness
from tests.support.game.planes import EVERYTHING, expected_planes
from tests.support.reference.games import Record, random_game, random_games, record
from tests.support.reference.referee import MOVES, SIDES, Cell, random_rules
from wallgo_jax import observation
from wallgo_jax import planes as planes_lib
from wallgo_jax.game import actions, referee, symmetry
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Variant, make_variant

# Boards of 3x3 to 5x5 in a grid of 5, so that some turn within a larger grid.
GRID, PLAYERS, STONES = 5, 2, 2
SMALL = Rules(size=3, stones=1, order=(0, 1))
SHAPE = {"grid": GRID, "sizes": (3, 4, 5), "players": PLAYERS, "stones": STONES}
NUM_ACTIONS = GRID**2 * 53
NUM_SLOTS = STONES * 52


def variant_of(size) -> Variant:
    """The variant of boards of an int[] size on the grid."""
    return make_variant(SMALL, grid=GRID)._replace(size=size)


def turned_offset(turn: int, offset: Cell) -> Cell:
    """An offset, turned as the cells around the middle of a 5x5 board are."""
    row, column = SYMMETRIES[turn](offset[0] + 2, offset[1] + 2, 5)
    return row - 2, column - 2


def turned_action(turn: int, action: int, size: int) -> int:
    """A public action of a board in the grid, turned by the plain formulas."""
    is_placement = action >= GRID**2 * 52
    cell = action - GRID**2 * 52 if is_placement else action // 52
    row, column = SYMMETRIES[turn](*divmod(cell, GRID), size)
    cell = row * GRID + column
    if is_placement:
        return GRID**2 * 52 + cell
    move, side = divmod(action % 52, 4)
    move = MOVES.index(turned_offset(turn, MOVES[move]))
    side = SIDES.index(turned_offset(turn, SIDES[side]))
    return cell * 52 + move * 4 + side


def turned_game(turn: int, game: Record) -> tuple[dict, list[int]]:
    """The rules and the actions of a game played on the turned board."""
    size = game.rules["size"]
    start = [
        [*SYMMETRIES[turn](row, column, size), who] for row, column, who in game.rules["start"]
    ]
    played = [turned_action(turn, action, size) for action in game.actions]
    return {**game.rules, "start": start}, played


@pytest.fixture(scope="module")
def games() -> list[Record]:
    rng = random.Random(11)
    drawn = random_games(11, 16, **SHAPE)
    return [random_game(rng, game.rules, grid=GRID) for game in drawn]  # no illegal actions


@pytest.fixture(scope="module")
def shown(games) -> harness.Shown:
    rules = harness.rules_of([game._asdict() for game in games])
    return harness.replay(rules, [game.actions for game in games], grid=GRID)


def test_turned_games_pass_through_the_turned_states(games, shown):
    turn_states = jax.jit(
        jax.vmap(
            jax.vmap(jax.vmap(symmetry.turn_state, (None, 0)), (0, None)),
            (0, None),
        )
    )
    expected = turn_states(shown.state, jnp.arange(8))
    turned = [turned_game(turn, game) for turn in range(8) for game in games]
    rules = harness.rules_of([{"rules": rules} for rules, _ in turned])
    seen = harness.replay(rules, [played for _, played in turned], grid=GRID)

    def by_turn(leaf):
        return np.moveaxis(leaf.reshape(len(leaf), 8, len(games), *leaf.shape[2:]), 1, 2)

    jax.tree.map(np.testing.assert_array_equal, expected, jax.tree.map(by_turn, seen.state))
    for field in ("terminated", "player", "territory", "largest", "rewards"):
        turned_field = by_turn(getattr(seen, field))
        alike = np.broadcast_to(np.expand_dims(getattr(shown, field), 2), turned_field.shape)
        np.testing.assert_array_equal(turned_field, alike)


def test_all_planes_turn_as_the_turned_games_show(games):
    channels = planes_lib.channels(EVERYTHING, PLAYERS, has_playable=True)

    @jax.jit
    @jax.vmap
    def turn_planes(planes, turn, size):
        return observation.turn_planes(planes, channels, turn, variant_of(size))

    cases = []
    for index, game in enumerate(games):
        turn, ply = index % 8, len(game.actions) * 2 // 3
        rules, actions_of_game = turned_game(turn, game)
        turned = record(rules, actions_of_game, grid=GRID)
        cases.append(
            (turn, rules["size"], expected_planes(game, ply), expected_planes(turned, ply))
        )
    turns, sizes, planes, expected = map(np.stack, zip(*cases, strict=True))
    np.testing.assert_array_equal(turn_planes(planes, turns, sizes), expected)


def test_turn_action_follows_the_formulas():
    @jax.jit
    def turn_all(turns, sizes):
        def turn(action, symmetry_, size):
            return symmetry.turn_action(action, symmetry_, variant_of(size))

        over_actions = jax.vmap(turn, (0, None, None))
        over_sizes = jax.vmap(over_actions, (None, None, 0))
        over_turns = jax.vmap(over_sizes, (None, 0, None))
        return over_turns(jnp.arange(NUM_ACTIONS), turns, sizes)

    sizes = (3, 4, 5)
    seen = np.asarray(turn_all(jnp.arange(8), jnp.array(sizes)))
    assert seen.dtype == np.int32
    plays, placements = divmod(np.arange(NUM_ACTIONS), GRID**2 * 52)
    cells = np.where(plays, placements, placements // 52)
    for index, size in enumerate(sizes):
        on_board = np.flatnonzero((cells // GRID < size) & (cells % GRID < size)).tolist()
        for turn in range(8):
            expected = [turned_action(turn, action, size) for action in on_board]
            assert seen[turn, index, on_board].tolist() == expected


def test_inverse_undoes():
    inverse = np.asarray(symmetry.inverse(jnp.arange(8)))
    for turn, formula in enumerate(SYMMETRIES):
        row, column = formula(0, 1, 5)
        assert SYMMETRIES[inverse[turn]](row, column, 5) == (0, 1)
    np.testing.assert_array_equal(inverse[inverse], np.arange(8))


def laws(state, slot, turn):
    """Whether each law holds for one position, one slot to play and one symmetry."""
    variant, setup = state.variant, symmetry.phase_of(state)
    running = ~state.position.terminated
    back = symmetry.inverse(turn)
    turn_state = symmetry.turn_state
    turn_slot = functools.partial(symmetry.turn_slot, in_setup=setup, variant=variant)
    turn_policy = functools.partial(symmetry.turn_policy, in_setup=setup, variant=variant)
    turn_action = functools.partial(symmetry.turn_action, variant=variant)
    # Without history, which compiles slowly; the trail turns with the state.
    observe = functools.partial(observation.observe, planes="BTRD", has_playable=True)
    channels = planes_lib.channels("BTRD", PLAYERS, has_playable=True)

    turned = turn_state(state, turn)
    after, rewards = referee.step(state, slot)
    turned_after, turned_rewards = referee.step(turned, turn_slot(slot, turn))

    slots, ids = jnp.arange(NUM_SLOTS), jnp.arange(NUM_ACTIONS)
    in_phase = ~setup | (slots < GRID**2)
    turned_slots = turn_slot(slots, turn)
    policy = jnp.cos(slots.astype(jnp.float32))
    turned_policy = turn_policy(policy, turn)
    legal = actions.legal_slots(state)
    turned_legal = actions.legal_slots(turned)
    to_action = jax.vmap(actions.action_of_slot, (None, 0))
    to_slot = jax.vmap(actions.slot_of_action, (None, 0))
    turned_twice = to_slot(turned, turn_action(to_action(state, slots), turn))
    public = actions.legal_actions(state)
    turned_public = actions.legal_actions(turned)

    planes = observe(state)
    turned_planes = observation.turn_planes(planes, channels, turn, variant)
    return {
        "act then turn is turn then act": same(turned_after, turn_state(after, turn)),
        "rewards do not turn": same(turned_rewards, rewards),
        "turning back gives the state": same(turn_state(turned, back), state),
        "turning back gives the slot": (turn_slot(turned_slots, back) == slots) | ~in_phase,
        "legal slots turn as a policy": same(turned_legal, turn_policy(legal, turn)) | ~running,
        "legal actions turn": (turned_public[turn_action(ids, turn)] == public) | ~running,
        "a slot turns as its action": (turned_twice == turned_slots) | ~legal | ~running,
        "a policy moves with its slots": (turned_policy[turned_slots] == policy) | ~in_phase,
        "turning back gives the policy": same(turn_policy(turned_policy, back), policy),
        "planes turn": same(observe(turned), turned_planes),
        "turning back gives the planes": same(
            observation.turn_planes(turned_planes, channels, back, variant), planes
        ),
    }


def same(a, b):
    """Whether two trees of arrays are equal."""
    return jnp.stack([jnp.all(x == y) for x, y in _pairs(a, b)]).all()


def _pairs(a, b):
    return zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)


@functools.cache
def jitted_laws():
    """`laws` over positions and all eight symmetries."""
    over_turns = jax.vmap(laws, (None, None, 0))
    return jax.jit(
        lambda states, slots: jax.vmap(over_turns, (0, 0, None))(states, slots, jnp.arange(8))
    )


def broken_laws(states, slots) -> list[str]:
    """The laws that fail for a position."""
    seen = jax.device_get(jitted_laws()(states, slots))
    return [name for name, holds in seen.items() if not holds.all()]


@hypothesis.given(st.randoms(use_true_random=False))
def test_laws_hold_on_random_games(rng):
    rules = random_rules(rng, sizes=SHAPE["sizes"], players=PLAYERS, stones=STONES)
    game = random_game(rng, rules, grid=GRID)
    shown = harness.replay(harness.rules_of([game._asdict()]), [game.actions], grid=GRID)
    plies = np.linspace(0, len(game.actions), 16).astype(int)
    states, slots = jax.tree.map(lambda leaf: leaf[plies, 0], (shown.state, shown.slot))
    assert broken_laws(states, slots) == []


def test_policy_keeps_what_lies_beyond_the_cells_in_setup():
    policy = jnp.arange(float(NUM_SLOTS))
    turned = symmetry.turn_policy(policy, jnp.int32(1), jnp.bool_(True), variant_of(jnp.int8(5)))
    assert turned.tolist()[GRID**2 :] == policy.tolist()[GRID**2 :]
    assert sorted(turned.tolist()) == policy.tolist()


SYMMETRY_PICTURE = """
    0       1       2       3       4       5       6       7
    # # .   . . .   . . #   # # #   . # #   . . .   # . .   # # #
    # . .   # . .   . . #   . . #   . . #   . . #   # . .   # . .
    # . .   # # #   . # #   . . .   . . #   # # #   # # .   . . .
"""


def test_picture_of_the_symmetries_redrawn():
    drawn = np.array([list("##."), list("#.."), list("#..")])
    rows = [[], [], []]
    for turn in range(8):
        mask = (drawn == "#").reshape(-1)
        turned = symmetry.turn_masks(mask, np.int32(turn), make_variant(SMALL)).reshape(3, 3)
        for row, cells in zip(rows, turned, strict=True):
            row += ["#" if cell else "." for cell in cells]
    _, *lines = SYMMETRY_PICTURE.strip().splitlines()
    assert rows == [line.split() for line in lines]
    assert SYMMETRY_PICTURE in symmetry.__doc__
