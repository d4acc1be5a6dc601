"""Searches that report what they found, and the choices of those without noise.

B boards, A slots.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED, Output
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.evaluator import Evaluation, Evaluator, make_play, make_symmetric_evaluator
from train.search.puct import make_puct_slot, most_visited
from train.search.report import SearchReport, report_search
from train.search.search import make_engine
from train.search.sequential_halving import Selection, select_by_halving
from train.search.tree import Node, init_tree
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

EvaluateHeads = Callable[[Any, State], Output]
"""(variables, states [B]) -> the outputs of all heads."""


def make_selection(config: SearchConfig) -> Selection:
    """The choices of a config's kind of search, without noise."""
    if config.kind == "gumbel":
        return select_by_halving(config)
    select = functools.partial(make_puct_slot(config), None)
    return Selection(lambda node, before, due: select(node), select, _puct_result)


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
        found = evaluate_allowed(evaluate_root, variables, states, allowed)
        logits, value, legal = found.logits, found.value[:, 0], found.logits > MASKED
        if simulations:
            game = variables, states.variant, states.position.player
            root = Root(logits, value, states.position, legal)
            slot, policy, _, tree = choose(key, root, functools.partial(play, game))
        else:
            slot, policy = logits.argmax(axis=1), jax.nn.softmax(logits, axis=1)
            policy = jnp.where(legal, policy, 0.0)
            tree = init_tree(logits, value, states.position, nodes=1)
        heads = evaluate_heads and evaluate_heads(variables, states)
        # The evaluator's logits, without the noise that a search with PUCT adds.
        return report_search(
            tree, states.variant, found.value, slot, policy, config, logits=logits, heads=heads
        )

    return search


def evaluate_allowed(
    evaluate: Evaluator, variables: Any, states: State, allowed: jax.Array | None
) -> Evaluation:
    """An evaluation with logits MASKED at slots that are illegal or not allowed; where no legal
    slot is allowed, all legal ones are."""
    found, legal = evaluate(variables, states), jax.vmap(actions.legal_slots)(states)
    if allowed is not None:
        some = legal & allowed
        legal = jnp.where(some.any(axis=1, keepdims=True), some, legal)
    return found._replace(logits=jnp.where(legal, found.logits, MASKED))
