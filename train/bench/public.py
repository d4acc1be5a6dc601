"""A search that mctx does over the public actions, 2597 on the standard board: what slots save.

B boards, N public actions.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train import search as search_lib
from train.search import Evaluator, Judgement, Search, SearchConfig, SearchResult
from wallgo_jax.game import actions
from wallgo_jax.game.state import Position, State


def make_public_search(evaluate: Evaluator, config: SearchConfig, *, grid: int) -> Search:
    """`train.search.make_search`, with mctx's own Gumbel search and public actions for slots.

    Args:
      evaluate: gives logits float32[B, N].
      config: of kind `gumbel`.
    """
    mctx = search_lib.mctx
    recurrent_fn = _make_recurrent_fn(evaluate, grid=grid)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        root = evaluate(variables, states)
        found = mctx.gumbel_muzero_policy(
            params=(variables, states.variant, states.position.player),
            rng_key=key,
            root=mctx.RootFnOutput(
                prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                value=root.value[:, 0],  # pyright: ignore[reportCallIssue]
                embedding=states.position,  # pyright: ignore[reportCallIssue]
            ),
            recurrent_fn=recurrent_fn,
            num_simulations=config.simulations,
            invalid_actions=~jax.vmap(lambda s: actions.legal_actions(s, grid=grid))(states),
            max_num_considered_actions=config.considered,
        )
        policy, value = jnp.asarray(found.action_weights), found.search_tree.summary().value
        slot = jax.vmap(lambda s, action: actions.slot_of_action(s, action, grid=grid))(
            states, jnp.asarray(found.action)
        )
        return SearchResult(slot, policy, jnp.asarray(value), jnp.zeros_like(root.value[:, 0]))

    return search


def make_public_evaluator(*, grid: int, players: int) -> Evaluator:
    """All legal public actions alike, nobody ahead."""

    def evaluate(variables: Any, states: State) -> Judgement:
        del variables
        legal = jax.vmap(lambda state: actions.legal_actions(state, grid=grid))(states)
        logits = jnp.where(legal, 0.0, search_lib.MASKED)
        return Judgement(logits, jnp.zeros((legal.shape[0], players)))

    return evaluate


def _make_recurrent_fn(evaluate: Evaluator, *, grid: int) -> Callable[..., Any]:
    in_slots = search_lib.make_recurrent_fn(evaluate, grid=grid)

    def recurrent(params: Any, key: jax.Array, action: jax.Array, position: Position):
        _, variant, _ = params
        slot = jax.vmap(lambda s, a: actions.slot_of_action(s, a, grid=grid))(
            State(variant, position), action
        )
        return in_slots(params, key, slot, position)

    return recurrent
