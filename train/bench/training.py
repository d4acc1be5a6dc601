"""Trains a run for a while, and says what its speed means for a million games."""

import dataclasses
import math
import time
from collections.abc import Sequence
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
    """Train a new run of the config for a while without matches and save it; it can be resumed.

    Args:
      config: the run.
      directory: of the report; the run lies below it.
      minutes: length from the end of the first compiling, the iteration under way is finished;
        None for ITERATIONS on a CPU, and for MINUTES on an accelerator.

    Returns:
      Lines on its speed.
    """
    runs, number = directory / "runs", 1
    while (runs / f"{config.name}-{number}").exists():
        number += 1
    matches = EvaluationConfig(every=0, opponents=(), anchors=())
    short = dataclasses.replace(config, name=f"{config.name}-{number}", evaluation=matches)
    if minutes is None and jax.default_backend() == "cpu":
        short, minutes = dataclasses.replace(short, iterations=ITERATIONS), math.inf
    seconds = 60 * (MINUTES if minutes is None else minutes)
    rows = []
    with training.open_run(short, runs / short.name, resume=False) as run:
        started = time.perf_counter()

        def is_over() -> bool:
            return time.perf_counter() - started >= seconds

        for _, row in iterations(run, should_stop=is_over):
            rows.append(row)
        took = time.perf_counter() - started
    return [
        f"{len(rows)} iterations of `{config.name}`: {took:.0f} s, compilation left out",
        *training_lines(rows),
        f"metrics in `runs/{short.name}`",
    ]


def training_lines(rows: Sequence[Row]) -> list[str]:
    """The last iteration's times, and the hours that a million games would take in its stage.

    Games end in waves, so they are counted by their plies: by the positions a second of the stage's
    iterations after the first of the run, and the mean length of the games that ended.
    """
    last = rows[-1]
    stage = [row for row in rows if row["simulations"] == last["simulations"]]
    steady = [row for row in stage if row is not rows[0]] or stage
    seconds = sum(row["selfplay_seconds"] + row["learn_seconds"] for row in steady)
    speed = sum(row["positions"] for row in steady) / seconds
    lines = [
        f"the last: {last['selfplay_seconds']:.1f} s of self-play, {last['learn_seconds']:.1f} s "
        "of learning"
    ]
    if games := sum(row["games"] for row in stage):
        length = sum(row["games"] * (row["mean_length"] or 0) for row in stage) / games
        search = last["simulations"]
        name = f"stage of {search} simulations" if search else "bootstrap, which does not search"
        lines.append(
            f"a million games of {length:.1f} plies, at {speed:,.0f} positions a second in the "
            f"{name}: {MILLION * length / speed / 3600:.3g} hours"
        )
    return lines
