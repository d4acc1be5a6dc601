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

from train.players.basic import Act
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state

PROBE = 64
"""Simulations of the search that is timed first."""
_NEAR = 2  # a budget within this factor of the probe needs no second search
_REPEATS, _ENOUGH = 5, 1.0  # timed calls, at most, and the seconds after which no more are made


def simulations_in(
    seconds: float,
    make_act: Callable[[int], Act],
    variables: Any,
    rules: Rules,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> int:
    """Count the simulations that one board has time for; at least 1, at most MAX_SIMULATIONS.

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
