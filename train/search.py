"""Gumbel search over the exact game, in slots; the only file that knows mctx.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022). The tree holds positions, not observations or public masks: planes and legal slots are worked
out when a node is made, and the variant, the same at every node, stays outside.

The tree has two sides: the player to move at the root, and all others, who are taken to play
against it (the paranoid tree of games of more than two players, Sturtevant and Korf, "On Pruning
Techniques for Multi-Player Games", 2000; with two players, the game itself). A value belongs to the
side to move where it is read, and is read off the root player's share. So a child's value counts
positive for its parent when the same side moves again (two placements running, Red's first move
after setup, a skipped opponent) and negative when the turn passes between the sides.

B boards, A slots, P players.
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

SAME_SIDE, OTHER_SIDE, GAME_OVER = 1.0, -1.0, 0.0
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
    value: jax.Array  # float32[B, P], expected reward of each player, the one to move first


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
            params=(variables, states.variant, states.position.player),
            rng_key=key,
            root=mctx.RootFnOutput(
                prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                value=root.value[:, 0],  # pyright: ignore[reportCallIssue]
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
        params: tuple[Any, Variant, jax.Array], key: jax.Array, slot: jax.Array, position: Position
    ) -> tuple[Any, Position]:
        del key
        variables, variant, root = params
        states, rewards = jax.vmap(lambda state, s: referee.play(state, s, grid=grid))(
            State(variant, position), slot
        )
        after = states.position
        judgement = evaluate(variables, states)
        share = value_of(judgement.value, after.player, root) * side_of(after.player, root)
        output = mctx.RecurrentFnOutput(
            reward=referee.reward_of(rewards, root) * side_of(position.player, root),  # pyright: ignore[reportCallIssue]
            discount=discount_of(position.player, after, root),  # pyright: ignore[reportCallIssue]
            prior_logits=judgement.logits,  # pyright: ignore[reportCallIssue]
            value=jnp.where(after.terminated, 0.0, share),  # pyright: ignore[reportCallIssue]
        )
        return output, after

    return recurrent


def value_of(value: jax.Array, mover: jax.Array, player: jax.Array) -> jax.Array:
    """float32[B]: one player's share of float32[B, P] values, which begin with the mover's."""
    players = value.shape[1]
    return referee.reward_of(value, (player - mover) % players)


def side_of(player: jax.Array, root: jax.Array) -> jax.Array:
    """float32[B]: 1 where a player is the root's, -1 where it is one of the others."""
    return jnp.where(player == root, 1.0, -1.0)


def discount_of(mover: jax.Array, after: Position, root: jax.Array) -> jax.Array:
    """float32[B]: how a value after the step counts for the side that made it."""
    same = (after.player == root) == (mover == root)
    return jnp.where(after.terminated, GAME_OVER, jnp.where(same, SAME_SIDE, OTHER_SIDE))
