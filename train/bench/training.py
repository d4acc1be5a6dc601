"""Trains a run for a while, and says what its speed means for a million games."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax

from train.config import EvaluationConfig, RunConfig
from train.loop import training
from train.loop.run_loop import iterations
from train.metrics.rows import Row

MILLION = 1_000_000
ITERATIONS, MINUTES = 3, 5.0
"""Length of a report's training on a CPU, and on an accelerator."""


def train_a_little(config: RunConfig, directory: Path, minutes: float | None) -> list[str]:
    """Lines on a new run of the config, trained for a while without matches; it can be resumed.

    Args:
      config: the run.
      directory: of the report; the run lies below it.
      minutes: length after compiling; None for ITERATIONS on a CPU, and for MINUTES on an
        accelerator.
    """
    runs, number = directory / "runs", 1
    while (runs / f"{config.name}-{number}").exists():
        number += 1
    short = dataclasses.replace(config, name=f"{config.name}-{number}")
    if minutes is None and jax.default_backend() == "cpu":
        short, minutes = dataclasses.replace(short, iterations=ITERATIONS), math.inf
    rows, seconds = train_for(short, runs, seconds=60 * (MINUTES if minutes is None else minutes))
    return [
        f"{len(rows)} iterations of `{config.name}`: {seconds:.0f} s, compilation left out",
        *training_lines(rows),
        f"metrics in `runs/{short.name}`",
    ]


def train_for(
    config: RunConfig,
    runs: Path,
    *,
    seconds: float,
    on_row: Callable[[Row], None] = lambda row: None,
) -> tuple[list[Row], float]:
    """Train a new run without matches until a time is over, or the run; save it.

    Args:
      config: the run.
      runs: directory of all runs.
      seconds: counted from the end of the first compiling; the iteration under way is finished.
      on_row: gets each row of metrics.

    Returns:
      Rows of metrics, and the seconds that they took.
    """
    config = dataclasses.replace(
        config, evaluation=EvaluationConfig(every=0, opponents=(), anchors=())
    )
    with training.open_run(config, runs / config.name, resume=False) as run:
        started = time.perf_counter()

        def gone() -> float:
            return time.perf_counter() - started

        rows = []
        for _, row in iterations(run, should_stop=lambda: gone() >= seconds):
            rows.append(row)
            on_row(row)
        return rows, gone()


def training_lines(rows: Sequence[Row]) -> list[str]:
    """The last iteration's times, and the hours that a million games would take in its stage.

    Games end in waves, so they are counted by their plies: by the positions a second of the stage's
    iterations after the first of the run, and the mean length of the games that ended.
    """
    last = rows[-1]
    stage = [row for row in rows if row["simulations"] == last["simulations"]]
    steady = [row for row in stage if row is not rows[0]] or stage
    speed = sum(row["positions"] for row in steady) / sum(map(_seconds_of, steady))
    lines = [
        f"the last: {last['selfplay_seconds']:.1f} s of self-play, {last['learn_seconds']:.1f} s "
        "of learning"
    ]
    if any(row["games"] for row in stage):
        games = sum(row["games"] for row in stage)
        length = sum(row["games"] * (row["mean_length"] or 0) for row in stage) / games
        search = last["simulations"]
        name = f"stage of {search} simulations" if search else "bootstrap, which does not search"
        lines.append(
            f"a million games of {length:.1f} plies, at {speed:,.0f} positions a second in the "
            f"{name}: {MILLION * length / speed / 3600:.3g} hours"
        )
    return lines


def _seconds_of(row: Row) -> float:
    return row["selfplay_seconds"] + row["learn_seconds"]
