"""Outcomes of hand-written sequences of plies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.data import outcomes
from train.data.outcomes import Outcome, backfill_outcomes
from wallgo_jax.game import referee

jitted_endings, reward_of = jax.jit(backfill_outcomes), jax.jit(referee.reward_of)

WON, LOST, EVEN = (1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)


def run(rewards, terminated):
    """The rewards of backfilled outcomes, and the mask of known ones, as NumPy arrays. The
    territory that goes with a ply's rewards holds its number, its board and the player."""
    step_outcome, ended = np.array(rewards, np.float32), np.array(terminated, bool)
    number = np.arange(1, step_outcome.size + 1, dtype=np.uint32).reshape(*step_outcome.shape, 1)
    owned = np.where(ended[..., None, None], number, np.uint32(0))
    step_outcome, ended, owned = map(jnp.asarray, (step_outcome, ended, owned))
    found, known = jax.device_get(jitted_endings(Outcome(step_outcome, owned), ended))
    assert (found.rewards.dtype, found.owned.dtype) == (jnp.float32, jnp.uint32)
    assert (found.rewards.shape, found.owned.shape) == (step_outcome.shape, owned.shape)
    for ply, board in np.argwhere(known):
        end = ply + np.flatnonzero(ended[ply:, board])[0]
        np.testing.assert_array_equal(found.owned[ply, board], owned[end, board])
    return found.rewards, known


def test_each_game_of_a_board_has_its_own_outcome():
    # One board: Red wins in 3 plies, Blue in 1, a draw in 2, and 2 plies of an unfinished game.
    step_outcome = [EVEN, EVEN, WON, LOST, EVEN, EVEN, EVEN, EVEN]
    ended = [0, 0, 1, 1, 0, 1, 0, 0]
    outcome, known = run([[p] for p in step_outcome], [[e] for e in ended])
    assert known[:, 0].tolist() == [True] * 6 + [False] * 2
    np.testing.assert_array_equal(outcome[:6, 0], [WON, WON, WON, LOST, EVEN, EVEN])


def test_boards_do_not_mix():
    # Columns: ends at once and again at the end; never ends; ends in the middle.
    step_outcome = [[WON, EVEN, EVEN], [EVEN, EVEN, LOST], [EVEN, EVEN, EVEN], [LOST, EVEN, EVEN]]
    ended = [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    outcome, known = run(step_outcome, ended)
    assert known.T.tolist() == [[True] * 4, [False] * 4, [True, True, False, False]]
    np.testing.assert_array_equal(outcome[:, 0], [WON, LOST, LOST, LOST])
    np.testing.assert_array_equal(outcome[:2, 2], [LOST, LOST])


def test_draw_is_an_outcome_and_hides_the_next_games_result():
    outcome, known = run([[EVEN], [EVEN], [WON]], [[0], [1], [1]])
    assert known[:, 0].tolist() == [True, True, True]
    np.testing.assert_array_equal(outcome[:, 0], [EVEN, EVEN, WON])


def test_three_players():
    half = -0.5
    first, last = (1.0, half, half), (half, half, 1.0)
    even = (0.0, 0.0, 0.0)
    outcome, known = run([[even], [first], [even], [last], [even]], [[0], [1], [0], [1], [0]])
    assert known[:, 0].tolist() == [True, True, True, True, False]
    np.testing.assert_array_equal(outcome[:4, 0], [first, first, last, last])


@pytest.mark.parametrize(
    ("shares", "player", "expected"),
    [
        ([[1.0, -1.0], [1.0, -1.0], [0.0, 0.0]], [0, 1, 1], [1.0, -1.0, 0.0]),
        ([[-0.5, 1.0, -0.5], [-0.5, 1.0, -0.5], [1.0, -0.5, -0.5]], [0, 1, 2], [-0.5, 1.0, -0.5]),
    ],
)
def test_outcome_from_the_movers_side(shares, player, expected):
    rewards, mover = np.array(shares, np.float32), np.array(player, np.int8)
    np.testing.assert_array_equal(reward_of(rewards, mover), expected)
    # Any leading axes: rows by boards, or one ply alone.
    rows = np.asarray(reward_of(rewards[:, None], mover[:, None]))
    np.testing.assert_array_equal(rows[:, 0], expected)
    assert float(reward_of(rewards[0], mover[0])) == expected[0]


@pytest.mark.parametrize("player", range(3))
def test_players_are_counted_from_the_mover(player):
    values = np.arange(30).reshape(3, 10)
    seen = jax.jit(outcomes.from_mover)(values, jnp.int8(player))
    np.testing.assert_array_equal(seen, np.roll(values, -player, axis=0))


def test_winner_is_the_one_who_is_paid():
    winner_of = jax.jit(outcomes.winner_of)
    assert int(winner_of(jnp.array([1.0, -1.0]))) == 0
    assert int(winner_of(jnp.array([-0.5, -0.5, 1.0]))) == 2
    assert int(winner_of(jnp.zeros(3))) == 3


def test_owners_and_margin_of_a_drawn_board():
    """Three players on four cells of a board of five: two cells, one, one; a cell is nobody's."""
    owned = jnp.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]], bool)
    playable = jnp.array([1, 1, 1, 1, 1, 0], bool)
    owners_of, margin_of = jax.jit(outcomes.owners_of), jax.jit(outcomes.margin_of)
    assert owners_of(owned).tolist() == [0, 0, 1, 2, 3, 3]
    assert float(margin_of(owned, playable)) == pytest.approx(1 / 5)
    behind = jax.jit(outcomes.from_mover)(owned, jnp.int8(1))
    assert owners_of(behind).tolist() == [2, 2, 0, 1, 3, 3]
    assert float(margin_of(behind, playable)) == pytest.approx(-1 / 5)
