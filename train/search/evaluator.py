"""Steps by the exact rules, and evaluations of positions, for a search; values as win chances.

A tree is paranoid or max^n (`search.opponents`; Sturtevant and Korf, "On Pruning Techniques for
Multi-Player Games", 2000; with two players both are the game itself).

A paranoid tree has two sides: the player to move at the root, and all others, who are taken to play
against it. A value belongs to the side to move where it is read, and is read off the root player's
share. So a child's value counts positive for its parent when the same side moves again (two
placements running, Red's first move after setup, a skipped opponent) and negative when the turn
passes between the sides.

In a max^n tree (Luckhardt and Irani, "An Algorithmic Solution of N-Person Games", 1986) each player
is taken to maximise its own share of the evaluator's values.

A value is an expected reward: 1 for a win, -1 / (players - 1) for a loss, 0 for a draw. With two
players the chance of a value v is (1 + v) / 2, and a draw counts as half a win.

B boards, S symmetries, A slots, P players.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.game import (
    INVERSE_SYMMETRIES,
    NUM_SYMMETRIES,
    BoardAnalysis,
    Position,
    Precomputed,
    Rules,
    State,
    Variant,
    legal_slots,
    phase_of,
    play_with_analysis,
    reward_of,
    turn_policy,
    turn_state,
)
from train.network import (
    MASKED,
    Network,
    NetworkConfig,
    Observe,
    network_for,
    observer_for,
    slot_logits,
)
from train.runtime.devices import backend
from train.runtime.fields import Count, Positive
from train.search.tree import Step

SYMMETRY_ORDER = (0, 2, 1, 3, 4, 5, 6, 7)
"""The symmetries as they are taken: the first 1, 2, 4 and 8 are groups, so the mean over them is
the same for a board and for that board turned by any of them."""
Numbers = np.ndarray | jax.Array
"""An array on the host; records of device arrays keep their type when they are fetched."""
SAME_SIDE, OTHER_SIDE, GAME_OVER = 1.0, -1.0, 0.0
"""Discounts of a step, by the side that moves after it."""


class WithOpponentVariables(NamedTuple):
    """Variables of an evaluator, with those of the opponent that a search models."""

    own: Any
    opponent: Any


class Evaluation(NamedTuple):
    """An evaluator's logits and values for a batch of states.

    Attributes:
      logits: float32[B, A], MASKED at illegal slots.
      value: float32[B, P], expected reward of each player, the one to move first.
    """

    logits: jax.Array
    value: jax.Array


class Evaluator(Protocol):
    """Evaluates states [B]; a caller that has analysed their boards passes the analysis."""

    def __call__(
        self, variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation: ...


def make_evaluator(network: Network, observe_state: Observe) -> Evaluator:
    """An evaluator that observes states and asks a network."""

    def observe(state: State, analysis: BoardAnalysis | None) -> jax.Array:
        precomputed = None if analysis is None else Precomputed(before=None, analysis=analysis)
        return observe_state(state, precomputed)

    def evaluate(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        view = jax.vmap(observe)(states, analysis)
        with jax.named_scope("evaluate"):
            output = network.evaluate(variables, view)
            legal = legal_slots_of(states, analysis)
            logits = jax.vmap(slot_logits)(output.policy, states, legal)
        return Evaluation(logits, output.value)

    return evaluate


def evaluator_for(config: NetworkConfig, rules: Rules) -> Evaluator:
    """The evaluator of a config's network for these rules; the same object for equal shapes."""
    return _evaluator(config, rules.players, rules.size if config.custom else 0, backend())


@functools.cache
def _evaluator(config: NetworkConfig, players: int, size: int, platform: str) -> Evaluator:
    del platform  # which decides the type of the network's numbers
    return make_evaluator(network_for(config, players, size=size), observer_for(config))


def legal_slots_of(states: State, analysis: BoardAnalysis | None) -> jax.Array:
    """bool[B, A]: the legal slots of states [B], read off an analysis of their boards if given."""

    def allow(state: State, analysis: BoardAnalysis | None) -> jax.Array:
        return legal_slots(state, terrain=None if analysis is None else analysis.terrain)

    return jax.vmap(allow)(states, analysis)


@functools.cache
def make_symmetric_evaluator(evaluate: Evaluator, symmetries: int) -> Evaluator:
    """An evaluator that gives the mean logits and values of an evaluator over turned copies.

    A network is not symmetric, so turned copies of a position get other logits and values. Their
    mean, mapped back, is a better evaluation than any one of them, as an ensemble's is (KataGo's
    `rootNumSymmetriesToSample`). A search evaluates its root once and its leaves many times, so
    only the root is worth it.

    It evaluates all copies in one batch of B * S boards. For one symmetry it is the evaluator
    itself.

    Args:
      evaluate: evaluates the copies.
      symmetries: S, how many of SYMMETRY_ORDER, 1 to 8.
    """
    assert 1 <= symmetries <= NUM_SYMMETRIES
    if symmetries == 1:
        return evaluate
    there = np.asarray(SYMMETRY_ORDER[:symmetries], np.int32)
    back = np.asarray(INVERSE_SYMMETRIES, np.int32)[there]

    def turn_policies(policies: jax.Array, state: State) -> jax.Array:
        """[S, A]: each policy of a state's turned copies, turned back."""
        turn = jax.vmap(turn_policy, in_axes=(0, 0, None, None))
        return turn(policies, jnp.asarray(back), phase_of(state), state.variant)

    def evaluate_turned(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        turn = jax.vmap(turn_state, in_axes=(None, 0))
        turned = jax.vmap(lambda state: turn(state, jnp.asarray(there)))(states)
        merged = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), turned)
        evaluation = evaluate(variables, merged)
        by_copy = jax.tree.map(lambda x: x.reshape(-1, symmetries, *x.shape[1:]), evaluation)
        logits = jax.vmap(turn_policies)(by_copy.logits, states)
        legal = legal_slots_of(states, analysis)
        # A sum of masked logits would overflow.
        mean = jnp.where(legal[:, None], logits, 0.0).mean(axis=1)
        # The one slot of a finished game is no move, so it does not turn with the board.
        is_over, unturned = states.position.terminated[:, None], by_copy.logits[:, 0]
        mean = jnp.where(is_over, unturned, mean)
        return Evaluation(jnp.where(legal, mean, MASKED), by_copy.value.mean(axis=1))

    return evaluate_turned


def make_play(
    evaluate: Evaluator, *, opponents: str = "paranoid", model: Evaluator | None = None
) -> Callable[..., Step]:
    """A step by the exact rules, and the evaluation of the position after it.

    Args:
      evaluate: evaluates the positions.
      opponents: `paranoid` or `maxn`.
      model: has the policy of all players but the root's, whose positions are then marked as
        modelled; values stay those of `evaluate`. The variables are then `WithOpponentVariables`.

    Returns:
      ((variables, variant [B], root player int8[B]), slot int32[B], position [B]) -> Step.
    """

    def play(game: tuple[Any, Variant, jax.Array], slot: jax.Array, position: Position) -> Step:
        variables, variant, root = game
        variables, theirs = (variables, None) if model is None else variables
        chex.assert_rank([slot, position.player, root], 1)
        with jax.named_scope("play"):
            states, rewards, analysis = jax.vmap(play_with_analysis)(State(variant, position), slot)
        after = states.position
        # The step has analysed the board that it leads to: the evaluator need not do so again.
        evaluation, is_modelled = evaluate(variables, states, analysis), None
        if model is not None:
            is_modelled = after.player != root
            modelled = model(theirs, states, analysis).logits
            logits = jnp.where(is_modelled[:, None], modelled, evaluation.logits)
            evaluation = evaluation._replace(logits=logits)
        if opponents == "maxn":
            step = _step_for_each(position.player, rewards, after, evaluation)
            return step._replace(is_modelled=is_modelled)
        share = value_of(evaluation.value, after.player, root) * side_of(after.player, root)
        return Step(
            reward=reward_of(rewards, root) * side_of(position.player, root),
            discount=discount_of(position.player, after, root),
            logits=evaluation.logits,
            # A finished game is worth its reward; the network's value of it must not count.
            value=jnp.where(after.terminated, 0.0, share),
            position=after,
            returns=None,
            is_modelled=is_modelled,
        )

    return play


def _step_for_each(
    mover: jax.Array, rewards: jax.Array, after: Position, evaluation: Evaluation
) -> Step:
    """A step whose returns are each player's own: rewards at the end, values before it."""
    values = by_player(evaluation.value, after.player)
    returns = jnp.where(after.terminated[:, None], rewards, values)
    return Step(
        reward=reward_of(returns, mover),
        discount=jnp.where(after.terminated, GAME_OVER, SAME_SIDE).astype(jnp.float32),
        logits=evaluation.logits,
        value=jnp.where(after.terminated, 0.0, evaluation.value[:, 0]),
        position=after,
        returns=returns,
        is_modelled=None,
    )


def by_player(shares: Numbers, mover: Numbers) -> jax.Array:
    """[B, ..., P]: numbers of players from the movers [B] on, turned so that player 0 is first."""
    players = shares.shape[-1]
    place = (jnp.arange(players)[None] - jnp.asarray(mover, jnp.int32)[:, None]) % players
    place = place.reshape(len(place), *[1] * (shares.ndim - 2), players)
    return jnp.take_along_axis(jnp.asarray(shares), place, axis=-1)


def value_of(value: jax.Array, mover: jax.Array, player: jax.Array) -> jax.Array:
    """float32[B]: one player's share of float32[B, P] values, which begin with the mover's."""
    players = value.shape[1]
    return reward_of(value, (player - mover) % players)


def side_of(player: jax.Array, root: jax.Array) -> jax.Array:
    """float32[B]: 1 where a player is the root's, -1 where it is one of the others."""
    return jnp.where(player == root, jnp.float32(1.0), jnp.float32(-1.0))


def discount_of(mover: jax.Array, after: Position, root: jax.Array) -> jax.Array:
    """float32[B]: the weight of a value after the step for the side that made it."""
    same = (after.player == root) == (mover == root)
    discount = jnp.where(after.terminated, GAME_OVER, jnp.where(same, SAME_SIDE, OTHER_SIDE))
    return discount.astype(jnp.float32)


_EDGE = 1e-6


class Calibration(NamedTuple):
    """Factors of log-odds that turn values into win chances; 1 leaves them as they are.

    One factor and no offset: the chances of the two sides add up to 1.
    """

    network: Positive = 1.0  # of the network's own values
    search: Positive = 1.0  # of values after a search
    simulations: Count | None = None  # of the search that was fitted; None where nothing was

    def chance(self, value: Any, *, players: int, is_searched: bool = True) -> np.ndarray:
        """The chance to win of values from one side; see `win_chance`."""
        return win_chance(
            value, players=players, factor=self.search if is_searched else self.network
        )


def win_chance(value: Any, *, players: int, factor: float = 1.0) -> np.ndarray:
    """The chance to win of values from one side, as an array of their shape.

    Args:
      value: expected rewards.
      players: in the game.
      factor: of the log-odds; read with two players only.
    """
    plain = ((players - 1) * np.asarray(value, np.float64) + 1) / players
    chance = np.clip(plain, 0.0, 1.0)
    if players != 2 or factor == 1.0:
        return chance
    inner = np.clip(chance, _EDGE, 1 - _EDGE)
    odds = factor * np.log(inner / (1 - inner))
    # What is certain stays certain.
    return np.where((chance == 0) | (chance == 1), chance, 1 / (1 + np.exp(-odds)))
