"""From rewards to targets: each position learns the true outcome of its own game."""

import jax
import jax.numpy as jnp


def outcomes(rewards: jax.Array, terminated: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What each ply's game came to in the end.

    Args:
      rewards: float32[T, B, P], paid by ply t.
      terminated: bool[T, B], whether ply t ended its game; the next ply is a new game's first.

    Returns:
      float32[T, B, P] final rewards of the game that ply t belongs to, and bool[T, B], whether
      that game has ended within the T plies.
    """

    def back(carry, now):
        later, is_known = carry
        paid, ended = now
        outcome = jnp.where(ended[:, None], paid, later)
        is_known = ended | is_known
        return (outcome, is_known), (outcome, is_known)

    nothing = (jnp.zeros_like(rewards[0]), jnp.zeros_like(terminated[0]))
    _, found = jax.lax.scan(back, nothing, (rewards, terminated), reverse=True)
    return found
