"""The two numberings of actions and the way between them, on positions of random games."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.forms import FORMS
from tests.support.game import harness
from tests.support.game.board_text import to_engine
from tests.support.reference.games import random_games
from wallgo_jax.game import actions
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.actions import NO_SLOT

# Grid, players, stones; on the second grid there are more cells than plays of one stone.
SHAPES = ((5, 2, 2), (9, 2, 1))


class Seen(NamedTuple):
    """The engine's answers about one position."""

    words: np.ndarray  # uint32[ceil(A / 32)]
    slots: np.ndarray  # bool[A]
    actions: np.ndarray  # bool[|A|]
    is_legal: np.ndarray  # bool, of each slot asked
    action_of_slot: np.ndarray  # int[A]
    slot_of_action: np.ndarray  # int, of each action asked


class Sample(NamedTuple):
    """Positions of random games, with the slow referee's plies and the engine's answers."""

    grid: int
    stones: int
    plies: list  # of the slow referee
    setup: np.ndarray  # bool[n]
    asked_slots: np.ndarray
    asked_actions: np.ndarray
    seen: Seen  # [n, ...]


def outside(count: int) -> list[int]:
    """Numbers that lie outside 0 .. count - 1."""
    return [-53, -1, count, count + 1, 10**9]


@pytest.fixture(scope="module", params=[*((x, "cpu") for x in SHAPES), (SHAPES[0], "tpu")], ids=str)
def sample(request) -> Sample:
    (grid, players, stones), form = request.param
    games = random_games(7, 12, grid=grid, sizes=(3, 4, 5, grid), players=players, stones=stones)
    plies, states, setup = [], [], []
    for game in games:
        placements = len(game.rules["order"])
        for t, ply in enumerate(game.plies):
            plies.append(ply)
            setup.append(t < placements)
            states.append(
                to_engine(
                    ply.board,
                    game.rules,
                    player=ply.player,
                    ply=t,
                    grid=grid,
                    terminated=ply.over,
                )
            )
    num_slots, num_actions = max(stones * 52, grid**2), grid**2 * 53
    asked_slots = np.array([*range(num_slots), *outside(num_slots)])
    asked_actions = np.array([*range(num_actions), *outside(num_actions)])

    def look(state):
        def over(function, numbers):
            return jax.vmap(lambda number: function(state, number))(numbers)

        return Seen(
            words=actions.legal_words(state),
            slots=actions.legal_slots(state),
            actions=actions.legal_actions(state),
            is_legal=over(actions.is_legal, asked_slots),
            action_of_slot=over(actions.action_of_slot, jnp.arange(num_slots)),
            slot_of_action=over(actions.slot_of_action, asked_actions),
        )

    with FORMS[form]():
        seen = jax.device_get(jax.jit(jax.vmap(look))(harness.stack(states)))
    assert 10 < sum(setup) < len(plies) - 100 and any(ply.over for ply in plies)
    return Sample(grid, stones, plies, np.array(setup), asked_slots, asked_actions, seen)


def running(sample: Sample) -> np.ndarray:
    """The indices of positions where the game is not over."""
    return np.flatnonzero([not ply.over for ply in sample.plies])


WORDS_PICTURE = """
    word        0    1    2    3    4    5    6
    stone 0    32   20    .    .    .    .    .
    stone 1     .   12   32    8    .    .    .
    stone 2     .    .    .   24   28    .    .
    stone 3     .    .    .    .    4   32   16
"""
BITS_PICTURE = """
    play           51 50 49 48 .. 35 34 33 32 | 31 30 29 28 ..  3  2  1  0
    move           12 12 12 12 ..  8  8  8  8 |  7  7  7  7 ..  0  0  0  0
    side            3  2  1  0 ..  3  2  1  0 |  3  2  1  0 ..  3  2  1  0
"""


def test_picture_of_stones_in_words_redrawn():
    rows = ["word 0 1 2 3 4 5 6".split()]
    for stone in range(4):
        low, high = (np.where(np.arange(4) == stone, bits, 0) for bits in (2**32 - 1, 2**20 - 1))
        packed = actions._concatenate_bits(
            jnp.asarray(low, jnp.uint32), jnp.asarray(high, jnp.uint32), 7
        )
        counts = [int(word).bit_count() for word in packed]
        rows.append(["stone", str(stone), *(str(count or ".") for count in counts)])
    assert rows == [line.split() for line in WORDS_PICTURE.strip().splitlines()]
    assert WORDS_PICTURE in f"{actions.__doc__}\n"


def test_picture_of_a_stones_bits_redrawn():
    play, move, side = (line.split()[1:] for line in BITS_PICTURE.strip().splitlines())
    assert play.index("|") == 9 and play[8] == "32" and play[10] == "31"
    for number, its_move, its_side in zip(play, move, side, strict=True):
        if number.isdigit():
            assert int(number) == 4 * int(its_move) + int(its_side)
    assert BITS_PICTURE in actions.__doc__


def test_counts():
    assert actions.num_actions(7) == 2597
    assert actions.num_slots(4, grid=7) == 208
    assert actions.num_slots(1, grid=9) == 81
    for grid, stones in ((3, 1), (7, 4), (9, 1), (9, 4)):
        sizes = state_lib.Sizes(grid, 2, stones)
        assert sizes.num_slots == actions.num_slots(stones, grid=grid)
        assert sizes.num_actions == actions.num_actions(grid)


def test_slots_and_public_actions_biject_on_legal_sets(sample):
    """The sets are the slow referee's."""
    for i in running(sample):
        slots = np.flatnonzero(sample.seen.slots[i])
        public = sample.seen.action_of_slot[i, slots]
        assert sorted(public.tolist()) == sample.plies[i].legal
        assert np.flatnonzero(sample.seen.actions[i]).tolist() == sample.plies[i].legal
        np.testing.assert_array_equal(sample.seen.slot_of_action[i, public], slots)


def test_slot_of_every_action(sample):
    # Drawn anew: a placement is its cell, a play is its stone's index among the mover's own.
    first_placement = sample.grid**2 * 52
    asked = sample.asked_actions
    cell, play = asked // 52, asked % 52
    for i in running(sample):
        ply = sample.plies[i]
        expected = np.full(asked.shape, NO_SLOT)
        if sample.setup[i]:
            is_cell = (asked >= first_placement) & (asked < first_placement + sample.grid**2)
            expected[is_cell] = asked[is_cell] - first_placement
        else:
            for stone, (row, column) in enumerate(ply.board.stones[ply.player]):
                is_here = cell == row * sample.grid + column
                expected[is_here] = stone * 52 + play[is_here]
        np.testing.assert_array_equal(sample.seen.slot_of_action[i], expected)


def test_legal_words_are_the_bits_of_the_mask(sample):
    num_slots = sample.seen.slots.shape[1]
    place = np.arange(num_slots)
    bits = sample.seen.words[:, place // 32] >> (place % 32).astype(np.uint32) & 1
    np.testing.assert_array_equal(bits == 1, sample.seen.slots)
    counted = np.bitwise_count(sample.seen.words).sum(axis=1)
    np.testing.assert_array_equal(counted, sample.seen.slots.sum(axis=1))
    assert sample.seen.words.dtype == np.uint32


def test_legality_outside_and_after_the_end(sample):
    """Before the end it is the mask's; outside no slot is legal, and after it none but by mask."""
    num_slots = sample.seen.slots.shape[1]
    over = np.array([ply.over for ply in sample.plies])
    np.testing.assert_array_equal(
        sample.seen.is_legal[:, :num_slots], sample.seen.slots & ~over[:, None]
    )
    assert not sample.seen.is_legal[:, num_slots:].any()
    assert sample.seen.actions[over].all()
    assert (sample.seen.slots[over] == (np.arange(num_slots) == 0)).all()


def test_dtypes(sample):
    dtypes = jax.tree.map(lambda leaf: leaf.dtype, sample.seen)
    assert dtypes == Seen(np.uint32, np.bool_, np.bool_, np.bool_, np.int32, np.int32)
