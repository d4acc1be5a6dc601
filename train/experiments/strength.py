"""Time to strength: minutes of training until a run passes win rates.

The curve is that of the checkpoints that the run has kept, each against one fixed opponent. Minutes
are those of self-play and learning; compiling, saving and matches are printed apart. They count the
stages before, where the run began with the weights of another.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from train.arena.figures import count_games
from train.config import CheckpointConfig, EvaluationConfig, RunConfig
from train.experiments.tables import cell
from train.loop.history import code_in_words, code_of, stages_of
from train.loop.run_directory import CURVE_FILE
from train.metrics.rows import METRICS_FILE, read_rows
from train.ratings import pool
from train.ratings.pool import Entrant
from train.ratings.results_cache import ResultsCache
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.files import plain_data, write_json
from train.runtime.showing import sparing

OPPONENT = "heuristic-search:wjx@64"
SIMULATIONS = 64
LEVELS = (0.5, 0.9)
CACHE_FILE = "strength-games.jsonl"
"""Files of a run's directory: matches that were played, and the curve of the newest call."""
_POINTS = 16
"""Checkpoints of a run that is trained for its curve."""
_RESAMPLES = 2000


class StrengthPoint(NamedTuple):
    """A checkpoint's match against the opponent."""

    iteration: int
    minutes: float  # of training up to it
    rate: float  # (W + D / 2) / N
    games: int


class Passing(NamedTuple):
    """The minutes at which a win rate is passed; None where the curve ends below it."""

    level: float
    minutes: float | None
    low: float | None  # 95 % interval over the games; the chance of training is not in it
    high: float | None


class EarlierStages(NamedTuple):
    """The time of the stages before a run."""

    minutes: float  # of training
    compile_minutes: float
    unrecorded: tuple[str, ...]  # stages whose time is not known and not in the minutes


class StrengthCurve(NamedTuple):
    """A run's strength over its time, the stages before it included."""

    points: tuple[StrengthPoint, ...]
    passings: tuple[Passing, ...]
    minutes: float  # of the whole training
    compile_minutes: float
    earlier: EarlierStages
    code: str  # that trained the run, in words


def training_config(config: RunConfig, name: str) -> RunConfig:
    """The run with checkpoints for the curve and without matches."""
    every = max(1, config.iterations // _POINTS)
    return dataclasses.replace(
        config,
        name=name,
        evaluation=EvaluationConfig(every=0, opponents=(), anchors=()),
        checkpoint=CheckpointConfig(every=every, keep=1, keep_best=0, keep_every=every),
    )


def measure(
    run: Path,
    config: RunConfig,
    *,
    games: int,
    opening_plies: int,
    on_match: Callable[[Entrant, int, int], Callable[[int], None]],
) -> StrengthCurve:
    """Match every kept checkpoint of a run with the opponent; matches played before are read.

    Writes the curve into the run's directory, from where `export` takes it.

    Args:
      run: its directory.
      config: of the run.
      games: of each match.
      opening_plies: random plies with which both games of a pair start.
      on_match: (checkpoint, its number from 0, number of checkpoints) -> a function of the games
        done, called before each match that is played.

    Raises:
      UsageError: no checkpoint or metrics are kept, or the opponent cannot play.
    """
    rules, seed = config.rules, config.seed
    entrants = pool.entrants_of_run(run, rules, name=run.name, simulations=SIMULATIONS)
    against = pool.entrant_of_name(OPPONENT, rules, heuristics=config.heuristics)
    settings = pool.settings_of(rules, opening_plies=opening_plies, seed=seed)
    cache = ResultsCache(run / CACHE_FILE, settings | {"games": games})
    earlier, rows = _earlier(run), read_rows(run / METRICS_FILE)
    seconds = [row["selfplay_seconds"] + row["learn_seconds"] for row in rows]
    totals = (earlier.minutes + np.cumsum(seconds) / 60).tolist()
    minutes = dict(zip((row["iteration"] for row in rows), totals, strict=True))
    compile_seconds = sum(row.get("compile_seconds") or 0.0 for row in rows)
    points = []
    for number, entrant in enumerate(entrants):
        players = entrant.identity, against.identity
        results = cache.of(players)
        if not results:
            on_games = on_match(entrant, number, len(entrants))
            how = {"games": games, "opening_plies": opening_plies, "seed": seed}
            match = pool.make_play(rules, **how, on_games=on_games)((entrant, against), 0)
            results = [count_games(match, players)]
            cache.add(results[0])
        result, iteration = results[0], entrant.iteration
        assert iteration is not None
        if iteration not in minutes:
            raise UsageError(f"{run}: {METRICS_FILE} has no row of iteration {iteration}")
        rate = result.wins[0] / result.games
        points.append(StrengthPoint(iteration, minutes[iteration], rate, result.games))
    curve = StrengthCurve(
        points=tuple(points),
        passings=tuple(passing(points, level) for level in LEVELS),
        minutes=max(minutes.values()),
        compile_minutes=earlier.compile_minutes + compile_seconds / 60,
        earlier=earlier,
        code=code_in_words(code_of(run)),
    )
    how = {"opponent": against.name, "simulations": SIMULATIONS, "opening_plies": opening_plies}
    with sparing(run / CURVE_FILE):
        write_json(run / CURVE_FILE, {**how, "seed": seed, **plain_data(curve)})
    return curve


def passing(points: Sequence[StrengthPoint], level: float) -> Passing:
    """The minutes at which a curve in order of time passes a level, with an interval by resampling
    the games.

    The curve is the best one that never falls (isotonic regression), with straight lines between
    checkpoints, so that one lucky match does not decide. A curve that begins above the level has
    passed it by its first checkpoint.
    """
    _, minutes, rates, games = map(np.array, zip(*points, strict=True))
    draw = np.random.default_rng(0)
    again = [draw.binomial(games, rates) / games for _ in range(_RESAMPLES)]
    # Sorted, not interpolated: a time beyond the end is infinite.
    times = np.sort([_time_at(minutes, each, games, level) for each in again])
    ends = times[[int(0.025 * _RESAMPLES), int(0.975 * _RESAMPLES)]]
    found = (_time_at(minutes, rates, games, level), *ends)
    return Passing(level, *(float(time) if np.isfinite(time) else None for time in found))


def _time_at(minutes: np.ndarray, rates: np.ndarray, games: np.ndarray, level: float) -> float:
    fitted = isotonic_regression(rates, weights=games).x
    above = np.flatnonzero(fitted >= level)
    if not len(above):
        return np.inf
    place = int(above[0])
    if place == 0:
        return float(minutes[0])
    before, after = fitted[place - 1], fitted[place]
    share = (level - before) / (after - before)
    return float(minutes[place - 1] + share * (minutes[place] - minutes[place - 1]))


def _earlier(run: Path) -> EarlierStages:
    stages = stages_of(run)
    hours = [stage["hours"] for stage in stages if stage.get("hours") is not None]
    unknown = [stage for stage in stages if stage.get("hours") is None]
    return EarlierStages(
        60 * sum(each["training"] for each in hours),
        60 * sum(each["compiling"] for each in hours),
        tuple(str(stage.get("run") or stage.get("source")) for stage in unknown),
    )


def table(curve: StrengthCurve, *, title: str) -> Table:
    """The curve's checkpoints."""
    rows = [
        [str(iteration), f"{minutes:.2f}", cell({"rates": [rate], "games": games})]
        for iteration, minutes, rate, games in curve.points
    ]
    return Table(title, ("iteration", "minutes", "% won (95 % interval)"), rows)


def caption(config: RunConfig, *, games: int, opening_plies: int) -> str:
    """The terms of a curve's matches, in words."""
    text = (
        f"against {OPPONENT} · {SIMULATIONS} simulations · {games} games a checkpoint · "
        f"{opening_plies} random opening plies · seed {config.seed}"
    )
    first, *others = config.rule_sets
    return f"{text} · rules {first.name}, the first of {1 + len(others)}" if others else text


def time_line(curve: StrengthCurve) -> str:
    """The minutes of the whole training, and which of them are of the stages before, in words."""
    earlier = curve.earlier
    line = f"training {curve.minutes:.2f} min, compiling {curve.compile_minutes:.2f} min"
    line += f", by the code {curve.code}"
    if earlier.minutes > 0:
        line += (
            f"; the stages before the run took {earlier.minutes:.2f} min of the training and "
            f"{earlier.compile_minutes:.2f} min of the compiling"
        )
    if earlier.unrecorded:
        line += f"; not counted, for no hours are recorded: {', '.join(earlier.unrecorded)}"
    return line


def passing_line(passed: Passing, curve: StrengthCurve) -> str:
    """A level and the minutes that it takes, in words."""
    level = f"{passed.level:.0%}"
    if passed.minutes is None:
        return f"{level}: not passed in {curve.minutes:.2f} minutes"
    most = "beyond the end" if passed.high is None else f"{passed.high:.2f}"
    is_first = passed.minutes == curve.points[0].minutes
    opening = "passed by the first checkpoint, " if is_first else ""
    return f"{level}: {opening}{passed.minutes:.2f} minutes ({passed.low:.2f} to {most})"
