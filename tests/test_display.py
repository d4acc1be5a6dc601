"""What `print` shows of a state: one board, a batch, nothing that could be read."""

import jax
import jax.numpy as jnp
import numpy as np

import wallgo_jax
from tests.support.game import small
from tests.support.game.small import EMPTY, END, GAME, SMALL

HEADING = "WallGo 3x3, 2 players, 1 stone each\n\n"
START = f"{HEADING}{EMPTY}Ply 0: Red to place a stone.\nTerritory: Red 0, Blue 0."


def test_one_board_prints_as_a_board():
    states = small.states()
    assert str(states[0]) == f"{states[0]}" == str(states[0].game) == START
    assert str(states[-1]).startswith(f"{HEADING}{END}\nLast: R ")
    assert str(jax.device_get(states[-1]).game) == str(states[-1])


def test_a_batch_prints_its_shape_and_its_first_board():
    batch = small.batch()
    heading, head, _, name, *board = str(batch).splitlines()
    assert heading == "WallGo 3x3, 2 players, 1 stone each"
    assert head == "Batch of shape (6,): 1 of 6 over, plies 0 to 5"
    assert name == "Board 0:"
    assert board == START.splitlines()[2:]
    deep = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), batch)
    assert "\nBatch of shape (2, 3): 1 of 6 over" in str(deep.game)
    assert "\nBoard 0, 0:\n" in str(deep)
    empty = jax.tree.map(lambda leaf: leaf[:0], batch)
    assert str(empty) == "WallGo boards, 2 players\nBatch of shape (0,): no boards"


def test_sizes_and_stones_are_those_of_the_rules():
    """The arrays may have room for more stones: here for three a player."""
    five = wallgo_jax.Rules(size=5, stones=2, start=((0, 0, 0), (4, 4, 1)), order=(0, 1), tie=())
    envs = [wallgo_jax.make(each, grid=5, stones=3, planes="B") for each in (SMALL, five)]
    boards = jax.device_get(jax.jit(lambda: [env.init() for env in envs])())
    assert str(boards[0]).startswith("WallGo 3x3, 2 players, 1 stone each\n")
    assert str(boards[1]).startswith("WallGo 5x5, 2 players, 2 stones each\n")
    mixed = jax.tree.map(lambda *leaves: np.stack(leaves), *boards)
    heading = "WallGo 3x3 and 5x5, 2 players, 1 and 2 stones each\nBatch of shape (2,)"
    assert str(mixed).startswith(heading)


def test_a_game_that_was_replaced_says_its_result():
    states = small.states()
    state = jax.jit(small.env().step_auto_reset)(states[-2], GAME[-1])
    assert str(state) == f"{START}\nThe game before: Blue won."


def test_a_state_without_values_is_one_line():
    states = small.states()
    seen = []

    @jax.jit
    def traced(state):
        seen.extend([str(state), str(state.game), state._repr_html_()])
        return jax.vmap(lambda each: (seen.append(f"{each}"), each.rewards)[1])(
            jax.tree.map(lambda leaf: leaf[None], state)
        )

    traced(states[0])
    line = "<wallgo_jax.env.State, traced by JAX>"
    html = f"<pre>{line.replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    assert seen == [line, "<wallgo_jax.game.state.State, traced by JAX>", html, line]
    assert str(jax.eval_shape(small.env().init)) == "<wallgo_jax.env.State, not boards>"


def test_a_tree_that_holds_no_boards_is_one_line():
    states, batch = small.states(), small.batch()
    line = "<wallgo_jax.env.State, not boards>"
    assert str(jax.tree.map(lambda leaf: leaf.mean(), batch)) == line
    assert str(jax.tree.map(lambda leaf: None, states[0])) == line
    assert str(jax.tree.map(lambda leaf: leaf[..., :1] if leaf.ndim else leaf, batch)) == line
    gone = jax.tree.map(lambda leaf: jnp.array(leaf), states[0])
    jax.tree.map(lambda leaf: leaf.delete(), gone)
    assert str(gone) == line
