"""Writes a run's rows into every place that holds them."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from train.metrics.rows import METRICS_FILE, Row, elapsed_seconds, keep_rows
from train.metrics.tensorboard import TensorBoardFile


class Mirror(Protocol):
    """A further place that holds the rows."""

    def write(self, row: Row) -> None: ...
    def close(self) -> None: ...


class MetricsWriter:
    """Appends a row for each iteration to `metrics.jsonl`, TensorBoard's file and all mirrors.

    Attributes:
      kept: the rows of earlier starts.
    """

    def __init__(self, directory: Path, *, done: int, mirrors: tuple[Mirror, ...] = ()) -> None:
        """Open the files of a run that has done this many iterations, and drop later rows."""
        path = directory / METRICS_FILE
        self.kept = keep_rows(path, done)
        self._before = elapsed_seconds(self.kept)[-1] if self.kept else 0.0
        self._started = time.monotonic()
        self._mirrors = (TensorBoardFile(directory, self.kept), *mirrors)
        self._file = path.open("a", encoding="utf-8")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row with its times; when this returns it is out of the process's hands."""
        times = {
            "elapsed_seconds": self._before + time.monotonic() - self._started,
            "wall_time": time.time(),
        }
        whole = {**row, **times}
        for mirror in self._mirrors:
            mirror.write(whole)
        # Last: a row of this file is in the others too, also where the process is killed here.
        self._file.write(json.dumps(whole) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Flush and close all files."""
        self._file.close()
        for mirror in self._mirrors:
            mirror.close()
