"""Turns a budget in minutes into iterations, by a few timed iterations after compiling.

A run then has a fixed number of iterations, so its schedules of learning rate and simulations run
to their end, and its numbers follow from config and seed alone.
"""

import dataclasses
import statistics
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax

from train.config import RunConfig
from train.loop.training import run_iteration
from train.programs.assembly import Programs, make_programs
from train.programs.selfplay import Stage, stage_at
from train.programs.state import RunState
from train.runtime.errors import UsageError

_LONG = 10_000
"""Iterations of the run that is timed, of which only a few of each stage are done."""
TIMED = 3
"""Timed iterations of each stage of self-play."""


class Pace(NamedTuple):
    """The time that an iteration takes, by stage of self-play."""

    seconds: Mapping[Stage, float]  # compiling left out
    compile_seconds: float
    iterations: int  # done to find out


def measure_pace(
    config: RunConfig, *, on_progress: Callable[[int], None] = lambda done: None
) -> Pace:
    """Time iterations of each stage on this machine, learning at its full number of steps.

    Args:
      config: the run; its length does not matter.
      on_progress: called with the number of iterations done.

    Raises:
      UsageError: the run does not fit the machine.
    """
    config = dataclasses.replace(config, iterations=_LONG + config.selfplay.bootstrap_iterations)
    first_of: dict[Stage, int] = {}
    for iteration in range(config.iterations):
        first_of.setdefault(stage_at(config, iteration), iteration)
    programs = make_programs(config)
    state, done, seconds = programs.init(), 0, {}
    compile_seconds = sum(programs.compile(first) for first in first_of.values())
    for stage, first in first_of.items():
        if not seconds:
            state, done = _warm_up(config, programs, state, first, on_progress)
        times = []
        for _ in range(TIMED):  # one number again and again: a bootstrap may have only one
            state, row = run_iteration(config, programs, state, first)
            times.append(row["selfplay_seconds"] + row["learn_seconds"])
            done += 1
            on_progress(done)
        seconds[stage] = statistics.fmean(times)
    jax.block_until_ready(state)
    return Pace(seconds, compile_seconds, done)


def most_iterations(config: RunConfig) -> int:
    """The most iterations that `measure_pace` does of a config, for a progress bar."""
    stages = {stage_at(config, iteration) for iteration in range(config.iterations)}
    return _most_warm_up(config) + TIMED * len(stages)


def _most_warm_up(config: RunConfig) -> int:
    return 2 + -(-2 * config.rules.max_plies // config.selfplay.plies)


def _warm_up(
    config: RunConfig,
    programs: Programs,
    state: RunState,
    first: int,
    on_progress: Callable[[int], None],
) -> tuple[RunState, int]:
    """Iterate until an iteration takes its full number of steps; returns the iterations done."""
    done = 0
    for done in range(1, _most_warm_up(config) + 1):
        state, row = run_iteration(config, programs, state, first)
        on_progress(done)
        if row["steps"] == config.learner.steps:
            break
    return state, done


def iterations_within(config: RunConfig, pace: Mapping[Stage, float], seconds: float) -> int:
    """The most iterations whose time, over the stages of a run of that length, is within a budget.

    Args:
      config: the run; its length does not matter.
      pace: seconds of an iteration of each stage.
      seconds: the budget.

    Raises:
      UsageError: the budget is too short for one iteration.
    """
    low, high = 0, int(seconds / min(pace.values())) + 1
    while low < high:  # the most is from `low` to `high`
        middle = (low + high + 1) // 2
        if seconds_of(config, pace, middle) <= seconds:
            low = middle
        else:
            high = middle - 1
    if low == 0:
        raise UsageError(
            f"a budget of {seconds:.3g} s is too short: one iteration takes "
            f"{seconds_of(config, pace, 1):.3g} s"
        )
    return low


def seconds_of(config: RunConfig, pace: Mapping[Stage, float], iterations: int) -> float:
    """Seconds of a run of this length."""
    config = dataclasses.replace(config, iterations=iterations)
    return sum(pace[stage_at(config, iteration)] for iteration in range(iterations))
