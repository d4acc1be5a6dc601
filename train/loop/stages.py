"""Who plays the iterations of a run: a teacher at first, then the search by the network, whose
budget may grow.

Iterations of one stage, which its number of simulations names, share a program.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.config import HeuristicsConfig, RunConfig
from train.data.config import SelfPlayConfig
from train.data.selfplay import PlayoutCapSearch, toss_coins
from train.game import Rules, State
from train.network import NetworkConfig
from train.runtime.errors import UsageError, usage_errors
from train.runtime.host import fetch
from train.search.config import SearchConfig, boosts_at, simulations_at
from train.search.evaluator import Evaluator, WithOpponentVariables, evaluator_for
from train.search.search import PriorBoost, Search, SearchResult, make_search
from train.search.tree import Budget

BOOTSTRAP = 0
"""Simulations of the first iterations, which a teacher plays in place of the network's search."""


def simulations_of(config: RunConfig, iteration: int) -> int:
    """Simulations of a full search in an iteration, counted from 0; BOOTSTRAP in the first ones."""
    if iteration < config.selfplay.bootstrap_iterations:
        return BOOTSTRAP
    return simulations_at(config.search, iteration, config.iterations)


def variables_of(config: RunConfig, weights: Any, iteration: int, opponent: Any = None) -> Any:
    """The variables that an iteration's self-play takes: the learner's weights, with the boosts of
    the prior and the weights of a frozen opponent where the run has them."""
    if config.search.prior_boost:
        played = max(0, iteration - config.selfplay.bootstrap_iterations)
        # An array, so that one program serves all iterations.
        weights = PriorBoost(weights, np.array(boosts_at(config.search, played), np.float32))
    return weights if opponent is None else WithOpponentVariables(weights, opponent)


def make_teacher(config: RunConfig) -> Search:
    """The player of the first iterations; the same for equal arguments, so that runs share it.

    Raises:
      UsageError: there is no such player, it needs weights, or it cannot play the rules.
    """
    return _make_teacher(config.selfplay.bootstrap_player, config.learned, config.heuristics)


@functools.cache
def _make_teacher(name: str, learned: tuple[Rules, ...], heuristics: HeuristicsConfig) -> Search:
    # Loaded where a teacher plays: all kinds of players.
    from train.players import registry
    from train.players.names import read_name

    with usage_errors("selfplay.bootstrap_player"):
        # All but the exact player are the same for all rules.
        first, *_ = [registry.make_teacher(name, x, heuristics=heuristics) for x in learned]
        if len(learned) > 1 and read_name(name).kind == "exact":
            raise UsageError(f"player {name!r}: solves one rule set, not several at once")
    return first


def teacher_without_value(teacher: Search) -> Search:
    """A teacher whose values are not learned: its games teach their outcomes."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        result = teacher(variables, states, key)
        return result._replace(value=jnp.full_like(result.value, jnp.nan))

    return search


def search_of_stage(
    search: SearchConfig,
    selfplay: SelfPlayConfig,
    simulations: int,
    *,
    network: NetworkConfig,
    rules: Rules,
    model: Evaluator | None = None,
) -> Search | PlayoutCapSearch:
    """The search by the network that learns, in a stage.

    Args:
      search: its options; the budget is not read.
      selfplay: decides which plies are searched in full.
      simulations: of a full search.
      network: of the evaluator.
      rules: one of those that it learns.
      model: of a frozen opponent.
    """
    evaluate = evaluator_for(network, rules)
    options = dataclasses.replace(search, simulations=simulations, first_simulations=0)
    if selfplay.full_search_prob is None:
        return make_search(evaluate, options, explores=True, model=model)
    cheap = min(selfplay.cheap_simulations, simulations)
    budgets = Budget(simulations, True), Budget(cheap, selfplay.cheap_noise)
    return PlayoutCapSearch(make_search(evaluate, options, budgets=budgets, model=model))


def split_coin_key(key: jax.Array) -> jax.Array:
    """The key of all else in an iteration's self-play, and that of its coins, which all devices
    share: they search a ply equally deep."""
    return jax.random.split(key)


def count_full_plies(config: RunConfig, key: jax.Array) -> int:
    """Number of plies of an iteration that are searched in full once the teacher has played; the
    key of its self-play is not consumed."""
    if config.selfplay.full_search_prob is None:
        return config.selfplay.plies
    return int(fetch(toss_coins(split_coin_key(key)[1], config.selfplay)).sum())
