"""A run that was stopped and resumed ends exactly as one that was not."""

import datetime
import functools
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import read_rows, read_scalars, untimed
from train.checkpoints import store
from train.config import RunConfig
from train.loop import run_directory, training
from train.loop.train_step import RunPrograms, make_run_programs
from train.metrics.rows import METRICS_FILE
from train.runtime import interrupts, provenance
from train.runtime.errors import UsageError
from wallgo_jax.env import VERSION

CONFIG = tiny.config()
DIRECTORY = CONFIG.name


class Killed(BaseException):
    """Stands in for a kill of the process."""


@pytest.fixture
def straight(tiny_run) -> Path:
    """A run without a stop."""
    return tiny_run


def break_off(monkeypatch, during: int, act) -> None:
    """Call `act` at the end of an iteration, before its row is written; once."""
    run_iteration = training.run_iteration

    def wrapped(programs, state, iteration):
        result = run_iteration(programs, state, iteration)
        if iteration == during:
            monkeypatch.setattr(training, "run_iteration", run_iteration)
            act()
        return result

    monkeypatch.setattr(training, "run_iteration", wrapped)


def rows(directory: Path) -> list[dict[str, Any]]:
    """The metrics, all but the wall clock's."""
    return [untimed(row) for row in read_rows(directory)]


@functools.cache
def like(config: RunConfig):
    """Shapes of a run's state."""
    return jax.eval_shape(make_run_programs(config).init)


def assert_same_run(directory: Path, expected: Path, config: RunConfig = CONFIG) -> None:
    """Weights, optimizer, replay, boards, metrics, evaluation and game are the same, and the same
    checkpoints are kept."""
    found, wanted = (store.read_run(path, like(config)) for path in (directory, expected))
    assert int(found.iterations) == config.iterations
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    weights = store.read_weights(directory, like(config).learner.variables)
    expected_weights = jax.tree.leaves(found.learner.variables)
    for one, other in zip(jax.tree.leaves(weights), expected_weights, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert rows(directory) == rows(expected)
    for name in (run_directory.RESULT_FILE, run_directory.GAME_FILE, run_directory.CONFIG_FILE):
        assert (directory / name).read_text() == (expected / name).read_text()


def kept(directory: Path, kind: str) -> list[str]:
    """The checkpoints by name, all but those set aside."""
    return sorted(p.name for p in (directory / kind).iterdir() if ".aside" not in p.name)


def test_run_learns_and_is_complete(straight):
    """The run that the others are compared with is not empty."""
    found = rows(straight)
    assert [row["iteration"] for row in found] == list(range(1, CONFIG.iterations + 1))
    assert found[-1]["replay_positions"] > 0
    losses = [row["policy_loss"] for row in found if "policy_loss" in row]
    assert len(set(losses)) == len(losses) >= 4
    assert found[2]["opponent"] == "random"
    # The newest two, and the best: that of the one short match, which iteration 3 has played.
    assert kept(straight, store.WEIGHTS) == ["3", "4", "6"]
    assert kept(straight, store.RESUME) == ["4", "6"]
    final = store.read_run(straight, like(CONFIG))
    rows_held = final.replay_state.plies.terminated.shape[0]
    assert int(final.replay_state.written) == CONFIG.iterations * CONFIG.selfplay.plies > rows_held
    # The schedule of the learning rate goes by steps taken, which the first iterations lack.
    taken = sum(row["steps"] for row in found)
    assert int(final.learner.step) == taken < CONFIG.iterations * CONFIG.learner.steps
    counts = [
        int(x)
        for path, x in jax.tree_util.tree_leaves_with_path(final.learner.optimizer)
        if "count" in jax.tree_util.keystr(path)
    ]
    assert set(counts) == {taken}


def test_stopped_twice_by_signals(straight, tmp_path, monkeypatch, capsys):
    """Neither 1 nor 5 is due for a checkpoint: the signal itself makes it."""
    directory = tmp_path / DIRECTORY
    for done, number in ((1, signal.SIGTERM), (5, signal.SIGINT)):
        break_off(monkeypatch, done - 1, functools.partial(signal.raise_signal, number))
        assert not training.train(CONFIG, tmp_path, resume=done > 1)
        told = f"saved after iteration {done}; to go on: python -m train run --resume {directory}"
        assert told in capsys.readouterr().out.splitlines()
        assert rows(directory) == rows(straight)[:done]
        assert store.newest_iteration(directory, store.RESUME) == done
        assert not (directory / run_directory.RESULT_FILE).exists()
    assert training.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)
    path = directory / run_directory.STARTS_FILE
    starts = json.loads(path.read_text())["starts"]
    assert [start["iterations"] for start in starts] == [[0, 6], [1, 6], [5, 6]]
    for start in starts:
        assert start["seed"] == CONFIG.seed
        assert start["env_version"] == VERSION
        assert start["versions"]["jax"] == jax.__version__
        assert start["versions"].keys() >= {"python", "flax", "optax", "mctx", "orbax-checkpoint"}
        assert start["devices"]["count"] == len(jax.devices())
        assert start["devices"]["platform"] == jax.default_backend()
        when = datetime.datetime.fromisoformat(start["time"])
        assert abs((datetime.datetime.now(datetime.UTC) - when).total_seconds()) < 3600
        git = start["git"]
        assert git is None or (len(git["revision"]) >= 40 and isinstance(git["dirty"], bool))
    # A damaged list is kept and another begun.
    path.write_text('{"starts": [')
    assert training.train(CONFIG, tmp_path, resume=True)
    assert [start["iterations"] for start in json.loads(path.read_text())["starts"]] == [[6, 6]]
    assert path.with_name("run.json.aside").read_text() == '{"starts": ['


def die(*arguments: object) -> None:
    raise Killed


def test_killed_between_checkpoints(straight, tmp_path, monkeypatch):
    break_off(monkeypatch, 5, die)
    with pytest.raises(Killed):
        training.train(CONFIG, tmp_path, resume=False)
    # The newest checkpoint is of iteration 4; a row more is written, and half of another.
    directory = tmp_path / DIRECTORY
    assert store.newest_iteration(directory, store.RESUME) == 4
    assert len(rows(directory)) == 5
    with (directory / METRICS_FILE).open("a") as file:
        file.write('{"iteration": 6, "gam')
    assert training.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)


def test_killed_before_anything_is_saved(straight, tmp_path, monkeypatch):
    """The directory is never without its config, and the run starts again."""
    directory = tmp_path / DIRECTORY
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run_directory, "write_json", die)
        training.train(CONFIG, tmp_path, resume=False)
    assert not directory.exists()
    break_off(monkeypatch, 1, die)
    with pytest.raises(Killed):
        training.train(CONFIG, tmp_path, resume=False)
    (directory / "resume" / "2.orbax-checkpoint-tmp").mkdir(parents=True)
    assert training.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, straight)
    assert kept(directory, store.WEIGHTS) == ["3", "4", "6"]
    assert kept(directory, store.RESUME) == ["4", "6"]


def test_second_interrupt_drops_the_iteration(tmp_path, monkeypatch):
    def interrupt_twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(interrupts, "TOGETHER", 0.0)
    break_off(monkeypatch, 2, interrupt_twice)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        training.train(CONFIG, tmp_path, resume=False)
    assert signal.getsignal(signal.SIGINT) is before
    assert store.newest_iteration(tmp_path / DIRECTORY, store.RESUME) == 2


def copied(straight: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(straight, tmp_path / DIRECTORY))


def test_damaged_checkpoint_costs_two_iterations(straight, tmp_path, capsys):
    directory = copied(straight, tmp_path)
    (directory / "resume" / "6" / "run" / "manifest.ocdbt").unlink()
    assert training.train(CONFIG, tmp_path, resume=True)
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(f"{directory}/resume/6: cannot be read: ")
    assert line.endswith("; taking iteration 4")
    assert "iteration 5: " in said.out
    assert "iteration 4: " not in said.out
    assert_same_run(directory, straight)
    for kind in (store.WEIGHTS, store.RESUME):
        assert kept(directory, kind) == kept(straight, kind)
        assert (directory / kind / "6.aside").is_dir()
    found, wanted = read_scalars(directory), read_scalars(straight)
    for name in wanted:
        if not name.startswith("speed/"):
            assert found[name] == wanted[name], name
    # Nothing was in the way: the next damaged one finds a free name.
    (directory / "resume" / "6" / "meta" / "metadata").unlink()
    assert training.train(CONFIG, tmp_path, resume=True)
    assert (directory / "resume" / "6.aside1").is_dir()
    assert_same_run(directory, straight)


def test_nothing_to_take_is_refused_and_left_alone(straight, tmp_path, capsys):
    directory = copied(straight, tmp_path)
    for iteration in ("4", "6"):
        (directory / "resume" / iteration / "run" / "manifest.ocdbt").unlink()
    before = sorted(directory.rglob("*"))
    with pytest.raises(UsageError) as caught:
        training.train(CONFIG, tmp_path, resume=True)
    message = str(caught.value)
    assert message.startswith(f"{directory}/resume/6: cannot be read: ")
    assert message.endswith("; nor can any other of 2")
    assert "\n" not in message
    assert sorted(directory.rglob("*")) == before
    assert rows(directory) == rows(straight)
    assert capsys.readouterr().err == ""


def test_damaged_weights_are_set_aside_and_unfinished_ones_saved_again(straight, tmp_path):
    directory = copied(straight, tmp_path)
    shutil.rmtree(directory / "checkpoints" / "4" / "weights")
    (directory / "checkpoints" / "6").rename(directory / "checkpoints" / "6.orbax-checkpoint-tmp")
    assert training.train(CONFIG, tmp_path, resume=True)
    assert kept(directory, store.WEIGHTS) == ["3", "6"]
    assert (directory / "checkpoints" / "4.aside").is_dir()
    assert_same_run(directory, straight)


def test_changed_rows_and_a_changed_config_are_told(straight, tmp_path, monkeypatch, capsys):
    """A resumed run takes both as they are, and no checkpoint's checksum covers their files. It
    computes no first state."""
    directory, init = copied(straight, tmp_path), RunPrograms.init

    def shapes_alone(step, variables):
        state = init(step, variables)
        assert isinstance(jax.tree.leaves(state)[0], jax.core.Tracer)
        return state

    monkeypatch.setattr(RunPrograms, "init", shapes_alone)
    metrics, config = directory / METRICS_FILE, directory / run_directory.CONFIG_FILE
    for path, old, new in ((metrics, '"games": ', '"games": 1'), (config, ": 40", ": 44")):
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    assert training.train(CONFIG, tmp_path, resume=True)
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        f"{config}: evaluation.final_games was 40 when iteration 6 was saved and is 44 there"
    )
    assert second == f"{metrics}: the rows up to iteration 6 are not what was written"


def test_a_directory_that_is_removed_ends_the_run_in_one_line(tmp_path, monkeypatch):
    directory = tmp_path / DIRECTORY
    break_off(monkeypatch, 2, lambda: shutil.rmtree(directory))
    with pytest.raises(UsageError) as caught:
        training.train(CONFIG, tmp_path, resume=False)
    path = directory / METRICS_FILE
    assert str(caught.value) == f"{path}: was removed while the run wrote to it"
    assert not directory.exists()


def test_without_git_the_revision_is_unknown(tmp_path, monkeypatch):
    ask = provenance.git_revision.__wrapped__
    assert ask(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask(Path(provenance.__file__).parent) is None
