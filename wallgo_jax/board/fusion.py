"""A border that XLA's CPU compiler does not fuse across."""

from typing import TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")


def materialize(values: T, *, never: jax.Array) -> T:
    """Return arrays unchanged, stored in memory before anything reads them.

    XLA on CPU fuses cheap integer work into its consumers without limit and computes it again for
    each of their elements: the bits of a stone's moves, fused into 208 slots, made the legal mask
    50 times slower. It drops `optimization_barrier` before it fuses, but it does not fuse through a
    loop. So the values pass through a loop that takes no turn and whose body, had it one, would
    change them. Other backends get a plain barrier.

    Args:
      values: a tree of arrays.
      never: bool[], False in every possible state, in a way that the compiler cannot see.
    """

    def through_loop(tree):
        def body(carry):
            inner, _ = carry
            return jax.tree.map(_changed, inner), jnp.bool_(False)

        return jax.lax.while_loop(lambda carry: carry[1], body, (tree, never))[0]

    return jax.lax.platform_dependent(
        values, cpu=through_loop, default=jax.lax.optimization_barrier
    )


def _changed(array: jax.Array) -> jax.Array:
    return -array if jnp.issubdtype(array.dtype, jnp.floating) else jnp.invert(array)
