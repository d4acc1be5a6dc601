"""Keeps the part of a tree below one of its nodes, as a tree of its own. One board at a time.

Kept nodes stay in order, so that a node still comes after its parent. Node 2 becomes the root:

    0 --a-- 1                       0 --a-- 1        nodes 2 and 3 of before
    |
    +---b-- 2 --a-- 3       ->
    |
    +---c-- 4

N nodes, A slots.
"""

from typing import Any

import jax
import jax.numpy as jnp

from train.search.tree import NO_CHILD, ROOT, Tree

NOWHERE = -1
"""Stands for a node that a tree does not have."""
END = -1
"""Fills a path behind its last slot."""


def walk(tree: Tree, path: jax.Array) -> jax.Array:
    """int32[]: the node where a path int32[L] of slots leads from the root; NOWHERE if there is
    none. END stands behind the last slot."""
    node = jnp.int32(ROOT)
    for slot in path:
        child = tree.children[node, slot].astype(jnp.int32)
        further = jnp.where((child == NO_CHILD) | (node == NOWHERE), NOWHERE, child)
        node = jnp.where(slot == END, node, further)
    return node


def keep_subtree(tree: Tree, node: jax.Array) -> tuple[Tree, jax.Array]:
    """The tree of a node int32[] and all below it, and how many nodes these are.

    Args:
      tree: of one board, arrays [N, ...] and [A].
      node: becomes the root; its visits, values and prior stay, those of its step are dropped.
    """
    nodes = len(tree.parents)
    numbers = jnp.arange(nodes)
    is_kept = _is_below(tree, node)
    count = is_kept.sum()
    # The number of each kept node in the new tree, and the node of each number.
    renumbered = jnp.where(is_kept, jnp.cumsum(is_kept) - 1, NO_CHILD)
    places = jnp.where(is_kept, renumbered, nodes)
    source = jnp.zeros(nodes, jnp.int32).at[places].set(numbers, mode="drop")

    def move(array: jax.Array) -> jax.Array:
        is_there = (numbers < count).reshape(-1, *[1] * (array.ndim - 1))
        return jnp.where(is_there, array[source], jnp.zeros((), array.dtype))

    def without_step(array: jax.Array) -> jax.Array:
        return move(array).at[ROOT].set(0)

    children = renumbered[move(tree.children)]
    visits, qvalues = move(tree.visits), without_step(tree.qvalues)
    at_root = children[ROOT]
    is_seen = at_root != NO_CHILD
    moved = Tree(
        logits=move(tree.logits),
        children=children.astype(tree.children.dtype),
        positions=jax.tree.map(move, tree.positions),
        # The new root's parent is not kept, so it becomes ROOT, as it should.
        parents=jnp.where(numbers < count, renumbered[move(tree.parents)], ROOT),
        visits=visits,
        raw_values=move(tree.raw_values),
        values=move(tree.values),
        rewards=without_step(tree.rewards),
        discounts=without_step(tree.discounts),
        qvalues=qvalues,
        root_visits=jnp.where(is_seen, visits[at_root], 0),
        root_qvalues=jnp.where(is_seen, qvalues[at_root], 0.0),
        is_modelled=jax.tree.map(move, tree.is_modelled),
    )
    return moved, count


def _is_below(tree: Tree, node: jax.Array) -> jax.Array:
    """bool[N]: the node, and those from which the way up leads to it."""
    nodes = len(tree.parents)
    above: Any = jnp.where(jnp.arange(nodes) == node, node, tree.parents)
    # Each round doubles the steps upward; the node and the old root lead to themselves.
    for _ in range((nodes - 1).bit_length()):
        above = above[above]
    return (above == node) & (tree.visits > 0)
