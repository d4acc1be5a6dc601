"""Starts of games from the replay, with plies made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train.data.test_replay import fake_plies, fill
from train.data.exploration import Opening
from train.data.restarts import Starts, draw_starts, restart

ROWS, BOARDS = 12, 3
# Two games a board, of 4 and 5 plies; 3 plies of a third that is not over.
ENDED = np.zeros((ROWS, BOARDS), bool)
ENDED[[3, 8]] = True
PLY = np.array([0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1, 2])
# The value is the mover's outcome but at two plies of the second game, and one of the third.
WRONG = np.isin(np.arange(ROWS), [6, 7, 10])


@pytest.fixture(scope="module")
def held():
    player = np.broadcast_to((PLY % 2)[:, None], ENDED.shape)
    rewards = np.where(ENDED[..., None], np.array([1.0, -1.0]), 0.0)
    plies = fake_plies(0, ENDED, player=player)
    plies = plies._replace(outcome=plies.outcome._replace(rewards=jnp.asarray(rewards, jnp.float32)))
    value = np.where(player == 0, 1.0, -1.0) * np.where(WRONG, -1.0, 1.0)[:, None]
    ply = np.broadcast_to(PLY[:, None], ENDED.shape)
    position = plies.position._replace(ply=jnp.asarray(ply, jnp.int16))
    value[1] = np.nan  # no search found it
    plies = plies._replace(position=position, root_value=jnp.asarray(value, jnp.float32))
    return fill(plies, rows=ROWS, length=3)


def rows_of(starts: Starts) -> np.ndarray:
    row, board = np.moveaxis(np.asarray(starts.position.stones), -1, 0)
    np.testing.assert_array_equal(board, np.arange(BOARDS)[:, None].repeat(board.shape[1], 1))
    return row


def test_likeliest_are_plies_of_finished_games_whose_value_was_wrong(held):
    draw = jax.jit(draw_starts, static_argnames=("newest",))
    starts = draw(held, jax.random.key(0), newest=ROWS, temperature=0.05)
    assert np.asarray(starts.exists).all()
    rows = rows_of(starts)
    assert all({6, 7} < set(of_board) <= {1, 2, 3, 5, 6, 7, 8} for of_board in rows.tolist())
    starts = draw(held, jax.random.key(0), newest=5, temperature=0.05)
    assert np.asarray(starts.exists).sum(axis=1).tolist() == [2] * BOARDS, "rows 7 and 8 are new"
    assert set(rows_of(starts)[np.asarray(starts.exists)]) == {7, 8}


def test_games_that_restart_lose_their_opening_and_others_keep_it(held):
    starts = draw_starts(held, jax.random.key(0), newest=ROWS, temperature=0.05)
    starts = starts._replace(exists=starts.exists.at[2].set(False))
    position = jax.tree.map(lambda x: jnp.zeros_like(x[:, 0]), starts.position)
    opening = Opening(jnp.ones(3, bool), jnp.full(3, 7, jnp.int16), jnp.ones(3, bool))
    over = jnp.array([True, False, True])
    after, opening = restart(starts, over, position, opening, jax.random.key(0), 1.0)
    assert after.ply.tolist()[0] > 0 and after.ply.tolist()[1:] == [0, 0]
    assert opening.plies.tolist() == [0, 7, 7]
    assert opening.has_setup.tolist() == opening.is_random.tolist() == [False, True, True]
