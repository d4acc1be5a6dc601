"""The loop: what is saved, written and yielded, and when."""

import time
from unittest.mock import Mock

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import read_rows
from train.loop import iterations as iterations_lib
from train.loop import reporting
from train.loop.evaluation import short_matches
from train.loop.iterations import iterations
from train.loop.run_directory import store_lib
from train.metrics.writer import MetricsWriter
from train.runtime.errors import UsageError
from train.runtime.files import CannotWriteError

CONFIG = tiny.config("--evaluation.every=1")  # six iterations, of which every second is saved


def saved_iterations(directory) -> list[str]:
    return sorted(path.name for path in (directory / store_lib.WEIGHTS).iterdir())


@pytest.mark.parametrize("kind", [UsageError, RuntimeError])
def test_an_error_in_a_match_costs_no_iteration(tmp_path, monkeypatch, kind):
    def play(config, weights, done, directory, display):
        if done == 3:
            raise kind("the opponent has left")
        return {}

    monkeypatch.setattr(f"{short_matches.__module__}.short_matches", play)
    directory = tmp_path / CONFIG.name
    with pytest.raises(kind) as caught:
        list(iterations(CONFIG, directory, is_quiet=True))
    command = f"python -m train run --resume {directory}"
    told = f"; iteration 3 is saved; to continue: {command}" if kind is UsageError else ""
    assert str(caught.value) == f"the opponent has left{told}"
    assert saved_iterations(directory) == ["2", "3"]
    assert [row["iteration"] for row in read_rows(directory)] == [1, 2, 3]


@pytest.mark.parametrize("has_room", [True, False])
def test_an_iteration_whose_row_cannot_be_written_is_saved_first(tmp_path, monkeypatch, has_room):
    full = CannotWriteError("metrics.jsonl: cannot be written: No space left on device")
    write = MetricsWriter.write

    def fail(writer, row):
        if row["iteration"] == 3:
            if not has_room:
                monkeypatch.setattr(reporting, "save_checkpoint", Mock(side_effect=full))
            raise full
        return write(writer, row)

    monkeypatch.setattr(MetricsWriter, "write", fail)
    config = tiny.config("--evaluation.opponents=[]")
    directory = tmp_path / config.name
    with pytest.raises(UsageError) as caught:
        list(iterations(config, directory, is_quiet=True))
    message, command = str(caught.value), f"python -m train run --resume {directory}"
    assert message.startswith(str(full)) and message.endswith(
        f"go on with: {command}" if not has_room else f"to continue: {command}"
    )
    assert ("iteration 3 is saved" in message) == has_room
    assert saved_iterations(directory) == (["2", "3"] if has_room else ["2"])


def test_rows_are_those_of_the_file_and_the_callers_time_is_not_the_runs(tmp_path, monkeypatch):
    """Each iteration takes a second of a made-up clock, the caller a hundred."""
    now = [1000.0]
    check = iterations_lib.check_finite

    def spend(steps, learner, iteration):
        now[0] += 1
        check(steps, learner, iteration)

    config = tiny.config("--evaluation.opponents=[]")
    run = iterations(config, tmp_path / config.name, is_quiet=True)
    assert next(run).row is None
    monkeypatch.setattr(iterations_lib, "check_finite", spend)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rows = []
    for each in run:
        rows.append(each.row)
        now[0] += 100
    seconds = [row["elapsed_seconds"] for row in rows]
    assert [after - seconds[0] for after in seconds] == [0, 1, 2, 3, 4, 5]
    assert rows == read_rows(tmp_path / config.name)


def test_a_run_that_is_closed_leaves_its_directory(tmp_path):
    """A second run may go on where the first one saved."""
    config = tiny.config("--evaluation.opponents=[]")
    directory = tmp_path / config.name
    run = iterations(config, directory, is_quiet=True)
    for each in run:
        if each.row is not None and each.row["iteration"] == 2:
            break
    with pytest.raises(UsageError, match="in use"):
        next(iterations(config, directory, resume=True, is_quiet=True))
    run.close()
    again = iterations(config, directory, resume=True, is_quiet=True)
    next(again)
    assert next(again).row["iteration"] == 3
    again.close()
