"""A pool of trees, and the programs that search some of them on.

A pool has room for T trees; programs take the numbers of B of them and leave the others alone, in
place, so that the trees of a batch may change from one chunk of simulations to the next.

T trees, B of them searched, N nodes, A slots, P players, L slots of a path, S simulations of a
chunk.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.network import MASKED
from train.players.basic import Player
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation, Evaluator, make_play, make_symmetric_evaluator
from train.search.report import (
    MOST_LINES,
    EvaluateHeads,
    SearchReport,
    evaluate_allowed,
    report_search,
)
from train.search.search import make_selection
from train.search.sequential_halving import mask_logits
from train.search.simulation import visit_leaf
from train.search.tree import NO_CHILD, ROOT, Choice, Tree, init_tree, root_view
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game.state import State, Variant

NOWHERE = -1
"""Stands for a node that a tree does not have."""
END = -1
"""Fills a path behind its last slot."""


class Pool(NamedTuple):
    """All trees [T], and what each search began with."""

    tree: Tree
    used: jax.Array  # int32[T], nodes made
    base: jax.Array  # int32[T, A], visits of the root's slots before the search
    scores: jax.Array  # float32[T, P], the root as evaluated, the player to move first
    variant: Variant  # [T]


class Searching(NamedTuple):
    """How a player searches, whatever its weights: equal ones share programs."""

    evaluate: Evaluator
    config: SearchConfig
    symmetries: int
    evaluate_heads: EvaluateHeads | None


def searching_of(player: Player) -> Searching:
    """How a player searches."""
    return Searching(player.evaluate, player.search, player.symmetries, player.evaluate_heads)


def make_pool(finished: State, *, trees: int, nodes: int) -> Pool:
    """A pool without searches, with one tree more that fills batches up: that of a finished game,
    whose simulations end after one step.

    Args:
      finished: one board whose game is over.
      trees: T - 1.
      nodes: N.
    """
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (trees + 1, *jnp.shape(x))), finished)
    logits = jnp.where(jnp.arange(finished.num_slots) == 0, 0.0, MASKED)
    scores = jnp.zeros((trees + 1, finished.position.stones.shape[0]), jnp.float32)
    return _new_pool(jnp.broadcast_to(logits, (trees + 1, len(logits))), scores, states, nodes)


def _new_pool(prior: jax.Array, scores: jax.Array, states: State, nodes: int) -> Pool:
    tree = init_tree(prior, scores[:, 0], states.position, nodes=nodes)
    used = jnp.ones(len(prior), jnp.int32)
    return Pool(tree, used, tree.root_visits, scores, states.variant)


@functools.partial(jax.jit, static_argnums=0, static_argnames="nodes")
def begin(
    how: Searching, variables: Any, states: State, allowed: jax.Array | None, *, nodes: int
) -> Pool:
    """A pool of trees of N nodes that stand at states [T], evaluated; slots that bool[T, A] does
    not allow are no moves at the roots, unless that leaves none."""
    evaluate = make_symmetric_evaluator(how.evaluate, how.symmetries)
    evaluation = evaluate_allowed(evaluate, variables, states, allowed)
    prior = mask_logits(evaluation.logits, evaluation.logits > MASKED)
    return _new_pool(prior, evaluation.value, states, nodes)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def resume(
    how: Searching,
    variables: Any,
    pool: Pool,
    rows: jax.Array,
    is_known: jax.Array,
    path: jax.Array,
    room: jax.Array,
    states: State,
) -> Pool:
    """The pool in which trees int32[B] stand at states [B], ready to be searched.

    A tree that is known, bool[B], is followed along its path int32[B, L], and what is below that
    stays if it leaves `room` int32[B] for that many nodes; else a tree begins anew. The root is
    evaluated in any case. The pool is consumed.
    """
    chex.assert_rank([rows, is_known, path, room], [1, 1, 2, 1])
    nodes = pool.tree.parents.shape[1]
    new = begin(how, variables, states, None, nodes=nodes)
    before = jax.tree.map(lambda x: x[rows], pool.tree)
    node = jax.vmap(walk)(before, path)
    subtree, count = jax.vmap(keep_subtree)(before, jnp.maximum(node, 0))
    is_kept = is_known & (node != NOWHERE) & (count + room <= nodes)

    def choose(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(is_kept.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    tree = jax.tree.map(choose, subtree, new.tree)
    # A node below a root was evaluated from one side; a root may be from several.
    tree = tree._replace(
        logits=tree.logits.at[:, 0].set(new.tree.logits[:, 0]),
        raw_values=tree.raw_values.at[:, 0].set(new.tree.raw_values[:, 0]),
    )
    new = new._replace(tree=tree, used=jnp.where(is_kept, count, 1), base=tree.root_visits)
    # Else XLA on CPU would read trees of the pool behind a write, from a copy of all of them.
    new = fusion_barrier(new, token=(rows < 0).any())
    return jax.tree.map(lambda all, part: all.at[rows].set(part), pool, new)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def grow(
    how: Searching, variables: Any, pool: Pool, rows: jax.Array, due: jax.Array, steps: jax.Array
) -> Pool:
    """The pool after some simulations, int32[], at most S, of trees int32[B]. It is consumed.

    `due` int32[B, S] holds, for each simulation, the visits that a slot of the root has had in this
    search when it is next.
    """
    chex.assert_rank([rows, due, steps], [1, 2, 0])
    selection = make_selection(how.config)
    play = make_play(how.evaluate, opponents=how.config.opponents)
    # These stay, so they are read once.
    root, base = root_view(pool.tree, rows), pool.base[rows]
    variant = jax.tree.map(lambda x: x[rows], pool.variant)
    game = variables, variant, pool.tree.positions[rows, 0].player

    def simulate(number: jax.Array, carry: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
        tree, used = carry
        now = root_view(tree, rows)._replace(logits=root.logits, raw_value=root.raw_value)
        tree, is_made = visit_leaf(
            tree,
            None,
            now,
            used[rows],
            at_root=lambda keys, node: selection.at_root(node, base, due[:, number]),
            below=lambda keys, node: selection.below(node),
            play=functools.partial(play, game),
            boards=rows,
        )
        return tree, used.at[rows].add(is_made.astype(jnp.int32))

    tree, used = jax.lax.fori_loop(0, steps, simulate, (pool.tree, pool.used))
    return pool._replace(tree=tree, used=used)


@functools.partial(jax.jit, static_argnums=0)
def report(how: Searching, variables: Any, pool: Pool, rows: jax.Array) -> SearchReport:
    """The reports of trees int32[B]."""
    root, tree = root_view(pool.tree, rows), pool.tree
    slot, policy = make_selection(how.config).result(root, pool.base[rows])
    variant = jax.tree.map(lambda x: x[rows], pool.variant)
    states = State(variant, tree.positions[rows, ROOT])
    return report_search(
        Choice(slot, policy, root.value, tree),
        states,
        Evaluation(root.logits, pool.scores[rows]),
        heads=how.evaluate_heads and how.evaluate_heads(variables, states),
        lines=MOST_LINES,
        boards=rows,
    )


def walk(tree: Tree, path: jax.Array) -> jax.Array:
    """int32[]: the node of one board where a path int32[L] of slots leads from the root; NOWHERE if
    there is none. END stands behind the last slot."""
    node = jnp.int32(ROOT)
    for slot in path:
        child = tree.children[node, slot].astype(jnp.int32)
        further = jnp.where((child == NO_CHILD) | (node == NOWHERE), NOWHERE, child)
        node = jnp.where(slot == END, node, further)
    return node


def keep_subtree(tree: Tree, node: jax.Array) -> tuple[Tree, jax.Array]:
    """The tree of a node int32[] of one board and all below it, and how many nodes these are.

    Kept nodes stay in order, so that a node still comes after its parent. Node 2 becomes the root:

        0 --a-- 1                       0 --a-- 1        nodes 2 and 3 of before
        |
        +---b-- 2 --a-- 3       ->
        |
        +---c-- 4

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
