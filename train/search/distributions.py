"""Distributions over slots: noise, its mixture with a policy, boosts of classes of moves, visits,
and how far two are apart.

B boards, A slots, S stones a player.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.config import MOVE_CLASSES
from wallgo_jax.board.geometry import MOVE_OFFSETS, NUM_SIDES, PLAYS_PER_STONE

_STEPS = np.array([abs(row) + abs(column) for row, column in MOVE_OFFSETS])
_CLASS_OF_MOVE = 1 + _STEPS
"""The place in MOVE_CLASSES of each move, by its steps."""


def dirichlet(key: jax.Array, legal: jax.Array, *, alpha: float) -> jax.Array:
    """float32[B, A]: a symmetric Dirichlet distribution over the legal slots bool[B, A] alone."""
    # In logs: the gamma variates of a small alpha underflow.
    logs = jax.random.loggamma(key, alpha, legal.shape, jnp.float32)
    return jax.nn.softmax(logs, axis=-1, where=legal)


def mix(logits: jax.Array, noise: jax.Array, legal: jax.Array, *, fraction: float) -> jax.Array:
    """float32[B, A] logits of a policy: a fraction of noise [B, A], the rest from logits [B, A]."""
    mixed = (1 - fraction) * jax.nn.softmax(logits, axis=-1) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, jnp.finfo(mixed.dtype).tiny)), MASKED)


def boost_classes(
    logits: jax.Array, boosts: jax.Array, legal: jax.Array, in_setup: jax.Array, *, stones: int
) -> jax.Array:
    """float32[B, A]: logits with boosts of classes of moves.

    A boost is added to the plays of a class. Placements are never among plays, so that adding to
    all of them would change nothing: their logits are divided by 1 + boost, towards equal chances.

    Args:
      logits: float32[B, A].
      boosts: float32[4], of MOVE_CLASSES.
      legal: bool[B, A].
      in_setup: bool[B], whether the moves are placements.
      stones: S.
    """
    chex.assert_shape(boosts, (len(MOVE_CLASSES),))
    by_slot = np.zeros(logits.shape[1], np.int32)
    plays = np.tile(np.repeat(_CLASS_OF_MOVE, NUM_SIDES), stones)
    # A large board has more cells than plays: slots that are placements alone.
    by_slot[: stones * PLAYS_PER_STONE] = plays[: len(by_slot)]
    play = logits + boosts[by_slot][None]
    placement = logits / (1 + boosts[MOVE_CLASSES.index("placement")])
    return jnp.where(legal, jnp.where(in_setup[:, None], placement, play), MASKED)


def most_visited(visits: jax.Array, prior: jax.Array) -> jax.Array:
    """int32[B]: the slot of the most visits int32[B, A]; of several, the likeliest by its prior."""
    # A half keeps the prior from outweighing a visit.
    order = visits + 0.5 * jax.nn.softmax(prior, axis=-1)
    return order.argmax(axis=-1).astype(jnp.int32)


def draw_visited(key: jax.Array, visits: jax.Array, *, temperature: float) -> jax.Array:
    """int32[B]: slots drawn in proportion to visits int32[B, A] to the power 1 / temperature."""
    logits = jnp.where(visits > 0, jnp.log(jnp.maximum(visits, 1)) / temperature, MASKED)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def divergence(policy: jax.Array, logits: jax.Array) -> jax.Array:
    """float32[B] nats: Kullback and Leibler's, of a policy [B, A] from logits [B, A]."""
    own = jnp.log(jnp.maximum(policy, jnp.finfo(policy.dtype).tiny))
    nats = (policy * (own - jax.nn.log_softmax(logits, axis=-1))).sum(axis=-1)
    # Never negative but for rounding.
    return jnp.maximum(nats, 0.0)
