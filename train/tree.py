"""A search tree for each board of a batch, grown by one visit a simulation.

Search as mctx does it ("mctx: MCTS-in-JAX", Google DeepMind, Apache License 2.0; Babuschkin et al.,
"The DeepMind JAX Ecosystem", 2020), visit for visit and key for key, laid out for boards:

- What mctx keeps of each edge, for all slots of a node, is kept once, at the node below it: its
  visits, the value of the step, the reward, the discount. Two arrays by slot are left, the prior
  and the children; the way back up touches none of them.
- The ways down and up loop over the batch as a whole: `vmap` of a loop would choose between all of
  the old and the new tree at each level.
- A step that ends the game (discount 0) is played again in place when it is visited again. mctx
  goes on below it, one node deeper each time; nothing of that comes back through a discount of 0,
  but the whole batch would wait for the deepest such chain.
- At the root a slot is chosen by another rule than below it, once, outside the loop.

B boards, N nodes, A slots.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

ROOT = 0
NO_CHILD = ROOT
"""Stands for a child that is not there: the root is nobody's."""


class Tree(NamedTuple):
    """What is known of each node; of a node that is not there yet, zeros.

    A value is that of the side to move at the node; a worth, a reward and a discount are of the
    step that leads to the node, for the side that makes it.
    """

    logits: jax.Array  # float32[B, N, A], prior
    children: jax.Array  # uint8, uint16 or uint32[B, N, A], a node or NO_CHILD
    positions: Any  # a tree of arrays [B, N, ...]
    parents: jax.Array  # int32[B, N]
    visits: jax.Array  # int32[B, N]
    raw_values: jax.Array  # float32[B, N], as first judged
    values: jax.Array  # float32[B, N], mean of all visits
    rewards: jax.Array  # float32[B, N]
    discounts: jax.Array  # float32[B, N]; 0 where the step ends the game
    worths: jax.Array  # float32[B, N], reward + discount * value


class Node(NamedTuple):
    """One node of each board and, by slot, what is known of the steps from it."""

    logits: jax.Array  # float32[B, A], prior
    raw_value: jax.Array  # float32[B]
    value: jax.Array  # float32[B]
    visits: jax.Array  # int32[B]
    slot_visits: jax.Array  # int32[B, A]
    slot_worths: jax.Array  # float32[B, A], 0 where not visited


class Step(NamedTuple):
    """One step of each board and the judgement of the position after it."""

    reward: jax.Array  # float32[B]
    discount: jax.Array  # float32[B]
    logits: jax.Array  # float32[B, A]
    value: jax.Array  # float32[B]
    position: Any  # a tree of arrays [B, ...]


Select = Callable[[jax.Array, Node], jax.Array]
"""(keys [B], node) -> the slot to visit next, int32[B]."""

Play = Callable[[jax.Array, Any], Step]
"""(slot int32[B], position [B]) -> Step."""


def plant(logits: jax.Array, value: jax.Array, position: Any, *, nodes: int) -> Tree:
    """A tree of the root alone, with room for so many nodes.

    Args:
      logits: float32[B, A], the root's prior.
      value: float32[B], as judged.
      position: of the root, a tree of arrays [B, ...]; whatever `play` takes.
      nodes: the root and one a simulation.
    """
    chex.assert_equal_shape_prefix([logits, value], 1)
    boards, slots = logits.shape

    def room(root: jax.Array) -> jax.Array:
        empty = jnp.zeros((boards, nodes, *root.shape[1:]), root.dtype)
        return empty.at[:, ROOT].set(root)

    nothing = jnp.zeros((boards, nodes))
    return Tree(
        logits=room(logits),
        children=jnp.full((boards, nodes, slots), NO_CHILD, np.min_scalar_type(nodes - 1)),
        positions=jax.tree.map(room, position),
        parents=jnp.full((boards, nodes), ROOT),
        visits=room(jnp.ones(boards, jnp.int32)),
        raw_values=room(value),
        values=room(value),
        rewards=nothing,
        discounts=nothing,
        worths=nothing,
    )


def grow(tree: Tree, key: jax.Array, *, at_root: Select, below: Select, play: Play) -> Tree:
    """Visit a tree of the root alone until there is no room for another node.

    Args:
      key: consumed, in mctx's order.
      at_root: chooses a slot of the root.
      below: chooses a slot of any other node.
      play: makes a step and judges what follows.
    """
    boards, nodes = tree.visits.shape

    def simulate(carry: tuple[jax.Array, Tree], fresh: jax.Array):
        key, tree = carry
        key, walk_key, _ = jax.random.split(key, 3)
        keys = jax.random.split(walk_key, boards)
        parent, slot, child = _walk(tree, keys, at_root=at_root, below=below)
        node = jnp.where(child == NO_CHILD, fresh, child)
        step = play(slot, jax.tree.map(lambda x: _of(x, parent), tree.positions))
        return (key, _back_up(_expand(tree, parent, slot, node, step), node)), None

    return jax.lax.scan(simulate, (key, tree), jnp.arange(1, nodes))[0][1]


def look(tree: Tree, node: jax.Array) -> Node:
    """One node int32[B] of each board."""
    children = _of(tree.children, node).astype(jnp.int32)
    is_seen = children != NO_CHILD
    visits, worths = (
        jnp.take_along_axis(x, children, axis=1, mode="promise_in_bounds")
        for x in (tree.visits, tree.worths)
    )
    return Node(
        logits=_of(tree.logits, node),
        raw_value=_of(tree.raw_values, node),
        value=_of(tree.values, node),
        visits=_of(tree.visits, node),
        slot_visits=jnp.where(is_seen, visits, 0),
        slot_worths=jnp.where(is_seen, worths, 0.0),
    )


class _Walk(NamedTuple):
    """How far the boards have come on the way down."""

    keys: jax.Array  # [B]
    node: jax.Array  # int32[B]
    slot: jax.Array  # int32[B], chosen at the node
    child: jax.Array  # int32[B], where it leads
    goes_on: jax.Array  # bool[B]: to a child that is there, in a game that is not over


def _walk(
    tree: Tree, keys: jax.Array, *, at_root: Select, below: Select
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(node, slot, child) int32[B] each: the last choice of each board on its way down."""

    def choose(keys: jax.Array, node: jax.Array, select: Select) -> _Walk:
        keys, select_keys = jnp.unstack(jax.vmap(jax.random.split)(keys), axis=1)
        slot = select(select_keys, look(tree, node))
        child = tree.children[jnp.arange(len(node)), node, slot].astype(jnp.int32)
        goes_on = (child != NO_CHILD) & (_of(tree.discounts, child) != 0)
        return _Walk(keys, node, slot, child, goes_on)

    def descend(walk: _Walk) -> _Walk:
        further = choose(walk.keys, walk.child, below)
        return jax.tree.map(lambda new, old: jnp.where(walk.goes_on, new, old), further, walk)

    start = choose(keys, jnp.full(len(keys), ROOT), at_root)
    walk = jax.lax.while_loop(lambda walk: walk.goes_on.any(), descend, start)
    return walk.node, walk.slot, walk.child


def _expand(tree: Tree, parent: jax.Array, slot: jax.Array, node: jax.Array, step: Step) -> Tree:
    """Write a step from a parent's slot as a node, int32[B] each; a node is visited once more."""
    boards = jnp.arange(len(node))

    def put(array: jax.Array, new: jax.Array) -> jax.Array:
        return array.at[boards, node].set(new, mode="promise_in_bounds", unique_indices=True)

    return Tree(
        logits=put(tree.logits, step.logits),
        children=tree.children.at[boards, parent, slot].set(
            node.astype(tree.children.dtype), mode="promise_in_bounds", unique_indices=True
        ),
        positions=jax.tree.map(put, tree.positions, step.position),
        parents=put(tree.parents, parent),
        visits=put(tree.visits, _of(tree.visits, node) + 1),
        raw_values=put(tree.raw_values, step.value),
        values=put(tree.values, step.value),
        rewards=put(tree.rewards, step.reward),
        discounts=put(tree.discounts, step.discount),
        worths=put(tree.worths, step.reward + step.discount * step.value),
    )


def _back_up(tree: Tree, node: jax.Array) -> Tree:
    """Count the value of a node int32[B] in at all nodes above it."""
    boards, nothing = jnp.arange(len(node)), tree.visits.shape[1]

    def rise(carry: tuple[Tree, jax.Array, jax.Array]) -> tuple[Tree, jax.Array, jax.Array]:
        tree, node, value = carry
        parent = _of(tree.parents, node)
        value = _of(tree.rewards, node) + _of(tree.discounts, node) * value
        visits = _of(tree.visits, parent)
        mean = (_of(tree.values, parent) * visits + value) / (visits + 1.0)
        worth = _of(tree.rewards, parent) + _of(tree.discounts, parent) * mean
        above = jnp.where(node == ROOT, nothing, parent)

        def put(array: jax.Array, new: jax.Array) -> jax.Array:
            return array.at[boards, above].set(new, mode="drop", unique_indices=True)

        risen = tree._replace(
            visits=put(tree.visits, visits + 1),
            values=put(tree.values, mean),
            worths=put(tree.worths, worth),
        )
        return risen, parent, value

    def is_below(carry: tuple[Tree, jax.Array, jax.Array]) -> jax.Array:
        return (carry[1] != ROOT).any()

    return jax.lax.while_loop(is_below, rise, (tree, node, _of(tree.values, node)))[0]


def _of(array: jax.Array, node: jax.Array) -> jax.Array:
    """[B, ...]: the entries of one node int32[B] of each board."""
    return array.at[jnp.arange(len(node)), node].get(mode="promise_in_bounds")
