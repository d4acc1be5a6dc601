"""Choices by comparison: they fuse into their consumers, which a gather does not."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

_FEW = 8
"""Most entries that are compared one by one, each over a batch at once."""


def pick(values: jax.Array, index: jax.Array) -> jax.Array:
    """Return `values[index]` of `[n, ...]` values in their dtype; 0 where the index is out of
    range."""
    hit = jnp.arange(values.shape[0], dtype=index.dtype) == index
    hit = hit.reshape(-1, *[1] * (values.ndim - 1))
    if values.dtype == jnp.bool_:
        return (hit & values).any(axis=0)
    return jnp.sum(jnp.where(hit, values, 0), axis=0, dtype=values.dtype)


def choose(values: Sequence[jax.Array] | jax.Array, index: jax.Array) -> jax.Array:
    """Return `values[index]` of a few arrays of one shape, by one select for each.

    An index out of range gives the last.
    """
    chosen = values[-1]
    for place in reversed(range(len(values) - 1)):
        chosen = jnp.where(index == place, values[place], chosen)
    return chosen


# Inlined, the function leaves no call in a program; JAX traces it once for all programs of a shape.
@functools.partial(jax.jit, inline=True, static_argnames=("axis", "width"))
def take(
    values: jax.Array, *indices: jax.Array, axis: int = 0, width: int | None = None
) -> jax.Array:
    """Return `values[indices]` for indices that differ from board to board; on a TPU by comparison.

    A TPU gathers in a dozen cycles an entry, or rows of two axes in a loop of a turn a row, board
    after board. A comparison with every place of a short axis is done for a thousand boards at
    once. Elsewhere the gather is cheaper.

    Args:
      values: [..., n, ...].
      indices: int[...] each, in range, of the axes from `axis` on. On a TPU they are compared where
        all but the last are scalars.
      axis: negative from the last axis down, for a single index alone.
      width: entries of the last axis to return; by default all.
    """
    axis %= values.ndim
    gather = functools.partial(take_by_gather, axis=axis, width=width)
    if any(index.ndim for index in indices[:-1]):
        return gather(values, *indices)
    compare = functools.partial(take_by_comparison, axis=axis, width=width)
    return jax.lax.platform_dependent(values, *indices, tpu=compare, default=gather)


def take_by_gather(
    values: jax.Array, *indices: jax.Array, axis: int = 0, width: int | None = None
) -> jax.Array:
    """Return what `take` does, `axis` from 0 on."""
    cut = () if width is None else (..., slice(width))
    return values[(slice(None),) * axis + indices + cut]


def take_by_comparison(
    values: jax.Array, *indices: jax.Array, axis: int = 0, width: int | None = None
) -> jax.Array:
    """Return what `take` does, `axis` from 0 on; a zero may lose its sign."""
    for index in indices:
        rows, flat = jnp.moveaxis(values, axis, 0), index.reshape(-1)
        if flat.shape[0] <= _FEW:
            # Compared all at once, their axis and that of the rows would take the lanes of boards.
            taken = jnp.stack([pick(rows, flat[i]) for i in range(flat.shape[0])])
        else:
            taken = jax.vmap(functools.partial(pick, rows))(flat)
        taken = taken.reshape(index.shape + rows.shape[1:])
        values = jnp.moveaxis(taken, range(index.ndim), range(axis, axis + index.ndim))
    # Cut before, the gradient would be padded again over all rows.
    return values if width is None else values[..., :width]
