"""The command that draws what runs have measured (`curves`)."""

from __future__ import annotations

import dataclasses
from typing import Any

from train.api.curves import curves
from train.cli import options
from train.cli.commands import made_from
from train.runtime.errors import UsageError

_Curves: Any = made_from(curves, "curves")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurvesCommand(_Curves):
    """Draw loss, win rate and games a second of runs, finished or not, into one picture. The
    picture of one run is written into its directory, that of several next to the first one's. With
    --csv a picture is drawn only if --out names it."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.metrics.rows import METRICS_FILE

        out = self.out
        if not self.runs:
            raise UsageError("curves: RUNS: name a run's directory")
        if self.csv is None:
            first = self.runs[0]
            out = out or (first if len(self.runs) == 1 else first.parent) / "curves.png"
        elif out is None and self.axis != "iteration":
            raise UsageError("curves: --axis has no effect with --csv and without --out")
        options.check_files(self.csv, out, inputs=[run / METRICS_FILE for run in self.runs])
        return self.finish(self.call(out=out))
