"""Boards in the corner of a larger grid as boards of their own grid, which is what solvers know.

Size 3 in grid 5, and in its own:

     0  1  2  .  .
     5  6  7  .  .        0  1  2
    10 11 12  .  .        3  4  5
     .  .  .  .  .        6  7  8
     .  .  .  .  .
"""

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.game import actions
from wallgo_jax.game.state import NOT_PLACED, Grid, Sizes, State, sizes_of_state


def to_own_grid(state: State, own: Sizes) -> State:
    """One board with the grid and the room for stones of its own sizes; the trail stays as it is.

    Args:
      state: a board whose grid and room for stones are at least those, for as many players.
      own: of the board.
    """
    if sizes_of_state(state) == own:
        return state
    variant, position = state
    cells = _make_cells(own.grid, state.grid)

    def crop(words: jax.Array) -> jax.Array:
        return bitboard.from_mask(bitboard.to_mask(words, state.grid)[..., cells])

    def renumber(stones: jax.Array) -> jax.Array:
        stones = stones[:, : own.stones]
        row, column = jnp.divmod(stones, state.grid)
        return jnp.where(stones == NOT_PLACED, stones, row * own.grid + column)

    variant = variant._replace(
        playable=crop(variant.playable),
        start=renumber(variant.start),
        order=variant.order[: own.players * own.stones],
        grid=Grid(own.grid),
    )
    position = position._replace(stones=renumber(position.stones), walls=crop(position.walls))
    return State(variant, position)


def slot_in(state: State, slot: jax.Array, own: Sizes) -> jax.Array:
    """int32: the slot of a board that `to_own_grid` made, in the board that it was made of."""
    cell = slot // own.grid * state.grid + slot % own.grid
    return jnp.where(actions.in_setup(*state), cell, slot).astype(jnp.int32)


def _make_cells(size: int, grid: int) -> np.ndarray:
    """int[size²]: the cells of the board, numbered by the larger grid."""
    return (np.arange(size)[:, None] * grid + np.arange(size)).ravel()
