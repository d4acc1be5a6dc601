"""Gumbel search over the exact game, in slots; the only file that knows mctx.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022). The tree holds positions, not observations or public masks: planes and legal slots are worked
out when a node is made, and the variant, the same at every node, stays outside.

A value belongs to the player to move where it is read. So a child's value counts positive for its
parent when the same player moves again (two placements running, Red's first move after setup, a
skipped opponent) and negative when the turn passes.

B boards, A slots.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx

from train.network import Network, slot_logits
from wallgo_jax import observation
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import Position, State, Variant

SAME_PLAYER, OTHER_PLAYER, GAME_OVER = 1.0, -1.0, 0.0
"""Discounts of a step, by who moves after it."""


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Options of the search.

    Attributes:
      simulations: simulations a move.
      considered: most actions that sequential halving starts from at the root.
    """

    simulations: int = 16
    considered: int = 16

    def __post_init__(self) -> None:
        if self.simulations < 1 or self.considered < 1:
            raise ValueError("simulations and considered must be at least 1")


class Judgement(NamedTuple):
    """What an evaluator says of a batch of states."""

    logits: jax.Array  # float32[B, A], MASKED at illegal slots
    value: jax.Array  # float32[B], expected reward of the player to move


Evaluator = Callable[[Any, State], Judgement]
"""(variables, states [B]) -> Judgement."""


class SearchResult(NamedTuple):
    """What a search found."""

    slot: jax.Array  # int32[B], the chosen action
    policy: jax.Array  # float32[B, A], the improved policy, 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move


def make_evaluator(network: Network, *, grid: int, planes: str, has_playable: bool) -> Evaluator:
    """Look at states through a network."""

    def evaluate(variables: Any, states: State) -> Judgement:
        view = jax.vmap(
            lambda state: observation.observe(
                state, grid=grid, planes=planes, has_playable=has_playable
            )
        )(states)
        output = network.evaluate(variables, view)
        return Judgement(jax.vmap(slot_logits)(output.policy, states), output.value)

    return evaluate


def make_search(
    evaluate: Evaluator, config: SearchConfig, *, grid: int, gumbel_scale: float
) -> Callable[[Any, State, jax.Array], SearchResult]:
    """A search as a function of (variables, states [B], key).

    Args:
      evaluate: judges leaves and roots.
      config: options of the search.
      grid: side length of the grid.
      gumbel_scale: 1 to explore, 0 for the strongest move.
    """

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        chex.assert_rank(states.position.player, 1)
        root = evaluate(variables, states)
        legal = jax.vmap(lambda state: actions.legal_slots(state, grid=grid))(states)
        outcome = mctx.gumbel_muzero_policy(
            params=(variables, states.variant),
            rng_key=key,
            root=mctx.RootFnOutput(
                prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                value=root.value,  # pyright: ignore[reportCallIssue]
                embedding=states.position,  # pyright: ignore[reportCallIssue]
            ),
            recurrent_fn=make_recurrent_fn(evaluate, grid=grid),
            num_simulations=config.simulations,
            invalid_actions=~legal,
            max_num_considered_actions=config.considered,
            gumbel_scale=gumbel_scale,
        )
        value = outcome.search_tree.summary().value
        return SearchResult(
            jnp.asarray(outcome.action), jnp.asarray(outcome.action_weights), jnp.asarray(value)
        )

    return search


def make_recurrent_fn(evaluate: Evaluator, *, grid: int) -> Callable[..., Any]:
    """mctx's model of the game: the exact rules, judged by the evaluator."""

    def recurrent(
        params: tuple[Any, Variant], key: jax.Array, slot: jax.Array, position: Position
    ) -> tuple[Any, Position]:
        del key
        variables, variant = params
        states, rewards = jax.vmap(lambda state, s: referee.play(state, s, grid=grid))(
            State(variant, position), slot
        )
        judgement = evaluate(variables, states)
        output = mctx.RecurrentFnOutput(
            reward=referee.reward_of(rewards, position.player),  # pyright: ignore[reportCallIssue]
            discount=discount_of(position.player, states.position),  # pyright: ignore[reportCallIssue]
            prior_logits=judgement.logits,  # pyright: ignore[reportCallIssue]
            value=jnp.where(states.position.terminated, 0.0, judgement.value),  # pyright: ignore[reportCallIssue]
        )
        return output, states.position

    return recurrent


def discount_of(mover: jax.Array, after: Position) -> jax.Array:
    """float32[B]: how a value after the step counts for who made it."""
    sign = jnp.where(after.player == mover, SAME_PLAYER, OTHER_PLAYER)
    return jnp.where(after.terminated, GAME_OVER, sign)
