"""A search that picks slots at random, which fills replay buffers quickly."""

from typing import Any

import jax

from train.players.basic import make_random_search
from train.search.search import Search, SearchResult
from wallgo_jax.game.state import State


def random_search() -> Search:
    """A search that picks a random legal slot and puts the whole policy on it."""
    choose = make_random_search()

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        result = choose(variables, states, key)
        return result._replace(policy=jax.nn.one_hot(result.slot, result.policy.shape[1]))

    return search
