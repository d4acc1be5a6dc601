"""The eight symmetries of the square, on positions, slots, policies and public actions.

Symmetry `g` is `g % 4` quarter turns to the left, then a mirroring of the columns for `g >= 4`; 0
is the identity:

    0       1       2       3       4       5       6       7
    # # .   . . .   . . #   # # #   . # #   . . .   # . .   # # #
    # . .   # . .   . . #   . . #   . . #   . . #   # . .   # . .
    # . .   # # #   . # #   . . .   . . #   # # #   # # .   . . .

A board smaller than its grid turns within its own square. A stone keeps its index, so in play only
the move and side axes of a slot change; in setup slots are cells.

A variant says how large the board is and which grid numbers its cells.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import (
    DOWN,
    HORIZONTAL,
    INVERSE_SYMMETRIES,
    LEFT,
    MOVE_TURNS,
    NUM_MOVES,
    NUM_SIDES,
    NUM_SYMMETRIES,
    PLAYS_PER_STONE,
    RIGHT,
    SIDE_TURNS,
    UP,
    VERTICAL,
    make_cell_turns,
)
from wallgo_jax.board.select import take
from wallgo_jax.game import actions
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.game.state import Position, State, Variant, assert_board


def inverse(symmetry: jax.Array) -> jax.Array:
    """int32[...]: the symmetries that undo these."""
    chex.assert_type(symmetry, int)
    return take(jnp.asarray(INVERSE_SYMMETRIES, dtype=jnp.int32), symmetry)


def turn_cells(cells: jax.Array, symmetry: jax.Array, variant: Variant) -> jax.Array:
    """Turn int cells [...]; negative sentinels and cells outside the board stay."""
    chex.assert_type([cells, symmetry, variant.size], int)
    table = jnp.asarray(make_cell_turns(variant.grid.side))
    size = variant.size.astype(jnp.int32)
    turned = take(table, symmetry, size, jnp.maximum(cells, 0).astype(jnp.int32))
    return jnp.where(cells < 0, cells, turned.astype(cells.dtype))


def turn_state(state: State, symmetry: jax.Array) -> State:
    """Turn a board; its variant's start turns too, so that a restart gives the turned start."""
    assert_board(state)
    chex.assert_shape(symmetry, ())
    variant, position = state
    start = turn_cells(variant.start, symmetry, variant)
    return State(variant._replace(start=start), turn_position(position, symmetry, variant))


def turn_position(position: Position, symmetry: jax.Array, variant: Variant) -> Position:
    """Turn a position: stones, walls and trail."""
    chex.assert_rank(position.stones, 2)
    chex.assert_shape([symmetry, variant.size], ())
    horizontal, vertical = HORIZONTAL, VERTICAL
    walls = bitboard.to_mask(position.walls, variant.grid.side)  # [P, 2, N]
    turned = turn_walls(walls[:, horizontal], walls[:, vertical], symmetry, variant)
    stone, origin, side = (position.trail[:, i] for i in range(3))
    sides = take(jnp.asarray(SIDE_TURNS), symmetry, jnp.maximum(side, 0))
    return position._replace(
        stones=turn_cells(position.stones, symmetry, variant),
        walls=bitboard.from_mask(jnp.stack(turned, axis=1)),
        trail=jnp.stack(
            [
                stone,
                turn_cells(origin, symmetry, variant),
                jnp.where(side < 0, side, sides),
            ],
            axis=1,
        ),
    )


def turn_masks(masks: jax.Array, symmetry: jax.Array, variant: Variant) -> jax.Array:
    """Move the values of maps over cells, [..., N], to the turned cells."""
    grid = variant.grid.side
    chex.assert_axis_dimension(masks, -1, grid * grid)
    chex.assert_shape([symmetry, variant.size], ())
    # A gather asks each new cell for its old one, so the table is that of the inverse.
    back = jnp.asarray(make_cell_turns(grid)[np.asarray(INVERSE_SYMMETRIES)])
    return take(masks, take(back, symmetry, variant.size.astype(jnp.int32)), axis=-1)


def turn_walls(
    horizontal: jax.Array, vertical: jax.Array, symmetry: jax.Array, variant: Variant
) -> tuple[jax.Array, jax.Array]:
    """Turn wall maps: walls below and right of cells, each [..., N].

    A quarter turn makes horizontal walls of vertical ones and changes the cell that keeps them. So
    each cell's four sides are read off, turned with the cell, and written back.
    """
    chex.assert_equal_shape([horizontal, vertical])
    # The wall above a cell is kept by the cell above, the wall left of it by the cell on the left.
    above = _shift_rows(horizontal, variant.grid.side)
    before = _shift_columns(vertical, variant.grid.side)
    by_side = {UP: above, RIGHT: vertical, DOWN: horizontal, LEFT: before}
    sides = jnp.stack([by_side[side] for side in range(NUM_SIDES)], axis=-2)  # [..., 4, N]
    moved = turn_masks(sides, symmetry, variant)
    back = SIDE_TURNS[np.asarray(INVERSE_SYMMETRIES)]  # old side of each new side
    moved = take(moved, take(jnp.asarray(back), symmetry).astype(jnp.int32), axis=-2)
    # Every wall was read off on both of its sides; the upper or left one is enough to write it.
    return moved[..., DOWN, :], moved[..., RIGHT, :]


def _shift_rows(mask: jax.Array, grid: int) -> jax.Array:
    """Move each row's values to the row below; the first row becomes zeros."""
    return jnp.pad(mask[..., :-grid], [(0, 0)] * (mask.ndim - 1) + [(grid, 0)])


def _shift_columns(mask: jax.Array, grid: int) -> jax.Array:
    """Move each column's values one column to the right; the first column becomes zeros."""
    square = mask.reshape(*mask.shape[:-1], grid, grid)
    padded = jnp.pad(square[..., :-1], [(0, 0)] * mask.ndim + [(1, 0)])
    return padded.reshape(mask.shape)


def _make_play_turns() -> np.ndarray:
    """int16[8, 52]: the new `move * 4 + side` of each, by symmetry."""
    table = np.zeros((NUM_SYMMETRIES, PLAYS_PER_STONE), dtype=np.int16)
    for g in range(NUM_SYMMETRIES):
        for move in range(NUM_MOVES):
            for side in range(NUM_SIDES):
                table[g, move * NUM_SIDES + side] = (
                    MOVE_TURNS[g, move] * NUM_SIDES + SIDE_TURNS[g, side]
                )
    return table


PLAY_TURNS = _make_play_turns()


def turn_slot(
    slot: jax.Array, symmetry: jax.Array, in_setup: jax.Array, variant: Variant
) -> jax.Array:
    """int32[...]: the slots of turned actions, in the given phase."""
    chex.assert_type([slot, symmetry, variant.size], int)
    chex.assert_type(in_setup, bool)
    play = slot % PLAYS_PER_STONE
    turned = slot - play + take(jnp.asarray(PLAY_TURNS), symmetry, play).astype(jnp.int32)
    cell = jnp.minimum(slot, variant.grid.side**2 - 1)
    return jnp.where(in_setup, turn_cells(cell, symmetry, variant), turned)


def turn_policy(
    policy: jax.Array, symmetry: jax.Array, in_setup: jax.Array, variant: Variant
) -> jax.Array:
    """Move [A] values over slots to the turned slots, in the given phase, bool[]."""
    chex.assert_rank(policy, 1)
    chex.assert_shape([symmetry, in_setup, variant.size], ())
    (slots,) = policy.shape
    source = turn_slot(jnp.arange(slots), inverse(symmetry), in_setup, variant)
    # In setup the slots behind the last cell name nothing; they stay where they are.
    beyond = in_setup & (jnp.arange(slots) >= variant.grid.side**2)
    return take(policy, jnp.where(beyond, jnp.arange(slots), jnp.minimum(source, slots - 1)))


def turn_action(action: jax.Array, symmetry: jax.Array, variant: Variant) -> jax.Array:
    """int32[...]: the turned public actions."""
    chex.assert_type([action, symmetry, variant.size], int)
    first = first_placement(variant.grid.side)
    action = jnp.asarray(action).astype(jnp.int32)
    is_placement = action >= first
    cell = jnp.where(is_placement, action - first, action // PLAYS_PER_STONE)
    cell = turn_cells(cell, symmetry, variant)
    play = take(jnp.asarray(PLAY_TURNS), symmetry, action % PLAYS_PER_STONE).astype(jnp.int32)
    return jnp.where(is_placement, first + cell, cell * PLAYS_PER_STONE + play)


def phase_of(state: State) -> jax.Array:
    """bool: whether slots are cells now, which decides how a policy turns."""
    return actions.in_setup(*state)
