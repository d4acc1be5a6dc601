"""The curves of runs as a result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.metrics.figure import Axis, draw_metrics, metrics_figure
from train.metrics.rows import Row
from train.runtime.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Curves(Result):
    """Metrics of runs.

    Attributes:
      runs: the rows of each run, by its name.
      axis: the horizontal one.
      written: files that hold them.
    """

    runs: Mapping[str, Sequence[Row]]
    axis: Axis = "iteration"
    written: dict[Path, str] = dataclasses.field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each iteration of each run."""
        return [{"run": name} | row for name, rows in self.runs.items() for row in rows]

    def summary(self) -> dict[str, Any]:
        """The last row of each run."""
        return {name: rows[-1] for name, rows in self.runs.items()}

    def shown(self) -> list[Any]:
        """What `curves` prints: nothing but what is written."""
        return []

    def figure(self) -> Figure:
        """A panel each for loss, win rate and games a second, as a figure of matplotlib."""
        return metrics_figure(self.runs, axis=self.axis)

    def draw(self, path: Path) -> None:
        """Write the picture with its caption.

        Raises:
          UsageError: the file cannot be written, or its ending names no format.
        """
        draw_metrics(path, self.runs, axis=self.axis)
