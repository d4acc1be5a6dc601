"""Searches that say what they found: in one program, or in parts between which others may run.

B boards, A slots.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.network import MASKED, Output
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.evaluator import Evaluation, Evaluator, make_play, make_symmetric_evaluator
from train.search.puct import make_puct_slot, most_visited
from train.search.report import MOST_LINES, SearchReport, report_search
from train.search.search import make_engine
from train.search.sequential_halving import (
    best_of_root,
    completed_values,
    halving_schedule,
    improved_policy,
    mask_logits,
    slot_below,
    visits_due,
)
from train.search.simulation import simulate
from train.search.tree import Node, Tree, init_tree, root_view
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

EvaluateHeads = Callable[[Any, State], Output]
"""(variables, states [B]) -> the outputs of all heads."""


class Selection(NamedTuple):
    """The choices of a search without noise: at the root, below it, and in the end."""

    at_root: Callable[[Node, Any, jax.Array], jax.Array]
    """(node, visits before the search, visits of slots that are due) -> slot int32[B]."""
    below: Callable[[Node], jax.Array]
    """node -> slot int32[B]."""
    result: Callable[[Node, Any], tuple[jax.Array, jax.Array]]
    """(node, visits before the search) -> slot int32[B], policy float32[B, A]."""


def make_selection(config: SearchConfig) -> Selection:
    """The choices of a config's kind of search.

    Gumbel search considers the slots of the highest score and halves them; halving counts the
    visits of this search alone, while values and scores know all.
    """
    if config.kind == "puct":
        select = functools.partial(make_puct_slot(config), None)
        return Selection(lambda node, before, due: select(node), select, _puct_result)

    def best(node: Node, before: Any, due: jax.Array) -> jax.Array:
        legal = node.logits > MASKED
        return best_of_root(node, config, due, legal=legal, before=before)

    def below(node: Node) -> jax.Array:
        return slot_below(node, completed_values(node, config))

    def result(node: Node, before: Any) -> tuple[jax.Array, jax.Array]:
        # The survivors of the last halving are those of the most visits in this search.
        slot = best(node, before, (node.slot_visits - before).max(axis=1))
        return slot, improved_policy(node, config, node.logits > MASKED)

    return Selection(best, below, result)


def _puct_result(node: Node, before: Any) -> tuple[jax.Array, jax.Array]:
    del before
    visits = node.slot_visits.astype(jnp.float32)
    total = visits.sum(axis=1, keepdims=True)
    prior = jax.nn.softmax(node.logits, axis=1)
    policy = jnp.where(total > 0, visits / jnp.maximum(total, 1.0), prior)
    return most_visited(node.slot_visits, node.logits), policy


@functools.cache
def make_reporting_search(
    evaluate: Evaluator,
    config: SearchConfig,
    *,
    simulations: int,
    explores: bool = False,
    symmetries: int = 1,
    evaluate_heads: EvaluateHeads | None = None,
) -> Callable[..., SearchReport]:
    """A search by the native engine as a jitted function of (variables, states [B], key, allowed
    bool[B, A] or None): slots that are not allowed are no moves at the root, unless that leaves
    none.

    Args:
      evaluate: evaluates roots and leaves.
      config: options of the search, but for its simulations.
      simulations: 0 shows what the evaluator says.
      explores: searches with the noise of self-play.
      symmetries: turned copies of the root, as in `make_search`.
      evaluate_heads: gives the outputs that owners and margin are read from.
    """
    # Both engines find the same, and the native tree can be read.
    config = dataclasses.replace(config, engine="native", simulations=max(simulations, 1))
    choose = make_engine(config, explores=explores)
    play = make_play(evaluate, opponents=config.opponents)
    evaluate_root = make_symmetric_evaluator(evaluate, symmetries)

    @jax.jit
    def search(
        variables: Any, states: State, key: jax.Array, allowed: jax.Array | None = None
    ) -> SearchReport:
        found = _evaluate_allowed(evaluate_root, variables, states, allowed)
        logits, value, legal = found.logits, found.value[:, 0], found.logits > MASKED
        if simulations:
            game = variables, states.variant, states.position.player
            root = Root(logits, value, states.position, legal)
            slot, policy, _, tree = choose(key, root, functools.partial(play, game))
        else:
            slot, policy = logits.argmax(axis=1), jax.nn.softmax(logits, axis=1)
            policy = jnp.where(legal, policy, 0.0)
            tree = init_tree(logits, value, states.position, nodes=1)
        heads = None if evaluate_heads is None else evaluate_heads(variables, states)
        # The evaluator's logits, without the noise that a search with PUCT adds.
        return report_search(
            tree, states.variant, found.value, slot, policy, config, logits=logits, heads=heads
        )

    return search


class SearchInParts(NamedTuple):
    """The jitted steps of a search without noise."""

    begin: Callable[..., tuple[Tree, jax.Array]]
    """(variables, states [B], allowed bool[B, A] or None) -> the tree, and scores float32[B, P]."""
    grow: Callable[..., Tree]
    """(variables, states [B], tree, nodes to make int32[M]) -> the tree, whose buffers are used."""
    report: Callable[..., SearchReport]
    """(variables, states [B], tree, scores) -> SearchReport."""


@functools.cache
def make_search_in_parts(
    evaluate: Evaluator,
    config: SearchConfig,
    *,
    symmetries: int = 1,
    evaluate_heads: EvaluateHeads | None = None,
) -> SearchInParts:
    """A Gumbel search in parts, which finds what `make_reporting_search` finds; the arguments are
    the same."""
    selection = make_selection(config)
    play = make_play(evaluate, opponents=config.opponents)
    evaluate_root = make_symmetric_evaluator(evaluate, symmetries)
    schedule = halving_schedule(config.max_considered_actions, config.simulations)

    @jax.jit
    def begin(variables: Any, states: State, allowed: jax.Array | None) -> tuple[Tree, jax.Array]:
        found = _evaluate_allowed(evaluate_root, variables, states, allowed)
        prior = mask_logits(found.logits, found.logits > MASKED)
        nodes = config.simulations + 1
        return init_tree(prior, found.value[:, 0], states.position, nodes=nodes), found.value

    @functools.partial(jax.jit, donate_argnums=2)
    def grow(variables: Any, states: State, tree: Tree, fresh: jax.Array) -> Tree:
        game = variables, states.variant, states.position.player

        def at_root(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            due = visits_due(node.visits, node.logits > MASKED, schedule)
            return selection.at_root(node, 0, due)

        return simulate(
            tree,
            None,
            at_root=at_root,
            below=lambda keys, node: selection.below(node),
            play=functools.partial(play, game),
            fresh=fresh,
        )

    @jax.jit
    def report(variables: Any, states: State, tree: Tree, scores: jax.Array) -> SearchReport:
        slot, policy = selection.result(root_view(tree), 0)
        heads = None if evaluate_heads is None else evaluate_heads(variables, states)
        return report_search(
            tree, states.variant, scores, slot, policy, config, heads=heads, lines=MOST_LINES
        )

    return SearchInParts(begin, grow, report)


def _evaluate_allowed(
    evaluate: Evaluator, variables: Any, states: State, allowed: jax.Array | None
) -> Evaluation:
    """An evaluation with logits MASKED at slots that are illegal or not allowed; where no legal
    slot is allowed, all legal ones are."""
    found, legal = evaluate(variables, states), jax.vmap(actions.legal_slots)(states)
    if allowed is not None:
        some = legal & allowed
        legal = jnp.where(some.any(axis=1, keepdims=True), some, legal)
    return found._replace(logits=jnp.where(legal, found.logits, MASKED))
