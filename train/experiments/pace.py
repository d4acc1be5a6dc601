"""Turns a budget in minutes into iterations, by a few timed iterations after compiling.

A run then has a fixed number of iterations, so its schedules of learning rate and simulations run
to their end, and its numbers follow from config and seed alone.
"""

import bisect
import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from train.config import RunConfig, config_to_dict
from train.loop.compiling import compile_run
from train.loop.iteration_row import steps_due
from train.loop.opponent_weights import load_opponent, place_opponent
from train.loop.programs import (
    TrainState,
    init,
    iteration_keys,
    learn,
    play,
    state_like,
    write,
)
from train.loop.stages import BOOTSTRAP, count_full_plies, simulations_of, variables_of
from train.loop.tables import tables_of, variants_of
from train.runtime.devices import BY_BOARD
from train.runtime.errors import UsageError
from train.runtime.host import fetch

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

    seconds: Mapping[int, float]  # compiling left out
    compile_seconds: float
    iterations: int  # done to find out


def measure_pace(
    config: RunConfig,
    base: RunConfig | None = None,
    base_seconds: Mapping[int, float] | None = None,
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
        self.config = dataclasses.replace(config, iterations=_LONG + bootstrap)
        self._on_progress = on_progress
        self.first_of: dict[int, int] = {}
        for iteration in range(self.config.iterations):
            self.first_of.setdefault(simulations_of(self.config, iteration), iteration)
        opponent = load_opponent(self.config)
        self._tables = tables_of(self.config, opponent=opponent)
        self._opponent = place_opponent(opponent, self._tables)
        devices = self._tables.learn.place.devices
        self._variant = devices.place(variants_of(self.config), BY_BOARD)
        self._typical_of = {stage: self._typical(stage) for stage in self.first_of}
        like = state_like(self._tables, self._variant)
        self.compile_seconds = compile_run(
            self.config, self._tables, like, self._variant, self._opponent, None, done=0
        )
        self._state = init(self._tables, self._variant, self.config.seed)
        self.done = 0
        first = next(iter(self.first_of.values()))
        for _ in range(_most_warm_up(config)):
            steps, _ = self._iterate(first)
            if steps == config.learner.steps:
                break

    def seconds(self, stage: int) -> float:
        """Seconds of self-play and learning of one more iteration of a stage."""
        # One number again and again: a bootstrap may have only one.
        return self._iterate(self._typical_of[stage])[1]

    def _typical(self, stage: int) -> int:
        """An iteration whose coins search about as many plies in full as iterations do on average,
        or the time would be one draw's."""
        first, options = self.first_of[stage], self.config.selfplay
        if stage == BOOTSTRAP or options.full_search_prob is None:
            return first
        expected, distance_of = options.full_search_prob * options.plies, {}
        for iteration in range(first, min(first + _CANDIDATES, self.config.iterations)):
            if simulations_of(self.config, iteration) == stage:
                key = iteration_keys(self._tables.learn, self.config.seed, iteration).play
                distance_of[iteration] = abs(count_full_plies(self.config, key) - expected)
        return min(distance_of, key=lambda iteration: distance_of[iteration])

    def _iterate(self, iteration: int) -> tuple[int, float]:
        """One more iteration: the steps that it learned, and its seconds."""
        found = self._play_and_learn(iteration)
        self.done += 1
        self._on_progress(self.done)
        return found

    def _play_and_learn(self, iteration: int) -> tuple[int, float]:
        started = time.perf_counter()
        config, tables, variant = self.config, self._tables, self._variant
        learner, boards, replay, done = self._state
        keys = iteration_keys(tables.learn, config.seed, iteration)
        simulations = simulations_of(config, iteration)
        variables = variables_of(config, learner.weights, iteration, self._opponent)
        boards, plies, _ = play(tables.play, simulations, variables, variant, boards, keys.play)
        replay, finished = write(tables.learn.place, replay, plies)
        steps = steps_due(config, fetch(finished))
        if steps > 0:
            learner, _ = learn(tables.learn, learner, replay, variant, keys.learn, steps)
        fetch(learner.step)
        self._state = TrainState(learner, boards, replay, done + 1)
        return steps, time.perf_counter() - started


def most_iterations(config: RunConfig) -> int:
    """The most iterations that are done of a config to time it, for a progress bar."""
    stages = {simulations_of(config, iteration) for iteration in range(config.iterations)}
    return _most_warm_up(config) + TURNS * len(stages)


def _most_warm_up(config: RunConfig) -> int:
    return 2 + -(-2 * config.max_plies // config.selfplay.plies)


def iterations_within(config: RunConfig, pace: Mapping[int, float], seconds: float) -> int:
    """The most iterations whose time, over the stages of a run of that length, is within a budget
    of seconds; the pace has those of an iteration of each stage.

    Raises:
      UsageError: the budget is too short for one iteration.
    """

    def seconds_of(iterations: int) -> float:
        run = dataclasses.replace(config, iterations=iterations)
        return sum(pace[simulations_of(run, iteration)] for iteration in range(iterations))

    most = range(1, int(seconds / min(pace.values())) + 2)
    found = bisect.bisect_right(most, seconds, key=seconds_of)
    if found == 0:
        raise UsageError(
            f"a budget of {seconds:.3g} s is too short: one iteration takes {seconds_of(1):.3g} s"
        )
    return found
