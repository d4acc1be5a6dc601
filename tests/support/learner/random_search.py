"""A search that picks slots at random, which fills replay buffers quickly."""

from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.search.search import Search, SearchResult
from wallgo_jax.game import actions, chance
from wallgo_jax.game.state import State


def random_search() -> Search:
    """A search that picks a random legal slot and puts the whole policy on it."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        legal = jax.vmap(actions.legal_slots)(states)
        slot = jax.vmap(chance.choose)(bits, legal)
        nothing = jnp.zeros(slot.shape)
        policy, prior = jax.nn.one_hot(slot, legal.shape[1]), jnp.where(legal, 0.0, MASKED)
        return SearchResult(slot, policy, nothing, nothing, prior)

    return search
