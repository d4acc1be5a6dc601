"""Chooses the player of each iteration of a run: a teacher at first, then the network's search,
whose budget may grow.

Iterations of one stage, which its number of simulations names, share a program.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data.selfplay import PlayoutCapSearch, make_selfplay, toss_coins
from train.game import State
from train.loop.tables import PlayTables
from train.metrics.rows import Row
from train.runtime.host import fetch
from train.search.config import boosts_at, simulations_at
from train.search.evaluator import WithOpponentVariables, evaluator_for
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


def selfplay_of(tables: PlayTables, simulations: int) -> Callable[..., Any]:
    """An iteration of self-play, as `make_selfplay` makes it, by the teacher or by a search of that
    budget."""
    options = tables.selfplay
    opponent = tables.opponent
    if simulations == BOOTSTRAP:
        search = _teacher_of(tables)
        # Its policies are all learned alike.
        options = dataclasses.replace(
            options, policy_surprise_weight=None, cheap_policy_weight=None
        )
    else:
        search = _search_of(tables, simulations)
    return make_selfplay(
        search,
        options,
        has_root_value=tables.has_root_value,
        opponent=None if opponent is None else opponent.report,
    )


def _teacher_of(tables: PlayTables) -> Search:
    """The teacher, without values where these are learned: its games teach their outcomes."""
    teacher = tables.teacher
    assert teacher is not None, "of a run with bootstrap_iterations"
    if not tables.has_root_value:
        return teacher

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        result = teacher(variables, states, key)
        return result._replace(value=jnp.full_like(result.value, jnp.nan))

    return search


def _search_of(tables: PlayTables, simulations: int) -> Search | PlayoutCapSearch:
    """The search by the network that learns, full on all plies or on some."""
    selfplay = tables.selfplay
    opponent = tables.opponent
    evaluate = evaluator_for(tables.network, tables.rules)
    options = dataclasses.replace(tables.search, simulations=simulations, first_simulations=0)
    model = None if opponent is None else opponent.evaluate
    if selfplay.full_search_prob is None:
        return make_search(evaluate, options, explores=True, model=model)
    cheap = min(selfplay.cheap_simulations, simulations)
    budgets = Budget(simulations, True), Budget(cheap, selfplay.cheap_noise)
    return PlayoutCapSearch(make_search(evaluate, options, budgets=budgets, model=model))


def reanalysis_of(tables: PlayTables, simulations: int) -> Search:
    """The search of positions of the replay, by the network that learns."""
    options = dataclasses.replace(tables.search, simulations=simulations, first_simulations=0)
    return make_search(evaluator_for(tables.network, tables.rules), options, explores=True)


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


def evaluations(config: RunConfig, full: float, positions: float) -> float:
    """Number of network evaluations of searches: one at each root and at each simulation, of
    self-play and of what is searched again.

    Args:
      full: positions that are searched in full.
      positions: all that are searched.
    """
    simulations = config.search.simulations
    cheap_simulations = min(config.selfplay.cheap_simulations, simulations)
    again = positions * config.replay.reanalyse / config.selfplay.plies
    return (
        full * (simulations + 1)
        + (positions - full) * (cheap_simulations + 1)
        + again * (config.replay.reanalyse_simulations + 1)
    )


def evaluations_of_rows(config: RunConfig, rows: Iterable[Row]) -> int:
    """Number of network evaluations of a run's self-play, from its rows; a teacher's are none."""
    asked = 0.0
    for row in rows:
        simulations = simulations_of(config, row["iteration"] - 1)
        if simulations == BOOTSTRAP:
            continue
        search = dataclasses.replace(config.search, simulations=simulations)
        stage = dataclasses.replace(config, search=search)
        positions = row["positions"]
        asked += evaluations(stage, row["full_search_share"] * positions, positions)
    return round(asked)
