"""A search tree for each board of a batch, as arrays by node.

Nodes are numbered as they are made: the root is 0, the i-th simulation makes node i. Three
simulations after slots a, b, and b then a:

    0 --a-- 1              node         0   1   2   3
    |                      parents      0   0   0   2
    +---b-- 2 --a-- 3      children a   1   .   3   .     . is NO_CHILD
                           children b   2   .   .   .
                           visits       4   1   2   1     the root begins with one

What mctx ("mctx: MCTS-in-JAX", Google DeepMind, Apache License 2.0) keeps of each edge, for all
slots of a node, is kept once, at the node below it: its visits, Q-value, reward and discount. Two
arrays by slot are left, the prior and the children. The visits and Q-values of the root's slots,
which are read at every simulation, are kept by slot too. `train.search.arrays` reads and writes
the arrays in the form that suits the platform, and keeps a position as one row of words.

An engine (`Choose`) grows a tree from an evaluated root and chooses a slot.

B boards, N nodes, A slots.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.game import Position
from train.search.arrays import Boards, Words, pack, read, read_each

ROOT = 0
NO_CHILD = ROOT
"""Stands for a missing child: no node has the root as its child."""


class Tree(NamedTuple):
    """The arrays of a tree by node; zeros where a node is not there yet.

    A value is that of the side to move at the node. Reward, discount and Q-value are those of the
    step that leads to the node, for the side that makes it; at the root they stay zero.
    """

    logits: jax.Array  # float32[B, N, A], prior
    children: jax.Array  # uint8, uint16 or uint32[B, N, A], a node or NO_CHILD
    positions: Words  # [B, N], of trees of arrays
    parents: jax.Array  # int32[B, N]
    visits: jax.Array  # int32[B, N]
    raw_values: jax.Array  # float32[B, N], as evaluated
    values: jax.Array  # float32[B, N], mean of all visits
    rewards: jax.Array  # float32[B, N]
    discounts: jax.Array  # float32[B, N]; 0 where the step ends the game
    qvalues: jax.Array  # float32[B, N], reward + discount * value
    root_visits: jax.Array  # int32[B, A], of the root's children by slot
    root_qvalues: jax.Array  # float32[B, A], by slot; 0 where not visited
    is_modelled: jax.Array | None
    """bool[B, N], whether an opponent is to move whose policy the logits are; None in a search
    that models none."""


class Node(NamedTuple):
    """One node of each board, with visits and Q-values of its slots."""

    logits: jax.Array  # float32[B, A], prior
    raw_value: jax.Array  # float32[B]
    value: jax.Array  # float32[B]
    visits: jax.Array  # int32[B]
    slot_visits: jax.Array  # int32[B, A]
    slot_qvalues: jax.Array  # float32[B, A], 0 where not visited
    is_modelled: jax.Array | None  # bool[B], as in `Tree`


class Step(NamedTuple):
    """One step of each board and the evaluation of the position after it."""

    reward: jax.Array  # float32[B]
    discount: jax.Array  # float32[B]
    logits: jax.Array  # float32[B, A]
    value: jax.Array  # float32[B]
    position: Any  # a tree of arrays [B, ...]
    returns: jax.Array | None
    """float32[B, P], expected rewards of the players, where each plays for its own value: `reward`
    is then the mover's share, and `discount` is 0 at the end alone. None where a value has two
    sides."""
    is_modelled: jax.Array | None  # bool[B], as in `Tree`, of the position after the step


Select = Callable[[jax.Array | None, Node], jax.Array]
"""(keys [B] or None, node) -> the slot to visit next, int32[B]."""

Play = Callable[[jax.Array, Any], Step]
"""(slot int32[B], position [B]) -> Step."""


class Budget(NamedTuple):
    """Budget of a search."""

    simulations: int
    explores: bool  # searches with the noise of self-play; else it plays the strongest move


class Root(NamedTuple):
    """The evaluated position that a search begins with."""

    logits: jax.Array  # float32[B, A], prior
    value: jax.Array  # float32[B], for the player to move
    position: Position  # [B]
    legal: jax.Array  # bool[B, A]
    budget: jax.Array | None = None
    """int32[], number of the search's budget; None for the only one."""


class Choice(NamedTuple):
    """The result of an engine."""

    slot: jax.Array  # int32[B]
    policy: jax.Array  # float32[B, A], 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    tree: Any  # as the engine keeps it: `Tree` or `mctx.Tree`
    visits: jax.Array | None = None  # int32[B, A], of the root's slots; None where there are none


Choose = Callable[[jax.Array, Root, Play], Choice]
"""(key, root, play) -> Choice; the key is consumed."""


def init_tree(
    logits: jax.Array, value: jax.Array, position: Any, *, nodes: int, has_model: bool = False
) -> Tree:
    """A tree of the root alone.

    Args:
      logits: float32[B, A], the root's prior.
      value: float32[B], as evaluated.
      position: of the root, a tree of arrays [B, ...]; whatever `play` takes.
      nodes: N, room for the root and one node a simulation.
      has_model: whether steps tell where an opponent is modelled; never at the root.
    """
    chex.assert_rank([logits, value], [2, 1])
    chex.assert_type([logits, value], jnp.float32)
    chex.assert_equal_shape_prefix([logits, value, *jax.tree.leaves(position)], 1)
    boards, slots = logits.shape

    def with_room(root: jax.Array) -> jax.Array:
        empty = jnp.zeros((boards, nodes, *root.shape[1:]), root.dtype)
        return empty.at[:, ROOT].set(root)

    # The fewest bytes that tell the nodes apart: this is one of the two large arrays. Without the
    # barrier a TPU would fill it in the first turn of a loop, by a select in every turn.
    children = jnp.full((boards, nodes, slots), NO_CHILD, np.min_scalar_type(nodes - 1))
    children = jax.lax.optimization_barrier(children)
    no_steps = jnp.zeros((boards, nodes), jnp.float32)
    return Tree(
        logits=with_room(logits),
        children=children,
        positions=jax.tree.map(with_room, pack(position)),
        parents=jnp.full((boards, nodes), ROOT, jnp.int32),
        visits=with_room(jnp.ones(boards, jnp.int32)),
        raw_values=with_room(value),
        values=with_room(value),
        rewards=no_steps,
        discounts=no_steps,
        qvalues=no_steps,
        root_visits=jnp.zeros((boards, slots), jnp.int32),
        root_qvalues=jnp.zeros((boards, slots), jnp.float32),
        is_modelled=jnp.zeros((boards, nodes), bool) if has_model else None,
    )


def root_view(tree: Tree, boards: Boards = None) -> Node:
    """The root of each board, without a gather, or of the boards int32[K]."""
    rows = slice(None) if boards is None else boards
    return Node(
        logits=tree.logits[rows, ROOT],
        raw_value=tree.raw_values[rows, ROOT],
        value=tree.values[rows, ROOT],
        visits=tree.visits[rows, ROOT],
        slot_visits=tree.root_visits[rows],
        slot_qvalues=tree.root_qvalues[rows],
        is_modelled=None if tree.is_modelled is None else tree.is_modelled[rows, ROOT],
    )


def node_view(tree: Tree, node: jax.Array, boards: Boards = None) -> Node:
    """One node int32[K] of each board, or of the boards int32[K]."""
    # Where there is no child, the root's entries are read and masked again.
    children = read(tree.children, node, boards).astype(jnp.int32)
    is_seen = children != NO_CHILD
    visits, qvalues = read_each((tree.visits, tree.qvalues), children, boards)
    by_node = tree.logits, tree.raw_values, tree.values, tree.visits, tree.is_modelled
    logits, raw_value, value, visits_of_node, is_modelled = read(by_node, node, boards)
    return Node(
        logits=logits,
        raw_value=raw_value,
        value=value,
        visits=visits_of_node,
        slot_visits=jnp.where(is_seen, visits, 0),
        slot_qvalues=jnp.where(is_seen, qvalues, 0.0),
        is_modelled=is_modelled,
    )


def simulations_of(budgets: Sequence[Budget], budget: jax.Array | None) -> jax.Array | None:
    """int32[]: the simulations of a budget; None for all that a tree has room for."""
    if budget is None:
        return None
    return jnp.array([each.simulations for each in budgets], jnp.int32)[budget]


def where_explored(
    budgets: Sequence[Budget], budget: jax.Array | None, noisy: jax.Array, plain: jax.Array
) -> jax.Array:
    """An array with noise where the budget of a search explores, else the one without."""
    if budget is None:
        return noisy if budgets[0].explores else plain
    return jnp.where(jnp.array([each.explores for each in budgets])[budget], noisy, plain)
