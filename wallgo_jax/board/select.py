"""Choices by comparison: they fuse into their consumers, which a gather does not."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def pick(values: jax.Array, index: jax.Array) -> jax.Array:
    """Return `values[index]` of `[n]` values in their dtype; 0 where the index is out of range."""
    hit = jnp.arange(values.shape[0], dtype=index.dtype) == index
    return jnp.sum(jnp.where(hit, values, 0), dtype=values.dtype)


def choose(values: Sequence[jax.Array] | jax.Array, index: jax.Array) -> jax.Array:
    """Return `values[index]` of a few arrays of one shape, by one select for each.

    An index out of range gives the last.
    """
    chosen = values[-1]
    for place in reversed(range(len(values) - 1)):
        chosen = jnp.where(index == place, values[place], chosen)
    return chosen
