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

from train.engine.subtree import NOWHERE, keep_subtree, walk
from train.network import MASKED
from train.players.basic import Player
from train.search.evaluator import make_play, make_symmetric_evaluator
from train.search.report import MOST_LINES, SearchReport, report_search
from train.search.reporting import make_selection
from train.search.sequential_halving import mask_logits
from train.search.simulation import visit_leaf
from train.search.tree import Tree, init_tree, root_view
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game.state import State, Variant


class Pool(NamedTuple):
    """All trees [T + 1], and what each search began with."""

    tree: Tree
    used: jax.Array  # int32[T + 1], nodes made
    base: jax.Array  # int32[T + 1, A], visits of the root's slots before the search
    scores: jax.Array  # float32[T + 1, P], the root as evaluated, the player to move first
    variant: Variant  # [T + 1]


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


def make_resume(player: Player) -> Any:
    """(variables, pool, rows int32[B], is_known bool[B], path int32[B, L], room int32[B], states
    [B]) -> pool, in which these trees stand at these states, ready to be searched.

    A tree that is known is followed along its path, and what is below that stays if it leaves room
    for that many nodes; else a tree begins anew. The root is evaluated in any case.
    """
    evaluate = make_symmetric_evaluator(player.evaluate, player.symmetries)

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
        subtree, count = jax.vmap(keep_subtree)(before, jnp.maximum(node, 0))
        is_kept = is_known & (node != NOWHERE) & (count + room <= nodes)

        def choose(one: jax.Array, other: jax.Array) -> jax.Array:
            return jnp.where(is_kept.reshape(-1, *[1] * (one.ndim - 1)), one, other)

        tree = jax.tree.map(choose, subtree, fresh)
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
        return jax.tree.map(lambda all, part: all.at[rows].set(part), pool, new)

    return resume


def make_grow(player: Player) -> Any:
    """(variables, pool, rows int32[B], due int32[B, S], steps int32[]) -> pool, after this many
    simulations of these trees, at most S.

    `due` holds, for each simulation, the visits that a slot of the root has had in this search when
    it is next.
    """
    selection = make_selection(player.search)
    play = make_play(player.evaluate, opponents=player.search.opponents)

    def grow(variables: Any, pool: Pool, rows: jax.Array, due: jax.Array, steps: jax.Array) -> Pool:
        chex.assert_rank([rows, due, steps], [1, 2, 0])
        # These stay, so they are read once.
        root, base = root_view(pool.tree, rows), pool.base[rows]
        variant = jax.tree.map(lambda x: x[rows], pool.variant)
        mover = pool.tree.positions[rows, 0].player
        step = functools.partial(play, (variables, variant, mover))

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
                play=step,
                boards=rows,
            )
            return tree, used.at[rows].add(is_made.astype(jnp.int32))

        tree, used = jax.lax.fori_loop(0, steps, simulate, (pool.tree, pool.used))
        return pool._replace(tree=tree, used=used)

    return grow


def make_report(player: Player) -> Any:
    """(variables, pool, rows int32[B]) -> SearchReport."""
    selection = make_selection(player.search)

    def report(variables: Any, pool: Pool, rows: jax.Array) -> SearchReport:
        slot, policy = selection.result(root_view(pool.tree, rows), pool.base[rows])
        variant = jax.tree.map(lambda x: x[rows], pool.variant)
        heads, states = None, State(variant, pool.tree.positions[rows, 0])
        if player.evaluate_heads is not None:
            heads = player.evaluate_heads(variables, states)
        return report_search(
            pool.tree,
            variant,
            pool.scores[rows],
            slot,
            policy,
            player.search,
            heads=heads,
            lines=MOST_LINES,
            boards=rows,
        )

    return report
