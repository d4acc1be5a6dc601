"""A barrier that XLA's CPU compiler does not fuse across."""

import collections
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")


def fusion_barrier(values: T, *, token: jax.Array) -> T:
    """Return arrays unchanged, stored in memory before anything reads them.

    XLA on CPU fuses cheap integer work into its consumers without limit and computes it again for
    each of their elements: the bits of a stone's moves, fused into 208 slots, made the legal mask
    50 times slower. XLA drops `optimization_barrier` before it fuses, but it does not fuse through
    a loop. So the values pass through a loop whose body never runs. Other backends get a plain
    barrier.

    Args:
      values: a tree of arrays.
      token: bool[], False in every possible state, in a way that the compiler cannot see, such as
        `ply < 0`. The loop runs while it holds.
    """

    return jax.lax.platform_dependent(
        values,
        token,
        cpu=_through_loop,
        default=lambda tree, token: jax.lax.optimization_barrier(tree),
    )


@jax.custom_batching.custom_vmap
def _through_loop(tree: Any, token: jax.Array) -> Any:
    def body(carry):
        inner, _ = carry
        # A body that returned its values unchanged would be seen through, and the loop removed.
        return _changed(inner), jnp.bool_(False)

    return jax.lax.while_loop(lambda carry: carry[1], body, (tree, token))[0]


@_through_loop.def_vmap
def _through_one_loop(
    axis_size: int, in_batched: list[Any], tree: Any, token: jax.Array
) -> tuple[Any, Any]:
    """Let the first board's token decide for all boards."""
    # A token of its own for each board would turn the loop into selects over all the values. The
    # token is False on every board, so that the first one tells as much as all together.
    del axis_size
    is_batched, is_token_batched = in_batched
    return _through_loop(tree, token[0] if is_token_batched else token), is_batched


def _changed(tree: Any) -> Any:
    """Change every array of a tree."""
    # Arrays of one shape and type swap places, which needs no code. An array without a partner is
    # negated or inverted.
    leaves, structure = jax.tree.flatten(tree)
    alike = collections.defaultdict(list)
    for index, leaf in enumerate(leaves):
        alike[leaf.shape, leaf.dtype].append(index)
    changed = list(leaves)
    for places in alike.values():
        for place, other in zip(places, [*places[1:], places[0]], strict=True):
            changed[place] = leaves[other] if len(places) > 1 else _inverted(leaves[place])
    return jax.tree.unflatten(structure, changed)


def _inverted(array: jax.Array) -> jax.Array:
    return -array if jnp.issubdtype(array.dtype, jnp.floating) else jnp.invert(array)
