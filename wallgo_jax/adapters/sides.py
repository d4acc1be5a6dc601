"""Observations from the side of a player, as pgx's games show them."""

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax import observation
from wallgo_jax.env import WallGo
from wallgo_jax.game.state import State
from wallgo_jax.planes import orders_by_side


def observe_from(env: WallGo, game: State, sets: jax.Array, colour: jax.Array) -> jax.Array:
    """bool[grid, grid, C]: the planes with the players renumbered in order of turn from a colour.

    Args:
      sets: uint32[W, C], the planes as sets of cells (`State._planes` of the env).
      colour: int[], the player that comes first.
    """
    seen = sets[:, jnp.asarray(_orders(env))[colour]]
    return observation.show(seen, grid=env.grid, token=game.position.ply < 0)


def turn_to(env: WallGo, planes: np.ndarray, colour: int) -> np.ndarray:
    """Renumber the players of [grid, grid, C] planes on the host; the result is a copy."""
    return planes[..., _orders(env)[colour]]


def _orders(env: WallGo) -> np.ndarray:
    """int[P, C]: for each colour, the channels in the order in which it comes first."""
    return np.array(orders_by_side(env.channels, env.num_players))
