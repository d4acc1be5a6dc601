"""Every place that holds a run's rows: the file, TensorBoard, Weights & Biases; how it is read."""

import importlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint, read_scalars
from train.config import config_to_dict
from train.metrics.rows import METRICS_FILE, read_rows
from train.metrics.writer import MetricsWriter, TensorBoardFile, WandbRun
from train.runtime.errors import UsageError

ROW = {
    "loss": 2.5,
    "games": 12.0,
    "games_per_second": 3.0,
    "replay_positions": 4,
    "mean_length": None,
}


def write(directory, numbers, *, done=0, config=None):
    writer = MetricsWriter(directory, done=done, config=config)
    for number in numbers:
        writer.write({"iteration": number, **ROW})
    return writer


def test_each_row_is_on_disk_when_it_is_written(tmp_path):
    writer = write(tmp_path, [1, 2])
    # Not closed: this is what a killed process leaves.
    assert [row["iteration"] for row in read_rows(tmp_path / METRICS_FILE)] == [1, 2]
    scalars = read_scalars(tmp_path)
    assert scalars["loss/total"] == {1: 2.5, 2: 2.5}
    assert set(scalars) == {
        *("loss/total", "selfplay/games", "speed/games_per_second", "replay/positions")
    }
    writer.close()


def test_a_resumed_run_has_each_step_once(tmp_path):
    write(tmp_path, [1, 2, 3, 4]).close()
    first = [row["wall_time"] for row in read_rows(tmp_path / METRICS_FILE)]
    writer = write(tmp_path, [3, 4, 5], done=2)
    assert [row["iteration"] for row in writer.kept] == [1, 2]
    rows = read_rows(tmp_path / METRICS_FILE)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["wall_time"] for row in rows[:2]] == first[:2]
    # The reader refuses a step that stands twice.
    assert set(read_scalars(tmp_path)["loss/total"]) == {1, 2, 3, 4, 5}
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
    writer.close()


class FakeRun:
    """A run of the fake service."""

    def __init__(self, told: list, options: dict) -> None:
        self._told = told
        told.append(("init", options))

    def log(self, values: dict, *, step: int) -> None:
        self._told.append((step, values))

    def finish(self) -> None:
        self._told.append("finish")


@pytest.fixture
def told(monkeypatch) -> list:
    """All that a fake wandb is told; it is installed for the test."""
    found: list = []
    fake = SimpleNamespace(
        init=lambda **options: FakeRun(found, options),
        errors=SimpleNamespace(Error=ConnectionError),
        __spec__=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return found


def test_a_run_is_mirrored(told, tmp_path):
    """The row of every iteration, under the names of TensorBoard, through a resume."""
    config = config_to_dict(tiny.config("--tracking.wandb", "walls"))
    write(tmp_path, [1, 2], config=config).close()
    write(tmp_path, [3], done=2, config=config).close()
    (name, options), *logged, last, again, third, _ = told
    assert (name, last) == ("init", "finish")
    assert (options["project"], options["name"], options["resume"]) == ("walls", "tiny", "allow")
    assert options["config"] == config
    assert again[1]["id"] == options["id"]
    logged.append(third)
    assert [step for step, _ in logged] == [1, 2, 3]
    scalars = read_scalars(tmp_path)
    for step, values in logged:
        assert values.keys() >= {"loss/total", "replay/positions"}
        for tag, value in values.items():
            assert scalars[tag][step] == pytest.approx(value, rel=1e-6)


def test_a_service_that_refuses_is_one_line(told, tmp_path):
    def refuse(**options):
        raise ConnectionError("no\nkey")

    sys.modules["wandb"].init = refuse
    with pytest.raises(UsageError, match=r"^tracking\.wandb: no key$"):
        write(tmp_path, [], config=config_to_dict(tiny.config("--tracking.wandb", "walls")))


@pytest.mark.parametrize("mirror", ["tensorboard", "wandb"])
def test_a_mirror_that_fails_costs_its_own_rows_alone(told, tmp_path, monkeypatch, capsys, mirror):
    kind = {"tensorboard": TensorBoardFile, "wandb": WandbRun}[mirror]

    close = kind.close

    def fail(self, *row):
        if not row:
            close(self)
        raise OSError(28, "No space left on device")

    writer = write(tmp_path, [1], config=config_to_dict(tiny.config("--tracking.wandb", "walls")))
    for name in ("write", "close"):
        monkeypatch.setattr(kind, name, fail)
    for number in (2, 3):
        writer.write({"iteration": number, **ROW})
    writer.close()
    assert [row["iteration"] for row in read_rows(tmp_path / METRICS_FILE)] == [1, 2, 3]
    steps = {"tensorboard": set(read_scalars(tmp_path)["loss/total"])}
    steps["wandb"] = {entry[0] for entry in told if isinstance(entry[0], int)}
    assert steps.pop(mirror) == {1} and [*steps.values()] == [{1, 2, 3}]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"{mirror}: No space left on device; no rows from iteration 2 on go there")


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = command("run", tiny.PATH, "--runs", tmp_path, "--tracking.wandb", "walls")
    assert "wallgo-jax[wandb]" in complaint(said)
    assert list(tmp_path.iterdir()) == []


def test_no_run_imports_pytorch(tmp_path):
    (tmp_path / "torch.py").write_text("class Tensor: pass")
    code = "import sys, train.metrics.writer; print('torch' in sys.modules); import torch"
    environment = compiling.environment()
    path = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def write_rows(path, rows, *, end=""):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + end)


def test_a_running_file_is_read_up_to_its_last_whole_line(tmp_path):
    path = tmp_path / METRICS_FILE
    rows = [{"iteration": 1, "loss": 2.0}, {"iteration": 2, "loss": 1.5}]
    write_rows(path, rows, end='{"iteration": 3, "lo')
    assert read_rows(path) == rows


def test_a_damaged_byte_costs_its_row_alone(tmp_path):
    path = tmp_path / METRICS_FILE
    rows = [{"iteration": number, "loss": 2.0} for number in (1, 2, 3)]
    write_rows(path, rows)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x80
    path.write_bytes(data)
    found = read_rows(path)
    assert [found[0], found[-1]] == [rows[0], rows[2]] and found != rows
