"""A search tree for each board of a batch, grown by one visit a simulation.

Nodes are numbered as they are made: the root is 0, the i-th simulation makes node i. Three
simulations after slots a, b, and b then a:

    0 --a-- 1              node         0   1   2   3
    |                      parents      0   0   0   2
    +---b-- 2 --a-- 3      children a   1   .   3   .     . is NO_CHILD
                           children b   2   .   .   .
                           visits       4   1   2   1     the root begins with one

A simulation goes down, one step further, and up again:

    select_leaf   choose slots from the root on, until one has no child or ends the game
    play          make that step by the rules and evaluate the position after it
    expand        write step and position as a node
    backup        count reward + discount * value in at each node above, up to the root

Search as mctx does it ("mctx: MCTS-in-JAX", Google DeepMind, Apache License 2.0; Babuschkin et al.,
"The DeepMind JAX Ecosystem", 2020), visit for visit and key for key, laid out for boards:

- What mctx keeps of each edge, for all slots of a node, is kept once, at the node below it: its
  visits, Q-value, reward and discount. Two arrays by slot are left, the prior and the children; the
  way back up touches none of them.
- The ways down and up loop over the batch as a whole: `vmap` of a loop would choose between all of
  the old and the new tree at each level.
- A step that ends the game (discount 0) is played again in place when it is visited again. mctx
  goes on below it, one node deeper each time; nothing of that comes back through a discount of 0,
  but the whole batch would wait for the deepest such chain.
- At the root a slot is chosen by another rule than below it, once, outside the loop. That rule
  reads visits and Q-values of the root's slots at every simulation, so these are kept by slot too.
- On a CPU the last few boards on their way down go on alone.

B boards, N nodes, A slots.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board.fusion import fusion_barrier

T = TypeVar("T")
ROOT = 0
NO_CHILD = ROOT
"""Stands for a missing child: no node has the root as its child."""
_FEW = (8, 32)
"""An eighth of the boards counts as few on the way down, a thirty-second as very few."""


class Tree(NamedTuple):
    """The arrays of a tree by node; zeros where a node is not there yet.

    A value is that of the side to move at the node. Reward, discount and Q-value are those of the
    step that leads to the node, for the side that makes it; at the root they stay zero.
    """

    logits: jax.Array  # float32[B, N, A], prior
    children: jax.Array  # uint8, uint16 or uint32[B, N, A], a node or NO_CHILD
    positions: Any  # a tree of arrays [B, N, ...]
    parents: jax.Array  # int32[B, N]
    visits: jax.Array  # int32[B, N]
    raw_values: jax.Array  # float32[B, N], as evaluated
    values: jax.Array  # float32[B, N], mean of all visits
    rewards: jax.Array  # float32[B, N]
    discounts: jax.Array  # float32[B, N]; 0 where the step ends the game
    qvalues: jax.Array  # float32[B, N], reward + discount * value
    root_visits: jax.Array  # int32[B, A], of the root's children by slot
    root_qvalues: jax.Array  # float32[B, A], likewise; 0 where not visited
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
    """float32[B, P], what each player expects, where each plays for its own value: `reward` is then
    the mover's share, and `discount` tells the end alone. None where a value has two sides."""
    is_modelled: jax.Array | None  # bool[B], as in `Tree`, of the position after the step


Select = Callable[[jax.Array | None, Node], jax.Array]
"""(keys [B] or None, node) -> the slot to visit next, int32[B]."""

Play = Callable[[jax.Array, Any], Step]
"""(slot int32[B], position [B]) -> Step."""

Boards = jax.Array | None
"""int32[K]: the boards of a tree that are searched, each once; None for all."""


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

    no_steps = jnp.zeros((boards, nodes))
    return Tree(
        logits=with_room(logits),
        # The fewest bytes that tell the nodes apart: this is one of the two large arrays.
        children=jnp.full((boards, nodes, slots), NO_CHILD, np.min_scalar_type(nodes - 1)),
        positions=jax.tree.map(with_room, position),
        parents=jnp.full((boards, nodes), ROOT),
        visits=with_room(jnp.ones(boards, jnp.int32)),
        raw_values=with_room(value),
        values=with_room(value),
        rewards=no_steps,
        discounts=no_steps,
        qvalues=no_steps,
        root_visits=jnp.zeros((boards, slots), jnp.int32),
        root_qvalues=jnp.zeros((boards, slots)),
        is_modelled=jnp.zeros((boards, nodes), bool) if has_model else None,
    )


def simulate(
    tree: Tree,
    key: jax.Array | None,
    *,
    at_root: Select,
    below: Select,
    play: Play,
    fresh: jax.Array | None = None,
) -> Tree:
    """Grow a tree of the root alone by one simulation for each node that it has room for.

    Args:
      tree: as `init_tree` makes it, or grown by earlier simulations.
      key: consumed, in mctx's order; None where the choices draw nothing.
      at_root: chooses a slot of the root.
      below: chooses a slot of any other node.
      play: makes a step and evaluates what follows.
      fresh: int32[M], the nodes that M simulations make; None for all that there is room for.
    """
    chex.assert_rank([tree.visits, tree.children], [2, 3])
    boards, nodes = tree.visits.shape
    # Read before the loop, so that values derived from them are computed once, outside of it.
    logits, raw_value = tree.logits[:, ROOT], tree.raw_values[:, ROOT]

    def one_simulation(carry: tuple[jax.Array | None, Tree], new: jax.Array):
        key, tree = carry
        keys = None
        if key is not None:
            # mctx gives the third key to the step, which draws nothing here.
            key, walk_key, _ = jax.random.split(key, 3)
            keys = jax.random.split(walk_key, boards)
        root = root_view(tree)._replace(logits=logits, raw_value=raw_value)
        tree, _ = visit_leaf(tree, keys, root, new, at_root=at_root, below=below, play=play)
        return (key, tree), None

    fresh = jnp.arange(1, nodes) if fresh is None else fresh
    return jax.lax.scan(one_simulation, (key, tree), fresh)[0][1]


def visit_leaf(
    tree: Tree,
    keys: jax.Array | None,
    root: Node,
    fresh: jax.Array,
    *,
    at_root: Select,
    below: Select,
    play: Play,
    boards: Boards = None,
) -> tuple[Tree, jax.Array]:
    """One simulation of each board, or of the boards int32[K].

    Args:
      tree: of all boards.
      keys: [K], for the choices; None where they draw nothing.
      root: of the boards that are searched.
      fresh: int32[] or int32[K], the node to make.
      at_root: chooses a slot of the root.
      below: chooses a slot of any other node.
      play: makes a step and evaluates what follows.
      boards: which are searched.

    Returns:
      The tree, and bool[K], whether the node was made: a finished game that is visited again is
      written over itself.
    """
    first, (parent, slot, child) = select_leaf(tree, keys, root, boards, at_root, below)
    is_made = child == NO_CHILD
    node = jnp.where(is_made, fresh, child)
    position = jax.tree.map(lambda x: _of(x, parent, boards), tree.positions)
    step = play(slot, _read_now(position, parent, boards))
    tree = _expand(tree, parent, slot, node, step, boards)
    tree = _backup(tree, node, step.returns, boards)
    return _copy_to_root(tree, first, boards), is_made


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
    children = _of(tree.children, node, boards).astype(jnp.int32)
    is_seen = children != NO_CHILD
    rows = _rows(len(node), boards)
    visits, qvalues = (
        x.at[rows[:, None], children].get(mode="promise_in_bounds")
        for x in (tree.visits, tree.qvalues)
    )
    return Node(
        logits=_of(tree.logits, node, boards),
        raw_value=_of(tree.raw_values, node, boards),
        value=_of(tree.values, node, boards),
        visits=_of(tree.visits, node, boards),
        slot_visits=jnp.where(is_seen, visits, 0),
        slot_qvalues=jnp.where(is_seen, qvalues, 0.0),
        is_modelled=None if tree.is_modelled is None else _of(tree.is_modelled, node, boards),
    )


class _Walk(NamedTuple):
    """The place of each board on the way down."""

    keys: jax.Array | None  # [B]
    node: jax.Array  # int32[B]
    slot: jax.Array  # int32[B], chosen at the node
    child: jax.Array  # int32[B], where it leads
    goes_on: jax.Array  # bool[B]: to a child that is there, in a game that is not over


def select_leaf(
    tree: Tree,
    keys: jax.Array | None,
    root: Node,
    boards: Boards,
    at_root: Select,
    below: Select,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    """Go down from the root until a slot has no child or its child is a finished game.

    Returns:
      The slot int32[B] that each board chose at the root, then node, slot and child int32[B] of its
      last choice; the child is NO_CHILD where a node is to be made.
    """
    count = len(root.value)
    # Elsewhere a few rows take as long as all.
    few = [count // share for share in _FEW if jax.default_backend() == "cpu" and count >= share]

    def choose(keys: Any, at: jax.Array, node: Node, select: Select, own: jax.Array) -> _Walk:
        own_keys = None
        if keys is not None:
            keys, own_keys = jnp.unstack(jax.vmap(jax.random.split)(keys), axis=1)
        slot = select(own_keys, node)
        child = tree.children.at[own, at, slot].get(mode="promise_in_bounds").astype(jnp.int32)
        goes_on = (child != NO_CHILD) & (_of(tree.discounts, child, own) != 0)
        return _Walk(keys, at, slot, child, goes_on)

    def descend(walk: _Walk) -> _Walk:
        rows = _rows(count, boards)
        further = choose(walk.keys, walk.child, node_view(tree, walk.child, boards), below, rows)
        return jax.tree.map(lambda new, old: jnp.where(walk.goes_on, new, old), further, walk)

    def descend_alone(walk: _Walk, most: int) -> _Walk:
        # Boards that go on come first; beyond them a row past the last, whose writes drop.
        places = jnp.sort(jnp.where(walk.goes_on, jnp.arange(count), count))[:most]
        valid = jnp.minimum(places, count - 1)
        keys, at = jax.tree.map(lambda x: x[valid], (walk.keys, walk.child))
        own = valid if boards is None else boards[valid]
        further = choose(keys, at, node_view(tree, at, own), below, own)
        return jax.tree.map(lambda old, new: old.at[places].set(new, mode="drop"), walk, further)

    def go_on(walk: _Walk) -> _Walk:
        left = walk.goes_on.sum()
        # The further down, the fewer boards are left, and the cheaper the way that takes them.
        ways = [descend, *(functools.partial(descend_alone, most=most) for most in few)]
        return jax.lax.switch(sum((left <= most for most in few), jnp.int32(0)), ways, walk)

    start = choose(keys, jnp.full(count, ROOT), root, at_root, _rows(count, boards))
    walk = jax.lax.while_loop(lambda walk: walk.goes_on.any(), go_on, start)
    return start.slot, (walk.node, walk.slot, walk.child)


def _expand(
    tree: Tree, parent: jax.Array, slot: jax.Array, node: jax.Array, step: Step, boards: Boards
) -> Tree:
    """Write a step from a parent's slot as a node, int32[K] each, with one visit more."""
    rows = _rows(len(node), boards)

    def put(array: jax.Array, new: jax.Array) -> jax.Array:
        return array.at[rows, node].set(new, mode="promise_in_bounds", unique_indices=True)

    below = 0.0 if step.returns is not None else step.discount * step.value
    return tree._replace(
        logits=put(tree.logits, step.logits),
        children=tree.children.at[rows, parent, slot].set(
            node.astype(tree.children.dtype), mode="promise_in_bounds", unique_indices=True
        ),
        positions=jax.tree.map(put, tree.positions, step.position),
        parents=put(tree.parents, parent),
        # A finished game that is visited again adds to its count; a new node begins at 0.
        visits=put(tree.visits, _of(tree.visits, node, boards) + 1),
        raw_values=put(tree.raw_values, step.value),
        values=put(tree.values, step.value),
        rewards=put(tree.rewards, step.reward),
        discounts=put(tree.discounts, step.discount),
        qvalues=put(tree.qvalues, step.reward + below),
        is_modelled=jax.tree.map(put, tree.is_modelled, step.is_modelled),
    )


def _backup(tree: Tree, node: jax.Array, returns: jax.Array | None, boards: Boards) -> Tree:
    """Count the value of a node int32[K] in at all nodes above it, up to the root.

    Returns float32[K, P] count at each node for the player to move there, and in its Q-value for
    the one who moved to it; positions then name the `player` to move.
    """
    rows, no_node = _rows(len(node), boards), tree.visits.shape[1]

    def share(returns: jax.Array, node: jax.Array) -> jax.Array:
        player = _of(tree.positions.player, node, boards).astype(jnp.int32)
        return jnp.take_along_axis(returns, player[:, None], axis=1)[:, 0]

    def rise(carry: tuple[Tree, jax.Array, jax.Array]) -> tuple[Tree, jax.Array, jax.Array]:
        tree, node, value = carry
        parent = _of(tree.parents, node, boards)
        if returns is None:
            value = _of(tree.rewards, node, boards) + _of(tree.discounts, node, boards) * value
        else:
            value = share(returns, parent)
        visits = _read_now(_of(tree.visits, parent, boards), parent, boards)
        mean = (_of(tree.values, parent, boards) * visits + value) / (visits + 1.0)
        if returns is None:
            qvalue = _of(tree.rewards, parent, boards) + _of(tree.discounts, parent, boards) * mean
        else:
            own = share(returns, _of(tree.parents, parent, boards))
            qvalue = (_of(tree.qvalues, parent, boards) * visits + own) / (visits + 1.0)
            qvalue = jnp.where(parent == ROOT, 0.0, qvalue)
        # A board that has arrived waits for the others: what it writes beyond the nodes drops.
        above = jnp.where(node == ROOT, no_node, parent)

        def put(array: jax.Array, new: jax.Array) -> jax.Array:
            return array.at[rows, above].set(new, mode="drop", unique_indices=True)

        risen = tree._replace(
            visits=put(tree.visits, visits + 1),
            values=put(tree.values, mean),
            qvalues=put(tree.qvalues, qvalue),
        )
        return risen, parent, value

    def is_below(carry: tuple[Tree, jax.Array, jax.Array]) -> jax.Array:
        return (carry[1] != ROOT).any()

    return jax.lax.while_loop(is_below, rise, (tree, node, _of(tree.values, node, boards)))[0]


def _copy_to_root(tree: Tree, slot: jax.Array, boards: Boards) -> Tree:
    """Copy visits and Q-value of the root's child at a slot int32[K], the only one that changed."""
    rows = _rows(len(slot), boards)
    child = tree.children[rows, ROOT, slot].astype(jnp.int32)

    def put(array: jax.Array, new: jax.Array) -> jax.Array:
        return array.at[rows, slot].set(new, mode="promise_in_bounds", unique_indices=True)

    return tree._replace(
        root_visits=put(tree.root_visits, _of(tree.visits, child, boards)),
        root_qvalues=put(tree.root_qvalues, _of(tree.qvalues, child, boards)),
    )


def _of(array: jax.Array, node: jax.Array, boards: Boards = None) -> jax.Array:
    """[K, ...]: the entries of one node int32[K] of each board, or of the boards int32[K]."""
    rows = _rows(len(node), boards)
    return array.at[rows, node].get(mode="promise_in_bounds")


def _read_now(entries: T, node: jax.Array, boards: Boards) -> T:
    """Entries of nodes int32[K], read before anything is written.

    Else XLA on CPU reads them where they are used, behind a write from a copy of all boards.
    """
    return entries if boards is None else fusion_barrier(entries, token=(node < ROOT).any())


def _rows(count: int, boards: Boards) -> jax.Array:
    """int32[K]: the boards, or all of them."""
    return jnp.arange(count) if boards is None else boards
