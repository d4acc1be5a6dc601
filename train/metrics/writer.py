"""Writes a run's rows into every place that holds them: `metrics.jsonl`, TensorBoard, wandb."""

import contextlib
import importlib
import importlib.util
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from train.metrics.rows import METRICS_FILE, Row, flat_figures, keep_rows, sum_of
from train.runtime.errors import UsageError, one_line
from train.runtime.files import read_json, write_json, writing
from train.runtime.showing import tell_error


@contextlib.contextmanager
def _missing(library: str) -> Iterator[None]:
    """Within it a library is not found, unless it is imported already."""
    if library in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules[library] = None
    try:
        yield
    finally:
        del modules[library]


# For one annotation it would import PyTorch, which takes 3.5 seconds and 512 MiB where it is there.
with _missing("torch"):
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto import event_pb2, summary_pb2

_GROUPS = {
    "selfplay": (
        *("games", "positions", "mean_length", "red_win_rate", "simulations"),
        *("full_search_share", "drawn_share"),
    ),
    "replay": ("replay_positions", "reuse", "reanalyse_surprise"),
    "speed": (
        *("games_per_second", "positions_per_second", "selfplay_seconds", "learn_seconds"),
        *("compile_seconds", "elapsed_seconds"),
    ),
    "evaluation": ("win_rate",),
    "learner": ("steps", "accuracy", "gradient_norm", "largest_gradient_norm"),
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names}
_OF_SELFPLAY = ("policy_entropy", "policy_share_", "distinct_", "commonest_", "learner_win_rate")
"""How further figures of that group begin."""
_NOT_DRAWN = ("iteration", "wall_time")


def scalars_of(row: Row) -> dict[str, float]:
    """The numbers of a row by their grouped names.

    Losses are `loss/total`, `loss/policy` and so on, those on games held back `validation/...`; the
    win rate of each short match is `evaluation/win_rate/OPPONENT`. Figures of one rule set of
    several are `rules/NAME/...` (see `flat_figures`). Intervals are left out.
    """
    return {
        _tag_of(name): float(value)
        for name, value in flat_figures(row).items()
        if name not in _NOT_DRAWN
        and isinstance(value, int | float)
        and not {"low", "high"} & {*name.split("/")[:2]}
    }


def _tag_of(name: str) -> str:
    if "/" in name:
        return f"evaluation/{name}" if name.startswith("win_rate/") else f"rules/{name}"
    if name.startswith(_OF_SELFPLAY):
        return f"selfplay/{name}"
    if name in _GROUP_OF:
        return f"{_GROUP_OF[name]}/{name.removeprefix('replay_')}"
    if name.startswith("validation_"):
        return f"validation/{_loss_name(name.removeprefix('validation_'))}"
    return f"loss/{_loss_name(name)}"


def _loss_name(name: str) -> str:
    return "total" if name == "loss" else name.removesuffix("_loss")


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
        self.name = str(folder)
        folder.mkdir(exist_ok=True)
        old = set(folder.glob("events.out.tfevents.*"))
        # Names hold the second of their making, so two starts within one need a number.
        self._file = EventsWriter(str(folder / "events"), f".{len(list(folder.iterdir()))}")
        # Tells a TensorBoard that has read the old files to forget their steps.
        start = SessionLog(status=SessionLog.START)
        self._file.write_event(Event(wall_time=time.time(), step=1, session_log=start))
        for row in rows:
            self.write(row)
        self._file.flush()
        for path in old:
            path.unlink()

    def write(self, row: Row) -> None:
        """Append a row; its `iteration` is the step."""
        values = [Summary.Value(tag=tag, simple_value=x) for tag, x in scalars_of(row).items()]
        moment = row.get("wall_time", time.time())
        event = Event(wall_time=moment, step=row["iteration"], summary=Summary(value=values))
        self._file.write_event(event)
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


_ID_FILE = "wandb.json"


def check_wandb(project: str) -> None:
    """Refuse a project where the package is missing with a UsageError."""
    if project and importlib.util.find_spec("wandb") is None:
        raise UsageError("tracking.wandb needs wandb: pip install 'wallgo-jax[wandb]'")


class WandbRun:
    """Logs each row under the names that TensorBoard shows, with the iteration as the step.

    A resumed run goes on under the id that it drew when it first started. Steps that it computes
    again have the same numbers, so the server keeps those that it has.
    """

    name = "tracking.wandb"

    def __init__(self, directory: Path, config: Mapping[str, Any]) -> None:
        """Begin or go on; the config is JSON-ready and names the project."""
        wandb, path = importlib.import_module("wandb"), directory / _ID_FILE
        if not path.exists():
            write_json(path, {"id": secrets.token_hex(6)})
        try:
            self._run = wandb.init(
                project=config["tracking"]["wandb"],
                name=config["name"],
                id=read_json(path)["id"],
                dir=str(directory),
                config=dict(config),
                resume="allow",
            )
        except (KeyError, TypeError):
            raise UsageError(f"{path}: holds no id of a run; remove it for a new one") from None
        except wandb.errors.Error as error:
            raise UsageError(f"tracking.wandb: {one_line(error)}") from None

    def write(self, row: Row) -> None:
        """Log a row; its `iteration` is the step."""
        self._run.log(scalars_of(row), step=row["iteration"])

    def close(self) -> None:
        """Wait until all is handed over."""
        self._run.finish()


class MetricsWriter:
    """Appends a row for each iteration to `metrics.jsonl`, TensorBoard's file and, where the config
    has a project, Weights & Biases. One of these two that fails is told of and gets no more rows.

    Attributes:
      kept: the rows of earlier starts.
      rows_sum: the checksum of all rows.
    """

    def __init__(
        self, directory: Path, *, done: int, config: Mapping[str, Any] | None = None
    ) -> None:
        """Open the files of a run that has done this many iterations, and drop later rows."""
        path = directory / METRICS_FILE
        self._directory = directory
        with writing(directory):
            self.kept = keep_rows(path, done)
            self._mirrors: list[Any] = []
            self._failed: list[Any] = []
            if config is not None and config["tracking"]["wandb"]:
                self._mirrors.append(WandbRun(directory, config))
            self._mirrors.append(TensorBoardFile(directory, self.kept))
            self._file = path.open("a", encoding="utf-8")
        self.rows_sum = sum_of(self.kept)

    def write(self, row: Mapping[str, Any]) -> Row:
        """Append a row with its `wall_time`; when this returns it is out of the process's hands.

        Returns:
          The row as it is written.

        Raises:
          CannotWriteError: the disk is full, or cannot be written.
          UsageError: the file was removed, or its directory.
        """
        if os.fstat(self._file.fileno()).st_nlink == 0:
            path = self._directory / METRICS_FILE
            raise UsageError(f"{path}: was removed while the run wrote to it")
        whole = {**row, "wall_time": time.time()}
        with writing(self._directory):
            for mirror in [*self._mirrors]:
                self._mirror(mirror, whole)
            # Last: a row of this file is in the others too, also where the process is killed here.
            self._file.write(json.dumps(whole) + "\n")
            self._file.flush()
        self.rows_sum = sum_of([whole], self.rows_sum)
        return whole

    def close(self) -> None:
        """Close all files. Every row was flushed, or its error told."""
        with contextlib.suppress(OSError):
            self._file.close()
        for mirror in self._mirrors:
            try:
                mirror.close()
            except Exception as error:
                tell_error(mirror.name, error, "the last rows may be missing there")
        for mirror in self._failed:
            with contextlib.suppress(Exception):  # It is told already.
                mirror.close()

    def _mirror(self, mirror: Any, row: Row) -> None:
        """Hand a row to a mirror; one that does not take it gets no more."""
        try:
            mirror.write(row)
        except Exception as error:
            self._mirrors.remove(mirror)
            self._failed.append(mirror)
            tell_error(mirror.name, error, f"no rows from iteration {row['iteration']} on go there")
