"""A run that was stopped and resumed ends exactly as one that was not."""

import json
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.train import tiny
from train import checkpoint, loop
from train.metrics import METRICS_FILE

CONFIG = tiny.config()
DIRECTORY = CONFIG.name


class Killed(BaseException):
    """In place of what ends a process at once."""


@pytest.fixture(autouse=True)
def shared_programs(monkeypatch):
    monkeypatch.setattr(loop, "make_programs", tiny.shared_programs)


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """A run without a stop."""
    runs = tmp_path_factory.mktemp("straight")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_programs", tiny.shared_programs)
        assert loop.train(CONFIG, runs, resume=False)
    return runs / DIRECTORY


def break_off(monkeypatch, during: int, act) -> None:
    """Call `act` at the end of an iteration, before its row is written; once."""
    run_iteration = loop.run_iteration

    def wrapped(config, programs, state, iteration):
        result = run_iteration(config, programs, state, iteration)
        if iteration == during:
            monkeypatch.setattr(loop, "run_iteration", run_iteration)
            act()
        return result

    monkeypatch.setattr(loop, "run_iteration", wrapped)


def rows(directory: Path) -> list[dict[str, Any]]:
    """The metrics, all but the wall clock's."""
    lines = (directory / METRICS_FILE).read_text().splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.endswith(("_seconds", "_per_second"))}
        for line in lines
    ]


def assert_same_run(directory: Path, expected: Path) -> None:
    """Weights, optimizer, replay, boards, metrics, evaluation and game are the same."""
    like = tiny.shared_programs(CONFIG).init()
    found, wanted = (checkpoint.read_run(path, like) for path in (directory, expected))
    assert int(found.iterations) == CONFIG.iterations
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    weights = checkpoint.read_weights(directory, like.learner.variables)
    expected_weights = jax.tree.leaves(found.learner.variables)
    for one, other in zip(jax.tree.leaves(weights), expected_weights, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert rows(directory) == rows(expected)
    for name in (loop.RESULT_FILE, loop.GAME_FILE, loop.CONFIG_FILE):
        assert (directory / name).read_text() == (expected / name).read_text()


def test_run_learns_and_is_complete(straight):
    """What the others are compared with is no empty run."""
    found = rows(straight)
    assert [row["iteration"] for row in found] == list(range(CONFIG.iterations))
    assert found[-1]["replay_rows"] > 8  # the ring of 16 rows has wrapped
    losses = [row["policy_loss"] for row in found if "policy_loss" in row]
    assert len(set(losses)) == len(losses) >= 4
    assert found[2]["opponent"] == "random"
    like = tiny.shared_programs(CONFIG).init()
    final = checkpoint.read_run(straight, like)
    assert int(final.learner.step) == len(losses) * CONFIG.learner.steps
    assert int(final.ring.written) == CONFIG.iterations * CONFIG.selfplay.plies


def test_same_run_twice_is_the_same(straight, tmp_path):
    assert loop.train(CONFIG, tmp_path, resume=False)
    assert_same_run(tmp_path / DIRECTORY, straight)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("done", [1, 3])
def test_stopped_by_a_signal(straight, tmp_path, monkeypatch, capsys, done, number):
    # Neither 1 nor 3 is due for a checkpoint: the signal itself makes it.
    break_off(monkeypatch, done - 1, lambda: signal.raise_signal(number))
    assert not loop.train(CONFIG, tmp_path, resume=False)
    assert (
        f"saved after iteration {done}; the same command with --resume" in capsys.readouterr().out
    )
    directory = tmp_path / DIRECTORY
    assert rows(directory) == rows(straight)[:done]
    assert checkpoint.newest_iteration(directory, checkpoint.RESUME) == done
    assert not (directory / loop.RESULT_FILE).exists()
    assert loop.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)


def test_stopped_twice(straight, tmp_path, monkeypatch):
    for during, resume in ((0, False), (3, True)):
        break_off(monkeypatch, during, lambda: signal.raise_signal(signal.SIGINT))
        assert not loop.train(CONFIG, tmp_path, resume=resume)
    assert loop.train(CONFIG, tmp_path, resume=True)
    assert_same_run(tmp_path / DIRECTORY, straight)


def test_killed_between_checkpoints(straight, tmp_path, monkeypatch):
    def die():
        raise Killed

    break_off(monkeypatch, 3, die)
    with pytest.raises(Killed):
        loop.train(CONFIG, tmp_path, resume=False)
    # The newest checkpoint is of iteration 2; a row more is written, and half of another.
    directory = tmp_path / DIRECTORY
    assert checkpoint.newest_iteration(directory, checkpoint.RESUME) == 2
    assert len(rows(directory)) == 3
    with (directory / METRICS_FILE).open("a") as file:
        file.write('{"iteration": 3, "gam')
    assert loop.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)


def test_second_interrupt_drops_the_iteration(straight, tmp_path, monkeypatch):
    def interrupt_twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    break_off(monkeypatch, 2, interrupt_twice)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        loop.train(CONFIG, tmp_path, resume=False)
    assert signal.getsignal(signal.SIGINT) is before
    directory = tmp_path / DIRECTORY
    assert checkpoint.newest_iteration(directory, checkpoint.RESUME) == 2
    assert loop.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)
