"""The smallest game: its rules, one whole game, and its env, compiled once for all tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import wallgo_jax
from tests.support.game.board_text import go, place

SMALL = wallgo_jax.Rules(size=3, stones=1, order=(0, 1))
THREE = wallgo_jax.Rules(size=3, players=3, stones=1, order=(0, 1, 2))
NUM_ACTIONS = 9 * 53

GAME = (
    place("A1", grid=3),
    place("C3", grid=3),
    go("A1", "A1", "down", grid=3),
    go("C3", "C3", "up", grid=3),
    go("A1", "A1", "right", grid=3),
)
"""Red shuts itself into its corner and loses by 1 to 8."""
MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"
"""The same with Red's walls the other way round."""
EMPTY = """\
     A   B   C
   +---+---+---+
 1 | .   .   . |
   +   +   +   +
 2 | .   .   . |
   +   +   +   +
 3 | .   .   . |
   +---+---+---+
"""
"""The first position as text, without what is told below it."""
END = """\
     A   B   C
   +---+---+---+
 1 | R r.b  .b |
   +=r=+   +   +
 2 |.b  .b  .b |
   +   +   +=b=+
 3 |.b  .b   B |
   +---+---+---+
Ply 5: over, Blue won.
Territory: Red 1, Blue 8."""
"""The last position of both as text."""


def read_game(state, key):
    """An opponent that plays the actions of `GAME`."""
    del key
    return jnp.asarray(GAME)[state._step_count]


@functools.cache
def env() -> wallgo_jax.WallGo:
    """The env of fewest planes."""
    return wallgo_jax.make(SMALL, planes="B")


@functools.cache
def states() -> tuple[wallgo_jax.State, ...]:
    """The states of `GAME`, the first one before any ply."""
    step = jax.jit(env().step)
    found = [jax.jit(env().init)()]
    for action in GAME:
        found.append(step(found[-1], np.int32(action)))
    return tuple(found)


@functools.cache
def batch() -> wallgo_jax.State:
    """`states` as one batch of NumPy arrays."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states())
