"""Curves of runs, and how fast this machine is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from train.api.arguments import File, Progress, Source, WrittenFile, arg
from train.api.signatures import verb
from train.runtime.fields import AtLeastOne, Positive

if TYPE_CHECKING:
    from train.bench.report import MeasuredSpeed
    from train.metrics.curves import Curves

Axis = Literal["iteration", "hours", "positions"]
Part = Literal["env", "search", "selfplay", "learn", "table1"]


@verb
def curves(
    *runs: Annotated[File, arg("RUN ...", "(required)")],
    axis: Axis = "iteration",
    out: Annotated[WrittenFile | None, arg("FILE", "(default: RUN/curves.png)")] = None,
    csv: WrittenFile | None = None,
) -> Curves:
    """Draw loss, win rate and games a second of runs, finished or not, into one picture.

    Args:
      runs: run directories.
      axis: horizontal axis: iterations, hours of the run, or positions played (of `fit`, learned).
      out: picture to write, .png, .svg or .pdf.
      csv: file for all metrics, as comma-separated values.

    Raises:
      UsageError: a run has no metrics yet, or a file cannot be written.

    Example:
      `train.curves("runs/a", "runs/b", axis="hours").figure()`
    """
    from train.metrics.curves import Curves
    from train.metrics.rows import metrics_of, write_csv
    from train.runtime.errors import UsageError, distinct, usage_errors
    from train.runtime.files import names_of_runs

    paths = tuple(map(Path, runs))
    if not paths:
        raise UsageError("curves: runs: name a run's directory")
    with usage_errors("curves"):
        distinct(paths)
    names = names_of_runs(paths)
    rows = {name: metrics_of(run) for run, name in zip(paths, names, strict=True)}
    found = Curves(rows, axis)
    if csv is not None:
        write_csv(Path(csv), rows)
        found.written[Path(csv)] = "metrics"
    if out is not None:
        found.draw(Path(out))
        found.written[Path(out)] = "curves"
    return found


@verb
def bench_speed(
    config: Source | None = None,
    *,
    parts: Sequence[Part] = ("env", "search", "selfplay", "learn"),
    batches: Sequence[AtLeastOne] = (),
    against: Sequence[str] = (),
    simulations: AtLeastOne = 32,
    repeats: AtLeastOne = 5,
    seconds: Positive = 0.3,
    progress: Progress = False,
) -> MeasuredSpeed:
    """Measure the speed of the game, the search, self-play and the learner on this machine.

    Args:
      config: its rules, network, search and learner are used; the quickstart's by default.
      parts: to measure.
      batches: numbers of boards in parallel; by default those of the device.
      against: baselines, as `bench --against` names them.
      simulations: simulations a move of the searches outside self-play.
      repeats: timed runs of each measurement; their median is reported.
      seconds: shortest time of a timed run, in seconds.
      progress: show what is measured.

    Raises:
      UsageError: an unknown name, a baseline of another part, or rules that are not measured.

    Example:
      `train.bench_speed(parts=["env"], batches=[256]).table()`
    """
    from train.api.configs import make_config
    from train.bench.report import MeasuredSpeed
    from train.bench.suite import Request, run_suite
    from train.runtime.display import Display

    request = Request(
        make_config(config),
        tuple(parts),
        tuple(batches),
        against=tuple(against),
        simulations=simulations,
        repeats=repeats,
        seconds=seconds,
    )
    display = progress if isinstance(progress, Display) else Display(is_quiet=not progress)
    with display.console.status("bench") as status:
        return MeasuredSpeed(request, run_suite(request, status.update))
