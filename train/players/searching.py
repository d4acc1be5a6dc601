"""Players that evaluate positions: a raw policy, or a search that a network or a heuristic guides.

Players of equal configs share one compiled program, whatever their weights.
"""

import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig
from train.network import NetworkConfig, Output, network_for, observer_for
from train.players.basic import Act, Player, act_by
from train.search.config import MAX_SIMULATIONS, SearchConfig, as_player
from train.search.evaluator import Evaluator, evaluator_for, make_symmetric_evaluator
from train.search.report import EvaluateHeads
from train.search.search import Search, SearchResult, cast_own_weights, make_search
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state

RAW_POLICY = 0
"""Simulations of a player that does not search."""
PROBE = 64
"""Simulations of the search that is timed first."""
_NEAR = 2  # a budget within this factor of the probe needs no second search
_REPEATS, _ENOUGH = 5, 1.0  # timed calls, at most, and the seconds after which no more are made


def network_player(
    name: str, variables: Any, config: RunConfig, rules: Rules, **options: Any
) -> Player:
    """A player of a run's weights, which searches as the run does unless `search` is among the
    options; the rest is as in `evaluating_player`."""
    options = {"search": config.search} | options
    evaluate = evaluator_for(config.network, rules)
    player = evaluating_player(name, variables, evaluate, network=config.network, **options)
    return player._replace(
        evaluate_heads=_make_heads(config.network, rules.players),
        trained=TrainedNetwork(config, variables, name, "this process", None, {}),
    )


@functools.cache
def _make_heads(config: NetworkConfig, players: int) -> EvaluateHeads:
    def evaluate_heads(variables: Any, states: State) -> Output:
        network, observe = network_for(config, players), observer_for(config)
        planes = jax.vmap(lambda state: observe(state, None))(states)
        return network.evaluate(variables, jnp.asarray(planes))

    return evaluate_heads


def evaluating_player(
    name: str,
    variables: Any,
    evaluate: Evaluator,
    search: SearchConfig,
    *,
    simulations: int = RAW_POLICY,
    symmetries: int = 1,
    temperature: float = 0.0,
    model: Evaluator | None = None,
    network: NetworkConfig | None = None,
) -> Player:
    """A player of an evaluator, without exploration noise.

    Args:
      name: of the player.
      variables: of the evaluator.
      evaluate: evaluates roots and leaves.
      search: options of the search; the budget and its growth are not read.
      simulations: at every ply of a game; RAW_POLICY plays the likeliest slot.
      symmetries: turned copies of the root, 1 to 8, whose mean evaluation a search begins with, or
        the raw policy is.
      temperature: as in `act_by`.
      model: of the opponent, as in `make_search`.
      network: config of the network whose weights the variables are, None for none.
    """
    options = as_player(search, simulations or search.simulations)
    if simulations == RAW_POLICY:
        report = _raw_report(make_symmetric_evaluator(evaluate, symmetries))
    else:
        report = _search_report(evaluate, options, symmetries, model, network)
    return Player(
        name=name,
        variables=variables,
        act=act_by(report, temperature),
        report=report,
        evaluate=evaluate,
        search=options,
        symmetries=symmetries,
        simulations=simulations,
    )


@functools.cache
def _raw_report(evaluate: Evaluator) -> Search:
    """An evaluator's likeliest slot as a search, whose policy is the raw one."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del key
        logits, values = evaluate(variables, states)
        slot, value = logits.argmax(axis=-1).astype(jnp.int32), values[:, 0]
        policy = jax.nn.softmax(logits, axis=-1)
        return SearchResult(slot, policy, value, jnp.zeros_like(value), logits)

    return search


@functools.cache
def _search_report(
    evaluate: Evaluator,
    options: SearchConfig,
    symmetries: int,
    model: Evaluator | None,
    network: NetworkConfig | None,
) -> Search:
    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        # Made where it is traced: a session that searches otherwise needs no search of a run's own.
        choose = make_search(evaluate, options, explores=False, symmetries=symmetries, model=model)
        # Cast once, before the search begins.
        cast = variables if network is None else cast_own_weights(variables, network)
        return choose(cast, states, key)

    return search


def simulations_in(
    seconds: float,
    make_act: Callable[[int], Act],
    variables: Any,
    rules: Rules,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """Count the simulations that one board has time for; at least 1, at most MAX_SIMULATIONS.

    In a match many boards share each batch, so that a move takes less time there; two players with
    the same time still get the same time.

    A search of PROBE simulations is timed in the first position of a game, and where that is far
    from the budget, a second one of about the number that is asked for: a simulation takes longer
    in a deep tree. The count is rounded down to two significant digits, since timings vary.

    Args:
      seconds: a move may take.
      make_act: from simulations to the `act` of the player.
      variables: weights of the player.
      rules: to play.
      clock: seconds of a clock that never goes back.
    """
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(rules))

    def seconds_of(simulations: int) -> float:
        """The median time of a call once it is compiled and warm."""
        act, key = make_act(simulations), jax.random.key(0)
        jax.block_until_ready(act(variables, states, key))
        times: list[float] = []
        while len(times) < _REPEATS and sum(times) < _ENOUGH:
            began = clock()
            jax.block_until_ready(act(variables, states, key))
            times.append(clock() - began)
        return max(statistics.median(times), 1e-9)

    def within(simulations: float) -> int:
        return min(max(int(simulations), 1), MAX_SIMULATIONS)

    probed = seconds_of(PROBE)
    count = within(PROBE * seconds / probed)
    if not PROBE / _NEAR <= count <= PROBE * _NEAR:
        took = seconds_of(count)
        a_simulation = (took - probed) / (count - PROBE)
        if a_simulation > 0:
            count = within(count + (seconds - took) / a_simulation)
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return count // unit * unit
