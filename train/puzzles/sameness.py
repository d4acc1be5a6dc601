"""Positions that are the same puzzle: turned or mirrored boards, and boards of other colours."""

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.host import fetch
from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game import symmetry as symmetry_lib
from wallgo_jax.game.state import Position, State


def sameness_key(state: State) -> bytes:
    """Equal for two positions of the same rules where one is the other, seen from another side of
    the board or with the colours passed on, whoever built its walls."""
    turned = fetch(_turn_by_all(state))
    return min(_flat(jax.tree.map(lambda x, i=i: x[i], turned)) for i in range(NUM_SYMMETRIES))


@jax.jit
def _turn_by_all(state: State) -> Position:
    """The position [8] turned by each symmetry, its walls as a mask of one builder."""

    def turn(symmetry: jax.Array) -> Position:
        turned = symmetry_lib.turn_position(state.position, symmetry, state.variant)
        walls = bitboard.to_mask(turned.walls, state.grid).any(axis=0)
        return turned._replace(walls=walls)

    return jax.vmap(turn)(jnp.arange(NUM_SYMMETRIES))


def _flat(position: Position) -> bytes:
    """Stones without their order, the player to move first, and the walls."""
    stones = np.roll(np.sort(position.stones, axis=1), -int(position.player), axis=0)
    return stones.tobytes() + np.packbits(position.walls).tobytes()
