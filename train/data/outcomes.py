"""From the ends of games to targets: each position learns what its own game came to.

T plies, B boards, P players, W words of a set of cells, N cells.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Outcome(NamedTuple):
    """What a finished game came to, by player; zeros where a ply did not end its game."""

    rewards: jax.Array  # float32[..., P]
    owned: jax.Array  # uint32[..., P, W], the cells of each player's territory


def backfill_outcomes(step_outcome: Outcome, terminated: jax.Array) -> tuple[Outcome, jax.Array]:
    """What each ply's game came to in the end.

    Args:
      paid: [T, B], of the plies that ended a game.
      terminated: bool[T, B], whether ply t ended its game; the next ply is a new game's first.

    Returns:
      The ending [T, B] of the game that ply t belongs to, and bool[T, B], whether that game has
      ended within the T plies.
    """

    def back(carry, now):
        later, is_known = carry
        end, ended = now
        end = jax.tree.map(lambda new, old: _where(ended, new, old), end, later)
        is_known = ended | is_known
        return (end, is_known), (end, is_known)

    nothing = (
        jax.tree.map(lambda x: jnp.zeros_like(x[0]), step_outcome),
        jnp.zeros_like(terminated[0]),
    )
    _, found = jax.lax.scan(back, nothing, (step_outcome, terminated), reverse=True)
    return found


def from_mover(values: jax.Array, player: jax.Array) -> jax.Array:
    """[P, ...] by player, as seen by `player`: itself first, then the others in order of turn."""
    players = values.shape[0]
    return values[(player.astype(jnp.int32) + jnp.arange(players)) % players]


def winner_of(outcome: jax.Array) -> jax.Array:
    """int32: which of float32[P] rewards is the sole winner's; P for a draw."""
    return jnp.where(outcome.max() > 0, outcome.argmax(), outcome.shape[0]).astype(jnp.int32)


def owners_of(owned: jax.Array) -> jax.Array:
    """int32[N]: who owns each cell, of bool[P, N] territories; P for nobody."""
    return jnp.where(owned.any(axis=0), owned.argmax(axis=0), owned.shape[0]).astype(jnp.int32)


def margin_of(owned: jax.Array, playable: jax.Array) -> jax.Array:
    """float32 in [-1, 1]: cells by which the first of bool[P, N] territories is larger than the
    largest other, over the bool[N] playable cells."""
    areas = owned.sum(axis=1)
    return (areas[0] - areas[1:].max()) / playable.sum()


def _where(condition: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(condition.reshape(condition.shape + (1,) * (new.ndim - 1)), new, old)
