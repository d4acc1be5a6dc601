"""A small head that is trained on frozen features to answer yes or no.

N samples, F features, U hidden units.
"""

import dataclasses
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


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """How a head is trained, by Adam on shuffled batches.

    Attributes:
      hidden: units of its hidden layer.
      epochs: passes over the samples.
      batch: samples of a step; fewer where there are fewer.
      learning_rate: of Adam.
    """

    hidden: int = 64
    epochs: int = 60
    batch: int = 128
    learning_rate: float = 1e-3


class Head(NamedTuple):
    """tanh(relu((x - mean) / spread · first + first_bias) · last + last_bias)."""

    mean: Array  # float32[F]
    spread: Array  # float32[F], above 0
    first: Array  # float32[F, U]
    first_bias: Array  # float32[U]
    last: Array  # float32[U]
    last_bias: Array  # float32[]


def fit_head(
    features: np.ndarray, labels: np.ndarray, *, seed: int, config: HeadConfig | None = None
) -> Head:
    """Train a head to -1 for no and +1 for yes, by squared error.

    The last fifth of the samples is not trained on; the head is that of the epoch with the least
    error there.

    Args:
      features: float[N, F], N at least 5.
      labels: bool[N], about as many of each.
      seed: of the first weights and of the order of samples.
      config: how it is trained; None for the defaults.
    """
    config = config or HeadConfig()
    count = len(features)
    chex.assert_shape([features, labels], [(count, None), (count,)])
    kept = count - count // _HELD_SHARE
    mean, spread = features[:kept].mean(axis=0), features[:kept].std(axis=0)
    # Sums of equal numbers spread by rounding alone.
    spread = np.where(spread > 1e-6 * (1 + abs(mean)), spread, 1.0)
    known = np.asarray((features - mean) / spread, np.float32)
    targets = np.where(labels, 1.0, -1.0).astype(np.float32)
    weights = fetch(
        _train(
            (known[:kept], targets[:kept]),
            (known[kept:], targets[kept:]),
            jax.random.key(seed),
            config=dataclasses.replace(config, batch=min(config.batch, kept)),
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


@functools.partial(jax.jit, static_argnames="config")
def _train(
    samples: tuple[jax.Array, jax.Array],
    held: tuple[jax.Array, jax.Array],
    key: jax.Array,
    *,
    config: HeadConfig,
) -> Any:
    """The weights of the best epoch, by one scan over epochs and batches."""
    known, targets = samples
    count, width = known.shape
    steps = count // config.batch
    optimizer = optax.adam(config.learning_rate)
    init_key, order_key = jax.random.split(key)
    first = jax.random.normal(init_key, (width, config.hidden), jnp.float32) * (2 / width) ** 0.5
    weights = (
        first,
        *(jnp.zeros(shape, jnp.float32) for shape in (config.hidden, config.hidden, ())),
    )

    def step(state: Any, rows: jax.Array) -> tuple[Any, None]:
        weights, moments = state
        gradient = jax.grad(_error)(weights, known[rows], targets[rows])
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(weights, updates), moments), None

    def epoch(carry: Any, key: jax.Array) -> tuple[Any, None]:
        state, best, least = carry
        order = jax.random.permutation(key, count)[: steps * config.batch]
        state, _ = jax.lax.scan(step, state, order.reshape(steps, config.batch))
        error = _error(state[0], *held)
        best = jax.tree.map(lambda new, old: jnp.where(error < least, new, old), state[0], best)
        return (state, best, jnp.minimum(error, least)), None

    start = ((weights, optimizer.init(weights)), weights, jnp.inf)
    (_, best, _), _ = jax.lax.scan(epoch, start, jax.random.split(order_key, config.epochs))
    return best
