"""The command that draws the metrics of runs (`curves`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from train.cli import options
from train.runtime.errors import UsageError

if TYPE_CHECKING:
    from train.metrics.rows import Row

Axis = Literal["iteration", "hours", "positions"]


@dataclasses.dataclass(frozen=True)
class Curves:
    """Draw loss, win rate and games a second of runs, finished or not, into one picture."""

    EXAMPLES = ("curves runs/quickstart", "curves runs/a runs/b --axis hours --out out/ab.svg")

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN ...")]
    """Run directories."""
    axis: Axis = "iteration"
    """Horizontal axis: iterations, hours of the run, or positions played (of `fit`, learned)."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: RUN/curves.png)")
    ] = None
    """Picture to write, .png, .svg or .pdf; that of several runs lies beside the first one's."""
    csv: options.OptionalFile = None
    """File for all metrics, as comma-separated values; a picture is then drawn only for --out."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.metrics.figure import draw_metrics
        from train.metrics.table import write_csv

        if not self.runs:
            raise UsageError("curves: names no run")
        if len(set(self.runs)) < len(self.runs):
            raise UsageError("curves: a run is named twice")
        rows = {
            name: _read(run)
            for run, name in zip(self.runs, options.names_of_runs(self.runs), strict=True)
        }
        if self.csv is not None:
            write_csv(self.csv, rows)
            options.say_written(self.csv, "metrics")
        if self.out is not None or self.csv is None:
            out = self.out or _default_picture(self.runs)
            draw_metrics(out, rows, axis=self.axis)
            options.say_written(out, "curves")
        return 0


def _read(run: Path) -> list[Row]:
    """The metrics of a run so far.

    Raises:
      UsageError: there are none.
    """
    from train.metrics.rows import METRICS_FILE, read_rows

    if not run.is_dir():
        raise UsageError(f"{run}: no such run directory")
    path = run / METRICS_FILE
    try:
        rows = read_rows(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if not rows:
        raise UsageError(f"{path}: has no iteration yet")
    return rows


def _default_picture(runs: Sequence[Path]) -> Path:
    directory = runs[0] if len(runs) == 1 else runs[0].parent
    return directory / "curves.png"
