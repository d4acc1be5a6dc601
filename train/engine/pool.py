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

from train.engine.subtree import NOWHERE, keep_subtree, walk
from train.network import MASKED
from train.players.basic import Player
from train.search.config import SearchConfig
from train.search.evaluator import Evaluator, make_play, make_symmetric_evaluator
from train.search.report import MOST_LINES, SearchReport, report_search
from train.search.reporting import EvaluateHeads, evaluate_allowed, make_selection
from train.search.sequential_halving import mask_logits
from train.search.simulation import visit_leaf
from train.search.tree import Tree, init_tree, root_view
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game.state import State, Variant


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
    selection = make_selection(how.config)
    slot, policy = selection.result(root_view(pool.tree, rows), pool.base[rows])
    variant = jax.tree.map(lambda x: x[rows], pool.variant)
    states = State(variant, pool.tree.positions[rows, 0])
    return report_search(
        pool.tree,
        variant,
        pool.scores[rows],
        slot,
        policy,
        how.config,
        heads=how.evaluate_heads and how.evaluate_heads(variables, states),
        lines=MOST_LINES,
        boards=rows,
    )
