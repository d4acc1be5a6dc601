"""Players choose slots for a batch of states, on the device; the random and the greedy player.

A player's `act` is jitted once and takes its weights as an argument, so that the checkpoints of a
run share one compiled program.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.search.search import Search, SearchResult
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State


class Player(NamedTuple):
    """A name, weights if there are any, and how it acts."""

    name: str
    variables: Any
    act: Callable[[Any, State, jax.Array], jax.Array]
    """(variables, states [B], key) -> int32[B] legal slots (slot 0 on finished boards)."""


def make_random_player() -> Player:
    """Plays every legal slot with the same chance."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        return jax.vmap(actions.draw_slot)(states, bits)

    return Player("random", (), act)


def make_greedy_player() -> Player:
    """Plays for the largest lead in territory after one ply, at random among equals."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        return jax.vmap(chance.choose)(bits, greedy_slots(states))

    return Player("greedy", (), act)


def greedy_slots(states: State) -> jax.Array:
    """bool[B, A]: the legal slots whose ply gives the mover its largest lead in territory."""

    def best(state: State) -> jax.Array:
        mover = state.position.player
        slots = jnp.arange(state.num_slots)

        def lead_after(slot: jax.Array) -> jax.Array:
            after, _ = referee.play(state, slot)
            territory = referee.territory(after)
            own = jnp.arange(territory.shape[0]) == mover
            return jnp.where(own, territory, 0).sum() - jnp.where(own, 0, territory).max()

        legal = actions.legal_slots(state)
        lead = jnp.where(legal, jax.vmap(lead_after)(slots), jnp.iinfo(jnp.int32).min)
        return legal & (lead == lead.max())

    return jax.vmap(best)(states)


def make_greedy_search() -> Search:
    """The greedy player as a search: its policy is even over the slots that it draws from."""

    def judge(states: State) -> tuple[jax.Array, jax.Array]:
        best = greedy_slots(states)
        return best, jnp.where(best, 0.0, MASKED)

    return make_choice_search(judge)


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
        nothing = jnp.zeros(best.shape[0], jnp.float32)
        return SearchResult(
            slot=jax.vmap(chance.choose)(bits, best).astype(jnp.int32),
            policy=best / best.sum(axis=1, keepdims=True),
            value=nothing,
            surprise=nothing,
            prior=prior,
        )

    return search


def make_player_search(player: Player) -> Search:
    """Any player that needs no weights as a search: its policy is the slot that it plays."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del variables
        slot = player.act(player.variables, states, key).astype(jnp.int32)
        policy = jax.nn.one_hot(slot, states.num_slots)
        nothing = jnp.zeros(slot.shape, jnp.float32)
        return SearchResult(slot, policy, nothing, nothing, jnp.where(policy > 0, 0.0, MASKED))

    return search
