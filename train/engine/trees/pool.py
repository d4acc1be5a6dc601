"""A pool of trees, and the programs that search some of them on.

A pool has room for T trees, and one more that fills batches up: the tree of a finished game, whose
simulations end after one step. Programs take the numbers of B trees and leave the others alone, in
place, so that the trees of a batch may change from one chunk of simulations to the next.

T trees, B of them searched, N nodes, A slots, P players, L slots of a path, S simulations of a
chunk.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.engine.trees.subtree import NOWHERE, keep_subtree, walk
from train.network import MASKED
from train.players.basic import Player
from train.search.config import SearchConfig
from train.search.evaluator import make_play, make_symmetric_evaluator
from train.search.puct import make_puct_slot, most_visited
from train.search.report import RootReport, report_roots
from train.search.sequential_halving import (
    best_of_root,
    completed_values,
    improved_policy,
    mask_logits,
    slot_below,
)
from train.search.simulation import visit_leaf
from train.search.tree import Node, Tree, init_tree, root_view
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game.state import State, Variant


class Pool(NamedTuple):
    """All trees [T + 1], and what each search began with."""

    tree: Tree
    used: jax.Array  # int32[T + 1], nodes made
    base: jax.Array  # int32[T + 1, A], visits of the root's slots before the search
    scores: jax.Array  # float32[T + 1, P], the root as evaluated, the player to move first
    variant: Variant  # [T + 1]


class Rules(NamedTuple):
    """How a search chooses: at the root, below it, and in the end."""

    at_root: Any  # (node, base, due) -> slot int32[B]
    below: Any  # (node) -> slot int32[B]
    result: Any  # (node, base) -> slot int32[B], policy float32[B, A]


def make_rules(config: SearchConfig) -> Rules:
    """The choices of a config's kind of search, without noise.

    Gumbel search considers the slots of the highest score and halves them; halving counts the
    visits of this search alone, while values and scores know all.
    """
    if config.kind == "puct":
        select = functools.partial(make_puct_slot(config), None)
        return Rules(lambda node, base, due: select(node), select, _puct_result)

    def best(node: Node, base: jax.Array, due: jax.Array) -> jax.Array:
        legal = node.logits > MASKED
        return best_of_root(node, config, due, legal=legal, before=base)

    def below(node: Node) -> jax.Array:
        return slot_below(node, completed_values(node, config))

    def result(node: Node, base: jax.Array) -> tuple[jax.Array, jax.Array]:
        # The survivors of the last halving are those of the most visits in this search.
        slot = best(node, base, (node.slot_visits - base).max(axis=1))
        return slot, improved_policy(node, config, node.logits > MASKED)

    return Rules(best, below, result)


def _puct_result(node: Node, base: jax.Array) -> tuple[jax.Array, jax.Array]:
    del base
    visits = node.slot_visits.astype(jnp.float32)
    total = visits.sum(axis=1, keepdims=True)
    prior = jax.nn.softmax(node.logits, axis=1)
    policy = jnp.where(total > 0, visits / jnp.maximum(total, 1.0), prior)
    return most_visited(node.slot_visits, node.logits), policy


def make_pool(finished: State, *, trees: int, nodes: int) -> Pool:
    """A pool without searches.

    Args:
      finished: one board whose game is over, which fills batches up.
      trees: T.
      nodes: N.
    """
    boards, slots = trees + 1, finished.num_slots
    players = finished.position.stones.shape[0]
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (boards, *jnp.shape(x))), finished)
    logits = jnp.where(jnp.arange(slots) == 0, 0.0, MASKED)
    return Pool(
        tree=init_tree(
            jnp.broadcast_to(logits, (boards, slots)),
            jnp.zeros(boards, jnp.float32),
            states.position,
            nodes=nodes,
        ),
        used=jnp.ones(boards, jnp.int32),
        base=jnp.zeros((boards, slots), jnp.int32),
        scores=jnp.zeros((boards, players), jnp.float32),
        variant=states.variant,
    )


def make_resume(guide: Player) -> Any:
    """(variables, pool, rows int32[B], is_known bool[B], path int32[B, L], room int32[B], states
    [B]) -> pool, in which these trees stand at these states, ready to be searched.

    A tree that is known is followed along its path, and what is below that stays if it leaves room
    for so many nodes; else a tree begins anew. The root is evaluated in any case.
    """
    evaluate = make_symmetric_evaluator(guide.evaluate, guide.symmetries)

    def resume(
        variables: Any,
        pool: Pool,
        rows: jax.Array,
        is_known: jax.Array,
        path: jax.Array,
        room: jax.Array,
        states: State,
    ) -> Pool:
        chex.assert_rank([rows, is_known, path, room], [1, 1, 2, 1])
        nodes = pool.tree.parents.shape[1]
        evaluation = evaluate(variables, states)
        prior = mask_logits(evaluation.logits, evaluation.logits > MASKED)
        value = evaluation.value[:, 0]
        fresh = init_tree(prior, value, states.position, nodes=nodes)
        before = jax.tree.map(lambda x: x[rows], pool.tree)
        node = jax.vmap(walk)(before, path)
        kept, count = jax.vmap(keep_subtree)(before, jnp.maximum(node, 0))
        is_kept = is_known & (node != NOWHERE) & (count + room <= nodes)

        def choose(one: jax.Array, other: jax.Array) -> jax.Array:
            return jnp.where(is_kept.reshape(-1, *[1] * (one.ndim - 1)), one, other)

        tree = jax.tree.map(choose, kept, fresh)
        # A node below a root was evaluated from one side; a root may be from several.
        tree = tree._replace(
            logits=tree.logits.at[:, 0].set(prior), raw_values=tree.raw_values.at[:, 0].set(value)
        )
        new = Pool(
            tree=tree,
            used=jnp.where(is_kept, count, 1),
            base=tree.root_visits,
            scores=evaluation.value,
            variant=states.variant,
        )
        # Else XLA on CPU would read trees of the pool behind a write, from a copy of all of them.
        new = fusion_barrier(new, token=(rows < 0).any())
        return jax.tree.map(lambda all, own: all.at[rows].set(own), pool, new)

    return resume


def make_grow(guide: Player) -> Any:
    """(variables, pool, rows int32[B], due int32[B, S], steps int32[]) -> pool, after so many
    simulations of these trees, at most S.

    `due` holds, for each simulation, the visits that a slot of the root has had in this search when
    it is next.
    """
    rules = make_rules(guide.search)
    play = make_play(guide.evaluate, opponents=guide.search.opponents)

    def grow(variables: Any, pool: Pool, rows: jax.Array, due: jax.Array, steps: jax.Array) -> Pool:
        chex.assert_rank([rows, due, steps], [1, 2, 0])
        # These stay, so they are read once.
        root, base = root_view(pool.tree, rows), pool.base[rows]
        variant = jax.tree.map(lambda x: x[rows], pool.variant)
        player = pool.tree.positions[rows, 0].player
        step = functools.partial(play, (variables, variant, player))

        def simulate(number: jax.Array, carry: tuple[Tree, jax.Array]) -> tuple[Tree, jax.Array]:
            tree, used = carry
            now = root_view(tree, rows)._replace(logits=root.logits, raw_value=root.raw_value)
            tree, is_made = visit_leaf(
                tree,
                None,
                now,
                used[rows],
                at_root=lambda keys, node: rules.at_root(node, base, due[:, number]),
                below=lambda keys, node: rules.below(node),
                play=step,
                boards=rows,
            )
            return tree, used.at[rows].add(is_made.astype(jnp.int32))

        tree, used = jax.lax.fori_loop(0, steps, simulate, (pool.tree, pool.used))
        return pool._replace(tree=tree, used=used)

    return grow


def make_report(guide: Player) -> Any:
    """(pool, rows int32[B]) -> RootReport."""
    rules = make_rules(guide.search)

    def report(pool: Pool, rows: jax.Array) -> RootReport:
        root = root_view(pool.tree, rows)
        slot, policy = rules.result(root, pool.base[rows])
        return report_roots(root, roots(pool, rows), pool.scores[rows], slot, policy)

    return report


def roots(pool: Pool, rows: jax.Array) -> State:
    """The states [B] at the roots."""
    return State(jax.tree.map(lambda x: x[rows], pool.variant), pool.tree.positions[rows, 0])
