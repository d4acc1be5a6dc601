"""Players with weights: a network's raw policy, or a search that a network guides.

Players of equal configs share one compiled program, whatever their weights.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.network import NetworkConfig, Variables
from train.players.basic import Player
from train.search.config import SearchConfig, as_player
from train.search.evaluator import Evaluator, evaluator_for, make_symmetric_evaluator
from train.search.puct import draw_at
from train.search.search import Search, SearchResult, cast_own_weights, make_search
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

Act = Callable[[Any, State, jax.Array], jax.Array]


def network_player(
    name: str, variables: Variables, config: NetworkConfig, rules: Rules, *, symmetries: int = 1
) -> Player:
    """Plays the likeliest legal slot of a network, without search.

    Args:
      name: of the player.
      variables: weights.
      config: of the network.
      rules: to play.
      symmetries: turned copies of a board, 1 to 8, over which the policy is the mean.
    """
    evaluate = make_symmetric_evaluator(evaluator_for(config, rules), symmetries)
    return Player(name, variables, _network_act(evaluate))


def search_player(
    name: str,
    variables: Variables,
    network: NetworkConfig,
    options: SearchConfig,
    rules: Rules,
    *,
    simulations: int,
) -> Player:
    """Searches without exploration noise, with this many simulations at every ply of a game."""
    return Player(name, variables, search_act(network, options, rules, simulations=simulations))


def search_act(
    network: NetworkConfig,
    options: SearchConfig,
    rules: Rules,
    *,
    simulations: int,
    symmetries: int = 1,
    temperature: float = 0.0,
    model: Evaluator | None = None,
) -> Act:
    """The `act` of a player that searches; the same object for equal arguments.

    Args:
      network: config of the network.
      options: of the search; the budget and its growth are not read.
      rules: to play.
      simulations: at every ply of a game.
      symmetries: turned copies of the root, 1 to 8, whose mean evaluation a search begins with.
      temperature: 0 plays what the search chooses; else a slot is drawn with chances
        policy^(1 / temperature) of the search's policy.
      model: of the opponent, as in `make_search`; not with a temperature.
    """
    options, evaluate = as_player(options, simulations), evaluator_for(network, rules)
    if temperature:
        return _drawing_act(evaluate, options, symmetries, temperature, network)
    return _search_act(evaluate, options, symmetries, model, network)


def make_network_player(name: str, variables: Any, evaluate: Evaluator) -> Player:
    """Plays the likeliest legal slot of an evaluator, without search."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del key
        return evaluate(variables, states).logits.argmax(axis=-1).astype(jnp.int32)

    return Player(name, variables, act)


def make_network_search(evaluate: Evaluator) -> Search:
    """An evaluator's likeliest slot as a search, whose policy is the raw one."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del key
        found = evaluate(variables, states)
        return SearchResult(
            slot=found.logits.argmax(axis=-1).astype(jnp.int32),
            policy=jax.nn.softmax(found.logits, axis=-1),
            value=found.value[:, 0],
            surprise=jnp.zeros_like(found.value[:, 0]),
            prior=found.logits,
        )

    return search


def make_search_player(name: str, variables: Any, search: Search) -> Player:
    """Plays what a search chooses."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        return search(variables, states, key).slot

    return Player(name, variables, act)


@functools.cache
def _network_act(evaluate: Evaluator) -> Act:
    return make_network_player("net", (), evaluate).act


@functools.cache
def _search_act(
    evaluate: Evaluator,
    options: SearchConfig,
    symmetries: int,
    model: Evaluator | None,
    network: NetworkConfig,
) -> Act:
    search = make_search(evaluate, options, explores=False, symmetries=symmetries, model=model)
    return make_search_player("search", (), _casting(search, network)).act


@functools.cache
def _drawing_act(
    evaluate: Evaluator,
    options: SearchConfig,
    symmetries: int,
    temperature: float,
    network: NetworkConfig,
) -> Act:
    search = _casting(
        make_search(evaluate, options, explores=False, symmetries=symmetries), network
    )

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> jax.Array:
        search_key, draw_key = jax.random.split(key)
        policy = search(variables, states, search_key).policy
        return draw_at(draw_key, policy, temperature)

    return act


def _casting(search: Search, network: NetworkConfig) -> Search:
    """The search with its network's weights cast once, before it begins."""
    return lambda variables, states, key: search(cast_own_weights(variables, network), states, key)
