"""Grows a search tree by simulations, each one visit of each board.

A simulation goes down, one step further, and up again:

    select_leaf   choose slots from the root on, until one has no child or ends the game
    play          make that step by the rules and evaluate the position after it
    expand        write step and position as a node
    backup        count reward + discount * value in at each node above, up to the root

Search as mctx does it ("mctx: MCTS-in-JAX", Google DeepMind, Apache License 2.0; Babuschkin et al.,
"The DeepMind JAX Ecosystem", 2020), visit for visit and key for key, laid out for boards:

- The way back up touches none of the two arrays by slot (`train.search.tree`).
- The ways down and up loop over the batch as a whole: `vmap` of a loop would choose between all of
  the old and the new tree at each level.
- A step that ends the game (discount 0) is played again in place when it is visited again. mctx
  goes on below it, one node deeper each time; nothing of that comes back through a discount of 0,
  but the whole batch would wait for the deepest such chain.
- At the root a slot is chosen by another rule than below it, once, outside the loop.
- On a CPU the last few boards on their way down go on alone.

B boards, N nodes, A slots.
"""

import functools
from typing import Any, NamedTuple, TypeVar

import chex
import jax
import jax.numpy as jnp

from train.game import fusion_barrier
from train.runtime.devices import backend
from train.search.arrays import (
    Boards,
    pack,
    read,
    read_slot,
    unpack,
    write,
    write_new,
    write_slot,
)
from train.search.tree import NO_CHILD, ROOT, Node, Play, Select, Step, Tree, node_view, root_view

T = TypeVar("T")
_FEW = (8, 32)
"""An eighth of the boards counts as few on the way down, a thirty-second as very few."""


def simulate(
    tree: Tree,
    key: jax.Array | None,
    *,
    at_root: Select,
    below: Select,
    play: Play,
    count: jax.Array | None = None,
) -> Tree:
    """Grow a tree of the root alone by one simulation for each node that it has room for, or fewer.

    Args:
      tree: as `init_tree` makes it.
      key: typed or uint32[2], consumed, in mctx's order; None where the choices draw nothing.
      at_root: chooses a slot of the root.
      below: chooses a slot of any other node.
      play: makes a step and evaluates what follows.
      count: int32[], simulations; None for all that there is room for.
    """
    chex.assert_rank([tree.visits, tree.children], [2, 3])
    boards, nodes = tree.visits.shape
    if key is not None and not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)  # So that the boards' keys are an array [B].
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

    if count is not None:
        grown = jax.lax.fori_loop(
            jnp.int32(1), count + 1, lambda new, carry: one_simulation(carry, new)[0], (key, tree)
        )
        return grown[1]
    fresh = jnp.arange(1, nodes, dtype=jnp.int32)
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
      at_root: as in `simulate`, and so are `below` and `play`.
      boards: which are searched.

    Returns:
      The tree, and bool[K], whether the node was made: a finished game that is visited again is
      written over itself.
    """
    first, (parent, slot, child) = select_leaf(tree, keys, root, boards, at_root, below)
    is_made = child == NO_CHILD
    node = jnp.where(is_made, fresh, child).astype(jnp.int32)
    words = _read_now(read(tree.positions.words, parent, boards), parent, boards)
    step = play(slot, unpack(words, tree.positions.layout))
    tree = expand(tree, (parent, slot, node), fresh, step, boards)
    tree = backup(tree, node, read(tree.values, node, boards), step.returns, boards).tree
    return copy_to_root(tree, first, boards), is_made


class _Walk(NamedTuple):
    """The place of each board on the way down."""

    keys: jax.Array | None  # [B]
    node: jax.Array  # int32[B]
    slot: jax.Array  # int32[B], chosen at the node
    child: jax.Array  # int32[B], where it leads
    goes_on: jax.Array  # bool[B]: to a child that is there, in a game that is not over


@jax.named_scope("select")
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
    few = [count // share for share in _FEW if backend() == "cpu" and count >= share]

    def choose(keys: Any, at: jax.Array, node: Node, select: Select, rows: Boards) -> _Walk:
        draw_keys = None
        if keys is not None:
            keys, draw_keys = jnp.unstack(jax.vmap(jax.random.split)(keys), axis=1)
        slot = select(draw_keys, node)
        child = read_slot(tree.children, at, slot, rows).astype(jnp.int32)
        goes_on = (child != NO_CHILD) & (read(tree.discounts, child, rows) != 0)
        return _Walk(keys, at, slot, child, goes_on)

    def descend(walk: _Walk) -> _Walk:
        node = node_view(tree, walk.child, boards)
        further = choose(walk.keys, walk.child, node, below, boards)
        return jax.tree.map(lambda new, old: jnp.where(walk.goes_on, new, old), further, walk)

    def descend_alone(walk: _Walk, most: int) -> _Walk:
        # Boards that go on come first; beyond them a row past the last, whose writes drop.
        places = jnp.sort(jnp.where(walk.goes_on, jnp.arange(count, dtype=jnp.int32), count))[:most]
        valid = jnp.minimum(places, count - 1)
        keys, at = jax.tree.map(lambda x: x[valid], (walk.keys, walk.child))
        rows = valid if boards is None else boards[valid]
        further = choose(keys, at, node_view(tree, at, rows), below, rows)
        return jax.tree.map(lambda old, new: old.at[places].set(new, mode="drop"), walk, further)

    def go_on(walk: _Walk) -> _Walk:
        left = walk.goes_on.sum()
        # The further down, the fewer boards are left, and the cheaper the way that takes them.
        ways = [descend, *(functools.partial(descend_alone, most=most) for most in few)]
        return jax.lax.switch(sum((left <= most for most in few), jnp.int32(0)), ways, walk)

    start = choose(keys, jnp.full(count, ROOT, jnp.int32), root, at_root, boards)
    walk = jax.lax.while_loop(lambda walk: walk.goes_on.any(), go_on, start)
    return start.slot, (walk.node, walk.slot, walk.child)


@jax.named_scope("backup")
def expand(
    tree: Tree,
    at: tuple[jax.Array, jax.Array, jax.Array],
    fresh: jax.Array,
    step: Step,
    boards: Boards,
) -> Tree:
    """Write a step from a parent's slot as a node, int32[K] each, with one visit more. `fresh`, the
    next node to make, is int32[] or int32[K]."""
    parent, slot, node = at
    below = 0.0 if step.returns is not None else step.discount * step.value
    new = {
        "logits": step.logits,
        "positions": pack(step.position),
        "parents": parent,
        "raw_values": step.value,
        "values": step.value,
        "rewards": step.reward,
        "discounts": step.discount,
        "qvalues": step.reward + below,
        "is_modelled": step.is_modelled,
    }
    arrays = {name: getattr(tree, name) for name in new}
    return tree._replace(
        children=write_slot(tree.children, node, parent, slot, boards),
        # A finished game that is visited again adds to its count; a new node begins at 0.
        visits=write(tree.visits, read(tree.visits, node, boards) + 1, node, boards),
        **write_new(arrays, new, node, fresh, boards),
    )


class Rise(NamedTuple):
    """The way up of rows [K]."""

    tree: Tree
    node: jax.Array  # int32[K]
    value: jax.Array  # float32[K], of the visit, for the side to move at the node
    goes_on: jax.Array  # bool[K]


@jax.named_scope("backup")
def backup(
    tree: Tree,
    node: jax.Array,
    value: jax.Array,
    returns: jax.Array | None,
    boards: Boards,
    is_visit: jax.Array | None = None,
) -> Rise:
    """Count values float32[K] of nodes int32[K] in at all nodes above them, up to the root.

    With `is_visit` bool[K] only these visits are made, and their ways end below the root, which
    several of them share. Returns float32[K, P] count at each node for the player to move there,
    and in its Q-value for the one who moved to it; positions then name the `player` to move.
    """
    # Beyond the nodes, another place for each row.
    no_node = tree.visits.shape[1] + jnp.arange(len(node), dtype=jnp.int32)

    def of(arrays: T, node: jax.Array) -> T:
        return read(arrays, node, boards)

    def share(returns: jax.Array, node: jax.Array) -> jax.Array:
        position = unpack(of(tree.positions.words, node), tree.positions.layout)
        player = position.player.astype(jnp.int32)
        return jnp.take_along_axis(returns, player[:, None], axis=1)[:, 0]

    def is_below(node: jax.Array) -> jax.Array:
        return node != ROOT if is_visit is None else is_visit & (of(tree.parents, node) != ROOT)

    def rise(carry: Rise) -> Rise:
        tree, node, value, goes_on = carry
        parent = of(tree.parents, node)
        if returns is None:
            higher = of(tree.rewards, node) + of(tree.discounts, node) * value
        else:
            higher = share(returns, parent)
        visits = _read_now(of(tree.visits, parent), parent, boards)
        count = visits.astype(jnp.float32)
        mean = (of(tree.values, parent) * count + higher) / (count + 1.0)
        if returns is None:
            qvalue = of(tree.rewards, parent) + of(tree.discounts, parent) * mean
        else:
            reward = share(returns, of(tree.parents, parent))
            qvalue = (of(tree.qvalues, parent) * count + reward) / (count + 1.0)
            qvalue = jnp.where(parent == ROOT, 0.0, qvalue)
        # A row that has arrived waits for the others: what it writes beyond the nodes drops.
        above = jnp.where(goes_on, parent, no_node)
        arrays = tree.visits, tree.values, tree.qvalues
        arrays = write(arrays, (visits + 1, mean, qvalue), above, boards)
        risen = tree._replace(visits=arrays[0], values=arrays[1], qvalues=arrays[2])
        node, value = jnp.where(goes_on, parent, node), jnp.where(goes_on, higher, value)
        return Rise(risen, node, value, goes_on & is_below(node))

    start = Rise(tree, node, value, is_below(node))
    return jax.lax.while_loop(lambda carry: carry.goes_on.any(), rise, start)


@jax.named_scope("backup")
def copy_to_root(tree: Tree, slot: jax.Array, boards: Boards) -> Tree:
    """Copy visits and Q-value of the root's child at a slot int32[K], the only one that changed."""
    child = read_slot(tree.children, jnp.full_like(slot, ROOT), slot, boards).astype(jnp.int32)
    entries = read((tree.visits, tree.qvalues), child, boards)
    visits, qvalues = write((tree.root_visits, tree.root_qvalues), entries, slot, boards)
    return tree._replace(root_visits=visits, root_qvalues=qvalues)


def _read_now(entries: T, node: jax.Array, boards: Boards) -> T:
    """Entries of nodes int32[K], read before anything is written.

    Else XLA on CPU reads them where they are used, behind a write from a copy of all boards.
    """
    return entries if boards is None else fusion_barrier(entries, token=(node < ROOT).any())
