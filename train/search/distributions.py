"""Distributions over slots: noise, its mixture with a policy, visits, and how far two are apart.

B boards, A slots.
"""

import jax
import jax.numpy as jnp

from train.network import MASKED


def dirichlet(key: jax.Array, legal: jax.Array, *, alpha: float) -> jax.Array:
    """float32[B, A]: a symmetric Dirichlet distribution over the legal slots bool[B, A] alone."""
    # In logs: the gamma variates of a small alpha underflow.
    logs = jax.random.loggamma(key, alpha, legal.shape, jnp.float32)
    return jax.nn.softmax(logs, axis=-1, where=legal)


def mix(logits: jax.Array, noise: jax.Array, legal: jax.Array, *, fraction: float) -> jax.Array:
    """float32[B, A] logits of a policy: a fraction of noise [B, A], the rest from logits [B, A]."""
    mixed = (1 - fraction) * jax.nn.softmax(logits, axis=-1) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, jnp.finfo(mixed.dtype).tiny)), MASKED)


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
