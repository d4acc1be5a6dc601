"""A search by mctx over the public actions, 2597 on the standard board: shows what slots save.

B boards, N public actions.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED, Network
from train.search import mctx_engine
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.evaluator import Evaluation, Evaluator, make_play
from train.search.search import Search, SearchResult
from train.search.tree import Step
from wallgo_jax import observation
from wallgo_jax.game import actions
from wallgo_jax.game.state import Position, State
from wallgo_jax.game.terrain import BoardAnalysis


def make_public_search(evaluate: Evaluator, config: SearchConfig) -> Search:
    """`make_search`, with mctx's own Gumbel search and public actions for slots.

    Args:
      evaluate: gives logits float32[B, N].
      config: of kind `gumbel`.
    """
    choose = mctx_engine.make_gumbel(config, explores=True)
    play = _make_public_play(evaluate)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        variant, position = states
        evaluation = evaluate(variables, states)
        legal = jax.vmap(actions.legal_actions)(states)
        found = choose(
            key,
            Root(evaluation.logits, evaluation.value[:, 0], position, legal),
            functools.partial(play, (variables, variant, position.player)),
        )
        slot = jax.vmap(actions.slot_of_action)(states, found.slot)
        surprise = jnp.zeros_like(found.value)
        return SearchResult(slot, found.policy, found.value, surprise, evaluation.logits)

    return search


def make_public_evaluator(*, players: int) -> Evaluator:
    """Give all legal public actions the same logit and everybody the value 0."""

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del variables, analysis
        legal = jax.vmap(actions.legal_actions)(states)
        logits = jnp.where(legal, 0.0, MASKED)
        return Evaluation(logits, jnp.zeros((legal.shape[0], players)))

    return evaluate


def make_public_network_evaluator(network: Network, *, planes: str) -> Evaluator:
    """Evaluate public actions by a network; the planes of its policy already have their order."""

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        del analysis
        view = jax.vmap(lambda state: observation.observe(state, planes=planes))(states)
        output = network.evaluate(variables, view)
        plays, places = output.policy[..., :-1], output.policy[..., -1]
        logits = jnp.concatenate([x.reshape(x.shape[0], -1) for x in (plays, places)], axis=1)
        legal = jax.vmap(actions.legal_actions)(states)
        return Evaluation(jnp.where(legal, logits, MASKED), output.value)

    return evaluate


def _make_public_play(evaluate: Evaluator) -> Callable[..., Step]:
    in_slots = make_play(evaluate)

    def play(game: Any, action: jax.Array, position: Position) -> Step:
        _, variant, _ = game
        slot = jax.vmap(actions.slot_of_action)(State(variant, position), action)
        return in_slots(game, slot, position)

    return play
