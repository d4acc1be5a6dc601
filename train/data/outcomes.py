"""Outcomes of games, and the targets that follow from them for each position of a game.

T plies, B boards, P players, W words of a set of cells, N cells.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from train.game import take


class Outcome(NamedTuple):
    """The end of a game, by player; zeros where a ply did not end its game."""

    rewards: jax.Array  # float32[..., P]
    owned: jax.Array  # uint32[..., P, W], the cells of each player's territory


def backfill_outcomes(step_outcome: Outcome, terminated: jax.Array) -> tuple[Outcome, jax.Array]:
    """Give each ply the outcome of its game.

    Args:
      step_outcome: [T, B], of the game where the ply ended it.
      terminated: bool[T, B], whether the ply ended its game; the next ply is a new game's first.

    Returns:
      The outcome [T, B] of each ply's game, and bool[T, B], whether that game ended within the T
      plies. Where it did not, the outcome is zeros.
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
    _, outcomes = jax.lax.scan(back, nothing, (step_outcome, terminated), reverse=True)
    return outcomes


def from_mover(values: jax.Array, player: jax.Array) -> jax.Array:
    """Roll values [P, ...] by player so that `player` comes first, the others in order of turn."""
    players = values.shape[0]
    return take(values, (player.astype(jnp.int32) + jnp.arange(players)) % players)


def winner_of(outcome: jax.Array) -> jax.Array:
    """int32[], the winner by float32[P] rewards; P for a draw."""
    return jnp.where(outcome.max() > 0, outcome.argmax(), outcome.shape[0]).astype(jnp.int32)


def owners_of(owned: jax.Array) -> jax.Array:
    """int32[N], the owner of each cell by bool[P, N] territories; P for nobody."""
    return jnp.where(owned.any(axis=0), owned.argmax(axis=0), owned.shape[0]).astype(jnp.int32)


def margin_of(owned: jax.Array, playable: jax.Array) -> jax.Array:
    """float32[] in [-1, 1], the first player's lead in cells over the number of playable cells.

    Args:
      owned: bool[P, N], territories.
      playable: bool[N].
    """
    areas = owned.sum(axis=1)
    return (areas[0] - areas[1:].max()) / playable.sum()


def _where(condition: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(condition.reshape(condition.shape + (1,) * (new.ndim - 1)), new, old)
