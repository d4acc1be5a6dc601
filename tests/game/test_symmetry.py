"""The eight symmetries: on states, slots, policies and public actions."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.board.test_geometry import SYMMETRIES
from tests.support.forms import FORMS
from tests.support.game import harness
from tests.support.reference.games import Record, random_game, random_games
from tests.support.reference.referee import MOVES, SIDES, Cell
from wallgo_jax.game import actions, symmetry
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Variant, make_variant

# Boards of 3x3 to 5x5 in a grid of 5, so that some turn within a larger grid.
GRID, PLAYERS, STONES = 5, 2, 2
SMALL = Rules(size=3, stones=1, order=(0, 1))
of_each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
SHAPE = {"grid": GRID, "sizes": (3, 4, 5), "players": PLAYERS, "stones": STONES}
SHAPE_OF_THREE = {"grid": 7, "sizes": (4, 6, 7), "players": 3, "stones": 2}
"""In a grid of two words."""
NUM_ACTIONS = GRID**2 * 53
NUM_SLOTS = STONES * 52


def variant_of(size) -> Variant:
    """The variant of boards of an int[] size on the grid."""
    return make_variant(SMALL, grid=GRID)._replace(size=size)


def turned_offset(turn: int, offset: Cell) -> Cell:
    """An offset, turned as the cells around the middle of a 5x5 board are."""
    row, column = SYMMETRIES[turn](offset[0] + 2, offset[1] + 2, 5)
    return row - 2, column - 2


def turned_action(turn: int, action: int, size: int, grid: int = GRID) -> int:
    """A public action of a board in the grid, turned by the plain formulas."""
    is_placement = action >= grid**2 * 52
    cell = action - grid**2 * 52 if is_placement else action // 52
    row, column = SYMMETRIES[turn](*divmod(cell, grid), size)
    cell = row * grid + column
    if is_placement:
        return grid**2 * 52 + cell
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
    played = [turned_action(turn, action, size, game.grid) for action in game.actions]
    return {**game.rules, "start": start}, played


def draw_games(count: int, **shape) -> list[Record]:
    """Random games without illegal actions."""
    rng = random.Random(11)
    drawn = random_games(11, count, **shape)
    return [random_game(rng, game.rules, grid=shape["grid"]) for game in drawn]


@pytest.fixture(scope="module")
def games() -> list[Record]:
    return draw_games(16, **SHAPE)


@pytest.mark.parametrize(("count", "shape"), [(16, SHAPE), (8, SHAPE_OF_THREE)])
def test_turned_games_pass_through_the_turned_states(count, shape):
    """The turned actions lead to the turned states, by each symmetry."""
    games = draw_games(count, **shape)
    shown, grid = harness.replay_records(games), games[0].grid
    turn_states = jax.jit(
        jax.vmap(
            jax.vmap(jax.vmap(symmetry.turn_state, (None, 0)), (0, None)),
            (0, None),
        )
    )
    expected = turn_states(shown.state, jnp.arange(8))
    turned = [turned_game(turn, game) for turn in range(8) for game in games]
    rules = harness.rules_of([{"rules": rules} for rules, _ in turned])
    seen = harness.replay(rules, [played for _, played in turned], grid=grid)

    def by_turn(leaf):
        return np.moveaxis(leaf.reshape(len(leaf), 8, len(games), *leaf.shape[2:]), 1, 2)

    jax.tree.map(np.testing.assert_array_equal, expected, jax.tree.map(by_turn, seen.state))
    for field in ("terminated", "player", "territory", "largest", "rewards"):
        turned_field = by_turn(getattr(seen, field))
        alike = np.broadcast_to(np.expand_dims(getattr(shown, field), 2), turned_field.shape)
        np.testing.assert_array_equal(turned_field, alike)
    by_turns = by_turn(seen.actions)
    for b, game in enumerate(games):
        size = game.rules["size"]
        for turn in range(8):
            for t in range(len(game.actions)):
                wanted = [turned_action(turn, a, size, grid) for a in game.plies[t].legal]
                assert np.flatnonzero(by_turns[t, b, turn]).tolist() == sorted(wanted)


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


def laws(state, turn):
    """Whether each law holds for one position and one symmetry."""
    variant, setup = state.variant, symmetry.phase_of(state)
    running = ~state.position.terminated
    back = symmetry.inverse(turn)
    turn_slot = functools.partial(symmetry.turn_slot, in_setup=setup, variant=variant)
    turn_policy = functools.partial(symmetry.turn_policy, in_setup=setup, variant=variant)
    turned = symmetry.turn_state(state, turn)

    slots = jnp.arange(NUM_SLOTS)
    in_phase = ~setup | (slots < GRID**2)
    turned_slots = turn_slot(slots, turn)
    policy = jnp.cos(slots.astype(jnp.float32))
    turned_policy = turn_policy(policy, turn)
    legal = actions.legal_slots(state)
    turned_legal = actions.legal_slots(turned)
    to_action = jax.vmap(actions.action_of_slot, (None, 0))
    to_slot = jax.vmap(actions.slot_of_action, (None, 0))
    turned_ids = symmetry.turn_action(to_action(state, slots), turn, variant)
    return {
        "turning back gives the state": same(symmetry.turn_state(turned, back), state),
        "turning back gives the slot": (turn_slot(turned_slots, back) == slots) | ~in_phase,
        "legal slots turn as a policy": same(turned_legal, turn_policy(legal, turn)) | ~running,
        "a slot turns as its action": (
            (to_slot(turned, turned_ids) == turned_slots) | ~legal | ~running
        ),
        "a policy moves with its slots": (turned_policy[turned_slots] == policy) | ~in_phase,
        "beyond the cells a policy stays in setup": same(
            turned_policy[GRID**2 :], policy[GRID**2 :]
        )
        | ~setup,
        "turning back gives the policy": same(turn_policy(turned_policy, back), policy),
    }


def same(a, b):
    """Whether two trees of arrays are equal."""
    return jnp.stack([jnp.all(x == y) for x, y in _pairs(a, b)]).all()


def _pairs(a, b):
    return zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)


@of_each_form
def test_laws_hold_on_random_games(games, form):
    shown = harness.replay_records(games)
    plies = [np.linspace(0, len(game.actions), 12).astype(int) for game in games]
    places = np.concatenate(plies), np.repeat(np.arange(len(games)), 12)
    states = jax.tree.map(lambda leaf: leaf[places], shown.state)
    over_turns = jax.vmap(laws, (None, 0))
    with form():
        holds = jax.jit(jax.vmap(over_turns, (0, None)))(states, np.arange(8))
    assert [name for name, each in jax.device_get(holds).items() if not each.all()] == []


SYMMETRY_PICTURE = """
    0       1       2       3       4       5       6       7
    # # .   . . .   . . #   # # #   . # #   . . .   # . .   # # #
    # . .   # . .   . . #   . . #   . . #   . . #   # . .   # . .
    # . .   # # #   . # #   . . .   . . #   # # #   # # .   . . .
"""


def test_picture_of_the_symmetries_redrawn():
    drawn = np.array([list("##."), list("#.."), list("#..")])
    rows, mask = [[], [], []], jnp.asarray(drawn == "#").reshape(-1)
    turn_mask = jax.vmap(lambda turn: symmetry.turn_masks(mask, turn, make_variant(SMALL)))
    for turned in np.asarray(jax.jit(turn_mask)(np.arange(8))):
        for row, cells in zip(rows, turned.reshape(3, 3), strict=True):
            row += ["#" if cell else "." for cell in cells]
    _, *lines = SYMMETRY_PICTURE.strip().splitlines()
    assert rows == [line.split() for line in lines]
    assert SYMMETRY_PICTURE in symmetry.__doc__
