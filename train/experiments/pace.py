"""Turns a budget in minutes into iterations, by a few timed iterations after compiling.

A run then has a fixed number of iterations, so its schedules of learning rate and simulations run
to their end, and its numbers follow from config and seed alone.
"""

import bisect
import dataclasses
import statistics
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from train.config import RunConfig, config_to_dict
from train.loop.selfplay import BOOTSTRAP, Stage, count_full_plies, stage_at
from train.loop.train_step import make_run_programs
from train.loop.training import run_iteration
from train.runtime.errors import UsageError

_LONG = 10_000
"""Iterations of the run that is timed, of which only a few of each stage are done."""
TIMED = 3
"""Timed iterations of each stage of self-play."""
TURNS = 5
"""Timed iterations of each stage that take turns with a base's."""
_CANDIDATES = 64
"""Iterations of a stage among which the one that is timed is chosen."""
_TIMELESS = {
    "search": ("value_scale", "player_value_scale", "visit_offset"),
    "selfplay": ("cheap_policy_weight", "policy_surprise_weight"),
    "learner": (
        *("learning_rate", "schedule", "final_rate", "lr_drops", "warmup"),
        *("weight_decay", "max_grad_norm", "ema_decay", "weights", "value_mix", "td_steps"),
    ),
}
"""Keys that change numbers and not how much is computed: an iteration has the same
plies and steps, so its time does not depend on them."""


class Pace(NamedTuple):
    """The time that an iteration takes, by stage of self-play."""

    seconds: Mapping[Stage, float]  # compiling left out
    compile_seconds: float
    iterations: int  # done to find out


def measure_pace(
    config: RunConfig,
    base: RunConfig | None = None,
    base_seconds: Mapping[Stage, float] | None = None,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Pace:
    """Time iterations of each stage on this machine, learning at its full number of steps.

    With a base its iterations take turns with them, and the result is the median ratio of both
    times at the machine's speed when the base was timed: a machine that is shared changes its speed
    from minute to minute, and the ratio of a turn does not depend on it.

    Args:
      config: the run; its length does not matter.
      base: the run that it is compared with.
      base_seconds: the base's pace.
      on_progress: called with the number of iterations of `config` done.

    Raises:
      UsageError: a run does not fit the machine.
    """
    timed, seconds = _Timed(config, on_progress), {}
    rival = None if base is None else _Timed(base, lambda done: None)
    for stage in timed.first_of:
        if rival is None or base_seconds is None:
            seconds[stage] = statistics.fmean(timed.seconds(stage) for _ in range(TIMED))
        else:
            last = list(rival.first_of)[-1]
            ratios = [timed.seconds(stage) / rival.seconds(last) for _ in range(TURNS)]
            seconds[stage] = statistics.median(ratios) * base_seconds[last]
    return Pace(seconds, timed.compile_seconds, timed.done)


def take_equal_time(first: RunConfig, second: RunConfig) -> bool:
    """Whether two runs differ only in keys that an iteration's time does not depend on."""
    one, other = config_to_dict(first), config_to_dict(second)
    for fields in (one, other):
        for table, keys in _TIMELESS.items():
            fields[table] = {key: x for key, x in fields[table].items() if key not in keys}
    return one == other


class _Timed:
    """A run whose iterations are timed one by one, compiled and warmed up until an iteration takes
    its full number of steps.

    Attributes:
      first_of: the first iteration of each stage of self-play.
      compile_seconds: of all stages.
      done: iterations done.
    """

    def __init__(self, config: RunConfig, on_progress: Callable[[int], None]) -> None:
        bootstrap = config.selfplay.bootstrap_iterations
        self._config = dataclasses.replace(config, iterations=_LONG + bootstrap)
        self._on_progress = on_progress
        self.first_of: dict[Stage, int] = {}
        for iteration in range(self._config.iterations):
            self.first_of.setdefault(stage_at(self._config, iteration), iteration)
        self._programs = make_run_programs(self._config)
        self._typical_of = {stage: self._typical(stage) for stage in self.first_of}
        self._state, self.done = self._programs.init(), 0
        self.compile_seconds = sum(map(self._programs.compile, self.first_of.values()))
        first = next(iter(self.first_of.values()))
        for _ in range(_most_warm_up(config)):
            if self._iterate(first)["steps"] == config.learner.steps:
                break

    def seconds(self, stage: Stage) -> float:
        """Seconds of self-play and learning of one more iteration of a stage."""
        # One number again and again: a bootstrap may have only one.
        row = self._iterate(self._typical_of[stage])
        return row["selfplay_seconds"] + row["learn_seconds"]

    def _typical(self, stage: Stage) -> int:
        """An iteration whose coins search about as many plies in full as iterations do on average,
        or the time would be one draw's."""
        first, options = self.first_of[stage], self._config.selfplay
        if stage == BOOTSTRAP or options.full_search_prob == 1:
            return first
        expected, distance_of = options.full_search_prob * options.plies, {}
        for iteration in range(first, min(first + _CANDIDATES, self._config.iterations)):
            if stage_at(self._config, iteration) == stage:
                key = self._programs.keys(iteration).play
                distance_of[iteration] = abs(count_full_plies(self._config, key) - expected)
        return min(distance_of, key=lambda iteration: distance_of[iteration])

    def _iterate(self, iteration: int) -> Mapping[str, Any]:
        self._state, row = run_iteration(self._programs, self._state, iteration)
        self.done += 1
        self._on_progress(self.done)
        return row


def most_iterations(config: RunConfig) -> int:
    """The most iterations that are done of a config to time it, for a progress bar."""
    stages = {stage_at(config, iteration) for iteration in range(config.iterations)}
    return _most_warm_up(config) + TURNS * len(stages)


def _most_warm_up(config: RunConfig) -> int:
    return 2 + -(-2 * config.max_plies // config.selfplay.plies)


def iterations_within(config: RunConfig, pace: Mapping[Stage, float], seconds: float) -> int:
    """The most iterations whose time, over the stages of a run of that length, is within a budget
    of seconds; the pace has those of an iteration of each stage.

    Raises:
      UsageError: the budget is too short for one iteration.
    """

    def seconds_of(iterations: int) -> float:
        run = dataclasses.replace(config, iterations=iterations)
        return sum(pace[stage_at(run, iteration)] for iteration in range(iterations))

    most = range(1, int(seconds / min(pace.values())) + 2)
    found = bisect.bisect_right(most, seconds, key=seconds_of)
    if found == 0:
        raise UsageError(
            f"a budget of {seconds:.3g} s is too short: one iteration takes {seconds_of(1):.3g} s"
        )
    return found
