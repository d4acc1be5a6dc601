"""Time as a budget of a search: it is turned into simulations, once, by timing searches here.

A board searched alone is timed, on the device that plays. In a match many boards share each batch,
so that a move takes less time there; two players with the same time still get the same time.
"""

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.players.learned import Act
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state

PROBE = 64
"""Simulations of the search that is timed first."""
_NEAR = 2  # a budget within this factor of the probe needs no second search
_REPEATS, _ENOUGH = 5, 1.0  # timed calls, at most, and the seconds after which no more are made
_DIGITS = 2

Clock = Callable[[], float]


def simulations_in(
    seconds: float,
    make_act: Callable[[int], Act],
    variables: Any,
    rules: Rules,
    *,
    clock: Clock = time.perf_counter,
) -> int:
    """Count the simulations that one board has time for; at least 1, at most MAX_SIMULATIONS.

    A search of PROBE simulations is timed in the first position of a game, and where that is far
    from the budget, a second one of about as many as are asked for: a simulation takes longer in a
    deep tree. The count is rounded down to two significant digits, since timings vary.

    Args:
      seconds: a move may take.
      make_act: from simulations to the `act` of the player.
      variables: weights of the player.
      rules: to play.
      clock: seconds of a clock that never goes back.
    """
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(rules))

    def seconds_of(simulations: int) -> float:
        act = make_act(simulations)
        return _median_seconds(lambda: act(variables, states, jax.random.key(0)), clock)

    probed = seconds_of(PROBE)
    count = _within(PROBE * seconds / probed)
    if not PROBE / _NEAR <= count <= PROBE * _NEAR:
        took = seconds_of(count)
        a_simulation = (took - probed) / (count - PROBE)
        if a_simulation > 0:
            count = _within(count + (seconds - took) / a_simulation)
    return _round_down(count)


def _within(simulations: float) -> int:
    return min(max(int(simulations), 1), MAX_SIMULATIONS)


def _median_seconds(call: Callable[[], Any], clock: Clock) -> float:
    """Time of a call once it is compiled and warm."""
    jax.block_until_ready(call())
    found: list[float] = []
    while len(found) < _REPEATS and sum(found) < _ENOUGH:
        began = clock()
        jax.block_until_ready(call())
        found.append(clock() - began)
    return max(statistics.median(found), 1e-9)


def _round_down(count: int) -> int:
    """The count with all but its first two digits zero."""
    unit = 10 ** max(0, math.floor(math.log10(count)) + 1 - _DIGITS)
    return count // unit * unit
