"""The loop on its own, without a network: what is saved, written and yielded, and when."""

import time
import types
from typing import NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import read_rows
from train.loop import run_loop
from train.loop.run_loop import OpenRun, iterations
from train.metrics.writer import MetricsWriter
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import CannotWriteError

CONFIG = tiny.config()  # six iterations, of which every second is saved


class Learner(NamedTuple):
    player: np.ndarray


class State(NamedTuple):
    learner: Learner
    iterations: np.ndarray


@pytest.fixture
def saved(monkeypatch) -> list[int]:
    """The iterations that are saved."""
    done = []

    def save(directory, iteration, weights, run, config, *, win_rate, rows_sum) -> None:
        assert int(run.iterations) == iteration
        done.append(iteration)

    monkeypatch.setattr(run_loop, "save_checkpoint", save)
    return done


@pytest.fixture
def run(tmp_path, saved):
    writer = MetricsWriter(tmp_path, done=0)
    state, display = State(Learner(np.zeros(1)), np.int32(0)), Display(is_quiet=True)
    yield OpenRun(CONFIG, tmp_path, types.SimpleNamespace(), state, display, writer)
    writer.close()


def steps(run, evaluate, iterate=lambda: None):
    """The loop's steps of a run that only counts."""

    def count(state, iteration):
        iterate()
        return state._replace(iterations=np.int32(iteration + 1)), {"iteration": iteration + 1}

    run.procedure.iterate, run.procedure.evaluate = count, evaluate
    return iterations(run)


@pytest.mark.parametrize("kind", [UsageError, RuntimeError])
def test_an_error_in_a_match_costs_no_iteration(run, saved, kind):
    def evaluate(state, done, display):
        if done == 3:
            raise kind("the opponent has left")
        return {}

    with pytest.raises(kind) as caught:
        list(steps(run, evaluate))
    command = f"python -m train run --resume {run.directory}"
    told = f"; iteration 3 is saved; to go on: {command}" if kind is UsageError else ""
    assert str(caught.value) == f"the opponent has left{told}"
    assert saved == [2, 3]
    assert [row["iteration"] for row in read_rows(run.directory)] == [1, 2, 3]


@pytest.mark.parametrize("has_room", [True, False])
def test_an_iteration_whose_row_cannot_be_written_is_saved_first(run, saved, monkeypatch, has_room):
    full = CannotWriteError("metrics.jsonl: cannot be written: No space left on device")
    write = run.writer.write

    def fail(row):
        if row["iteration"] == 3:
            if not has_room:
                monkeypatch.setattr(run_loop, "save_checkpoint", Mock(side_effect=full))
            raise full
        return write(row)

    monkeypatch.setattr(run.writer, "write", fail)
    with pytest.raises(UsageError) as caught:
        list(steps(run, lambda *_: {}))
    message, command = str(caught.value), f"python -m train run --resume {run.directory}"
    assert message.startswith(str(full)) and message.endswith(
        f"go on with: {command}" if not has_room else f"to go on: {command}"
    )
    assert ("iteration 3 is saved" in message) == has_room
    assert saved == ([2, 3] if has_room else [2])


def test_rows_are_those_of_the_file_and_the_callers_time_is_not_the_runs(run, monkeypatch):
    now = [1000.0]
    for clock in ("perf_counter", "monotonic"):
        monkeypatch.setattr(time, clock, lambda: now[0])

    def spend(seconds):
        now[0] += seconds

    rows = []
    for _, row in steps(run, lambda *_: {}, lambda: spend(1)):
        rows.append(row)
        spend(100)
    assert [row["elapsed_seconds"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows == read_rows(run.directory)
