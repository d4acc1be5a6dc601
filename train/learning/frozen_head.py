"""A small head that is trained on frozen features to answer yes or no.

N samples, F features, U hidden units.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from train.runtime.host import fetch

Array = jax.Array | np.ndarray

_HELD_SHARE = 5
"""One in so many samples is not trained on and chooses the epoch."""
_HIDDEN, _EPOCHS = 64, 60
"""Units of the hidden layer, and passes over the samples."""
_BATCH = 128
"""Samples of a step, fewer where there are fewer."""


class Head(NamedTuple):
    """tanh(relu((x - mean) / spread · first + first_bias) · last + last_bias)."""

    mean: Array  # float32[F]
    spread: Array  # float32[F], above 0
    first: Array  # float32[F, U]
    first_bias: Array  # float32[U]
    last: Array  # float32[U]
    last_bias: Array  # float32[]


def fit_head(
    features: np.ndarray, labels: np.ndarray, *, seed: int, learning_rate: float = 1e-3
) -> Head:
    """Train a head to -1 for no and +1 for yes, by squared error and Adam on shuffled batches.

    The last fifth of the samples is not trained on; the head is that of the epoch with the least
    error there.

    Args:
      features: float[N, F], N at least 5.
      labels: bool[N], about as many of each.
      seed: of the first weights and of the order of samples.
      learning_rate: of Adam.
    """
    count = len(features)
    chex.assert_shape([features, labels], [(count, None), (count,)])
    trained = count - count // _HELD_SHARE
    mean, spread = features[:trained].mean(axis=0), features[:trained].std(axis=0)
    # Sums of equal numbers spread by rounding alone.
    spread = np.where(spread > 1e-6 * (1 + abs(mean)), spread, 1.0)
    known = np.asarray((features - mean) / spread, np.float32)
    targets = np.where(labels, 1.0, -1.0).astype(np.float32)
    weights = fetch(
        _train(
            (known[:trained], targets[:trained]),
            (known[trained:], targets[trained:]),
            jax.random.key(seed),
            learning_rate=learning_rate,
        )
    )
    return Head(np.asarray(mean, np.float32), np.asarray(spread, np.float32), *weights)


@jax.jit
def head_scores(head: Head, features: jax.Array) -> jax.Array:
    """float32[N] in [-1, 1], the answers to float[N, F]: above 0 for yes."""
    return _answers(head[2:], (features - head.mean[None]) / head.spread[None])


def _answers(weights: Any, known: jax.Array) -> jax.Array:
    """float32[N] for standardised float32[N, F]."""
    first, first_bias, last, last_bias = weights
    return jnp.tanh(jax.nn.relu(known @ first + first_bias[None]) @ last + last_bias)


def _error(weights: Any, known: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((_answers(weights, known) - targets) ** 2)


@functools.partial(jax.jit, static_argnames="learning_rate")
def _train(
    samples: tuple[jax.Array, jax.Array],
    held: tuple[jax.Array, jax.Array],
    key: jax.Array,
    *,
    learning_rate: float,
) -> Any:
    """The weights of the best epoch, by one scan over epochs and batches."""
    known, targets = samples
    count, width = known.shape
    batch = min(_BATCH, count)
    steps, optimizer = count // batch, optax.adam(learning_rate)
    init_key, order_key = jax.random.split(key)
    first = jax.random.normal(init_key, (width, _HIDDEN), jnp.float32) * (2 / width) ** 0.5
    weights = (
        first,
        *(jnp.zeros(shape, jnp.float32) for shape in (_HIDDEN, _HIDDEN, ())),
    )

    def step(state: Any, rows: jax.Array) -> tuple[Any, None]:
        weights, moments = state
        gradient = jax.grad(_error)(weights, known[rows], targets[rows])
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(weights, updates), moments), None

    def epoch(carry: Any, key: jax.Array) -> tuple[Any, None]:
        state, best, least = carry
        order = jax.random.permutation(key, count)[: steps * batch]
        state, _ = jax.lax.scan(step, state, order.reshape(steps, batch))
        error = _error(state[0], *held)
        best = jax.tree.map(lambda new, old: jnp.where(error < least, new, old), state[0], best)
        return (state, best, jnp.minimum(error, least)), None

    start = ((weights, optimizer.init(weights)), weights, jnp.inf)
    (_, best, _), _ = jax.lax.scan(epoch, start, jax.random.split(order_key, _EPOCHS))
    return best
