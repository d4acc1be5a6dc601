"""TensorBoard's event file of a run, which always holds what `metrics.jsonl` holds."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2, summary_pb2

from train.metrics.rows import Row
from train.metrics.tags import scalars_of

_FOLDER = "tensorboard"
# Protobuf makes these classes at run time, unseen by type checkers.
Event: Any = getattr(event_pb2, "Event")  # noqa: B009
SessionLog: Any = getattr(event_pb2, "SessionLog")  # noqa: B009
Summary: Any = getattr(summary_pb2, "Summary")  # noqa: B009


class TensorBoardFile:
    """Writes each row as one event, and each event to the disk at once.

    A resumed run begins a new file with the rows that it keeps and deletes the files of earlier
    starts. So no step is missing or doubled, wherever the process was killed.
    """

    def __init__(self, directory: Path, rows: Sequence[Row]) -> None:
        folder = directory / _FOLDER
        folder.mkdir(exist_ok=True)
        old = set(folder.glob("events.out.tfevents.*"))
        # Names hold the second of their making, so two starts within one need a number.
        self._file = EventsWriter(str(folder / "events"), f".{len(list(folder.iterdir()))}")
        # Tells a TensorBoard that has read the old files to forget their steps.
        self._file.write_event(
            Event(wall_time=time.time(), step=1, session_log=SessionLog(status=SessionLog.START))
        )
        for row in rows:
            self._add(row)
        self._file.flush()
        for path in old:
            path.unlink()

    def write(self, row: Row) -> None:
        """Append a row; its `iteration` is the step."""
        self._add(row)
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def _add(self, row: Row) -> None:
        values = [Summary.Value(tag=tag, simple_value=x) for tag, x in scalars_of(row).items()]
        moment = row.get("wall_time", time.time())
        event = Event(wall_time=moment, step=row["iteration"], summary=Summary(value=values))
        self._file.write_event(event)
