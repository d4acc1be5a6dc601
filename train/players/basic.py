"""The player: it chooses slots for a batch of states, on the device; the random and the greedy one.

B boards, A slots.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.evaluator import Calibration
from train.search.puct import draw_at
from train.search.search import Search, SearchResult
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

if TYPE_CHECKING:
    from train.search.report import EvaluateHeads

Act = Callable[[Any, State, jax.Array], jax.Array]
"""(variables, states [B], key) -> int32[B] legal slots (slot 0 on finished boards)."""


class Player(NamedTuple):
    """A name, weights if there are any, how it acts, and what it searches with."""

    name: str  # with everything said, as tables show it
    variables: Any  # weights; () without
    act: Act
    """Plays. Players that differ in weights alone have the same, so that they share programs."""
    report: Search | None = None
    """What it plays, with the policy and the value behind it; None where there is nothing behind
    its moves."""
    evaluate: Any = None
    """The `Evaluator` that its searches ask; None where it cannot evaluate positions."""
    evaluate_heads: "EvaluateHeads | None" = None  # all outputs of its network; None without one
    search: SearchConfig = SearchConfig()
    """Options of its searches, as in a match; the budget is not read."""
    symmetries: int = 1  # turned copies of a root that are evaluated
    simulations: int | None = 0  # of a move, 0 without a search; None where its name says a time
    seconds: float | None = None  # of a move by its name
    trained: Any = None  # its `TrainedNetwork`; None without one
    transfer: bool = False  # whether its network may play rules that it has not learned
    calibration: Calibration = Calibration()  # of its values
    rules: Any = None  # `Rules` of the games that it analyses; None where they may be any

    @property
    def learned(self) -> tuple[Rules, ...]:
        """Rules that its network has learned; empty without a network."""
        return () if self.trained is None else self.trained.config.learned


def act_by(report: Search, temperature: float = 0.0) -> Act:
    """Play what a search chooses, or slots drawn by its policy^(1 / temperature); the same for the
    same search."""
    return _act_by(report, temperature)


@functools.cache
def _act_by(report: Search, temperature: float) -> Act:
    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        if temperature == 0:
            return report(variables, states, key).slot
        search_key, draw_key = jax.random.split(key)
        policy = report(variables, states, search_key).policy
        return draw_at(draw_key, policy, temperature)

    return act


@functools.cache
def make_random_player() -> Player:
    """Plays every legal slot with the same chance."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        return jax.vmap(actions.draw_slot)(states, bits)

    return Player("random", (), act, make_random_search())


@functools.cache
def make_greedy_player() -> Player:
    """Plays for the largest lead in territory after one ply, at random among equals."""

    def judge(states: State) -> tuple[jax.Array, jax.Array]:
        best = jax.vmap(_greedy_slots)(states)
        return best, jnp.where(best, 0.0, MASKED)

    report = make_choice_search(judge)
    return Player("greedy", (), act_by(report), report)


def _greedy_slots(state: State) -> jax.Array:
    """bool[A]: the legal slots whose ply gives the mover its largest lead in territory."""
    mover = state.position.player

    def lead_after(slot: jax.Array) -> jax.Array:
        after, _ = referee.play(state, slot)
        territory = referee.territory(after)
        own = jnp.arange(territory.shape[0]) == mover
        return jnp.where(own, territory, 0).sum() - jnp.where(own, 0, territory).max()

    legal = actions.legal_slots(state)
    leads = jax.vmap(lead_after)(jnp.arange(state.num_slots))
    lead = jnp.where(legal, leads, jnp.iinfo(jnp.int32).min)
    return legal & (lead == lead.max())


def make_random_search() -> Search:
    """The random player as a search: its policy is even over the legal slots."""

    def judge(states: State) -> tuple[jax.Array, jax.Array]:
        legal = jax.vmap(actions.legal_slots)(states)
        return legal, jnp.where(legal, 0.0, MASKED)

    return make_choice_search(judge)


def make_choice_search(judge: Callable[[State], tuple[jax.Array, jax.Array]]) -> Search:
    """A player without search as one, so that self-play can begin with it.

    Args:
      judge: states [B] -> bool[B, A], the slots that it plays, all equally likely, and float32[B,
        A] logits, its raw policy. What is learned is even over the former.
    """

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del variables
        best, prior = judge(states)
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        slot = jax.vmap(chance.choose)(bits, best)
        return _unsearched(slot, best / best.sum(axis=1, keepdims=True), prior)

    return search


def make_move_search(act: Act) -> Search:
    """Moves as a search, whose policy is the slot that is played."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        slot = act(variables, states, key)
        policy = jax.nn.one_hot(slot, states.num_slots)
        return _unsearched(slot, policy, jnp.where(policy > 0, 0.0, MASKED))

    return search


def _unsearched(slot: jax.Array, policy: jax.Array, prior: jax.Array) -> SearchResult:
    nothing = jnp.zeros(slot.shape, jnp.float32)
    return SearchResult(slot.astype(jnp.int32), policy, nothing, nothing, prior)
