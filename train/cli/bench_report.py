"""The report of `bench`: a page that grows with each part, and the short training that ends it."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
from rich.console import Console

from train.bench import report, suite
from train.bench.scaling import Point
from train.bench.suite import Figures, Request
from train.bench.training import train_for, training_lines
from train.cli.common import options
from train.config import EvaluationConfig, RunConfig
from train.loop import training
from train.metrics.rows import METRICS_FILE
from train.runtime.files import check_writable, replace_text, writing

REPORT_FILE, FIGURES_FILE, PLOT_FILE = "report.md", "bench.json", "scaling.png"
TRAINING_ITERATIONS, TRAINING_MINUTES = 3, 5.0
"""Length of the training on a CPU, and on an accelerator."""


def measured(
    request: Request,
    console: Console,
    on_part: Callable[[Figures], None] = lambda figures: None,
) -> Figures:
    """The figures of a request, with the part under way in the console's last line; `on_part` gets
    those that there are after each part."""
    with console.status("bench") as status:
        return suite.run_suite(request, status.update, on_part=on_part)


class Pages:
    """A report in a directory.

    Args:
      directory: of the report.
      command: the command line that makes it.
      request: what was measured.

    Raises:
      UsageError: a file of the report cannot be written.
    """

    def __init__(self, directory: Path, command: str, request: Request) -> None:
        for name in (REPORT_FILE, FIGURES_FILE, PLOT_FILE):
            check_writable(directory / name)
        self.directory, self.command, self.request = directory, command, request
        self.figures = Figures((), (), None)

    def keep(self, figures: Figures) -> None:
        """Write what there is of the request's figures."""
        self.figures = figures
        self.write()

    def go_on(self, points: Sequence[Point], *, minutes: float | None) -> None:
        """Train, and write the report before and after.

        Args:
          points: speed by batch, measured before.
          minutes: length of the training; None for that of the device.
        """
        self.write(points)
        self.write(points, train_a_little(self.request.config, self.directory, minutes))
        options.say_written(self.directory / REPORT_FILE, "report")

    def write(
        self,
        points: Sequence[Point] = (),
        training_lines: Sequence[str] = (),
    ) -> None:
        """Write the report with all that there is so far."""
        text = report.markdown(self.command, self.figures, points, training_lines)
        with writing(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        replace_text(self.directory / REPORT_FILE, text)
        record = report.bench_record(self.request, self.figures, points)
        record["training"] = list(training_lines)
        options.write_json(self.directory / FIGURES_FILE, record)


def train_a_little(config: RunConfig, directory: Path, minutes: float | None) -> list[str]:
    """Lines on a new run of the config, trained for a while without matches; it can be resumed.

    Args:
      config: the run.
      directory: of the report; the run lies below it.
      minutes: length after compiling; None for some iterations on a CPU, and for TRAINING_MINUTES
        on an accelerator.
    """
    runs, number = directory / "runs", 1
    while (runs / f"{config.name}-{number}").exists():
        number += 1
    short = dataclasses.replace(
        config,
        name=f"{config.name}-{number}",
        evaluation=EvaluationConfig(every=0, opponents=(), anchors=()),
    )
    if minutes is None and jax.default_backend() == "cpu":
        short = dataclasses.replace(short, iterations=TRAINING_ITERATIONS)
        began = time.perf_counter()
        training.train(short, runs, resume=False)
        seconds = time.perf_counter() - began
        found = (runs / short.name / METRICS_FILE).read_text(encoding="utf-8").splitlines()
        rows, with_compiling = [json.loads(line) for line in found], "compilation included"
    else:
        seconds = 60 * (TRAINING_MINUTES if minutes is None else minutes)
        rows, seconds = train_for(short, runs, seconds=seconds)
        with_compiling = "compilation left out"
    return [
        f"{len(rows)} iterations of `{config.name}`: {seconds:.0f} s, {with_compiling}",
        *training_lines(rows),
        f"metrics in `runs/{short.name}`",
    ]
