"""Writes a run's rows into every place that holds them."""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from train.metrics.rows import METRICS_FILE, Row, elapsed_seconds, keep_rows, sum_of
from train.metrics.tensorboard import TensorBoardFile
from train.runtime.errors import UsageError
from train.runtime.files import writing


class Mirror(Protocol):
    """A further place that holds the rows."""

    def write(self, row: Row) -> None: ...
    def close(self) -> None: ...


class MetricsWriter:
    """Appends a row for each iteration to `metrics.jsonl`, TensorBoard's file and all mirrors.

    Attributes:
      kept: the rows of earlier starts.
      rows_sum: the checksum of all rows.
    """

    def __init__(self, directory: Path, *, done: int, mirrors: tuple[Mirror, ...] = ()) -> None:
        """Open the files of a run that has done this many iterations, and drop later rows."""
        path = directory / METRICS_FILE
        self._directory = directory
        with writing(directory):
            self.kept = keep_rows(path, done)
            self._mirrors = (TensorBoardFile(directory, self.kept), *mirrors)
            self._file = path.open("a", encoding="utf-8")
        self.rows_sum = sum_of(self.kept)
        self._before = elapsed_seconds(self.kept)[-1] if self.kept else 0.0
        self._started = time.monotonic()

    def start(self) -> None:
        """Count the time of this start from now on."""
        self._started = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Count no time that was not the run's."""
        self._started += seconds

    def write(self, row: Mapping[str, Any]) -> Row:
        """Append a row with its times; when this returns it is out of the process's hands.

        Returns:
          The row as it is written.

        Raises:
          CannotWriteError: the disk is full, or cannot be written.
          UsageError: the file was removed, or its directory.
        """
        if os.fstat(self._file.fileno()).st_nlink == 0:
            path = self._directory / METRICS_FILE
            raise UsageError(f"{path}: was removed while the run wrote to it")
        times = {
            "elapsed_seconds": self._before + time.monotonic() - self._started,
            "wall_time": time.time(),
        }
        whole = {**row, **times}
        with writing(self._directory):
            for mirror in self._mirrors:
                mirror.write(whole)
            # Last: a row of this file is in the others too, also where the process is killed here.
            self._file.write(json.dumps(whole) + "\n")
            self._file.flush()
        self.rows_sum = sum_of([whole], self.rows_sum)
        return whole

    def close(self) -> None:
        """Close all files. Every row was flushed, or its error told."""
        for file in (self._file, *self._mirrors):
            with contextlib.suppress(OSError):
                file.close()
