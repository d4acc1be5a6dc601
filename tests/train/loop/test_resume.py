"""A run that was stopped and resumed ends exactly as one that was not; whether it may go on."""

import datetime
import functools
import json
import shutil
import signal
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.support.learner import tiny
from tests.support.learner.checkpoints import assert_same_bits
from tests.support.learner.commands import read_rows, read_scalars, untimed
from tests.support.learner.loop import Loop
from tests.support.refusals import refusal
from train.checkpoints import store
from train.config import RunConfig, config_from_dict, config_to_dict
from train.loop import iterations, run_directory, training
from train.metrics.rows import METRICS_FILE
from train.runtime import interrupts, provenance
from wallgo_jax.env import VERSION
from wallgo_jax.game.rules import PRESETS

CONFIG = tiny.config()
DIRECTORY = CONFIG.name


class Killed(BaseException):
    """Stands in for a kill of the process."""


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def break_off(monkeypatch, during: int, act=ctrl_c) -> None:
    """Call `act` at the end of an iteration, before its row is written; once."""
    check = iterations.check_finite

    def wrapped(steps, learner, iteration):
        check(steps, learner, iteration)
        if iteration == during:
            monkeypatch.setattr(iterations, "check_finite", check)
            act()

    monkeypatch.setattr(iterations, "check_finite", wrapped)


def rows(directory: Path) -> list[dict[str, Any]]:
    """The metrics, all but the wall clock's."""
    return [untimed(row) for row in read_rows(directory)]


@functools.cache
def like(config: RunConfig):
    """Shapes of a run's state."""
    return Loop(config).like


def assert_same_run(directory: Path, expected: Path, config: RunConfig = CONFIG) -> None:
    """Weights, optimizer, replay, boards, metrics, evaluation and game are the same, and the same
    checkpoints are kept."""
    found, wanted = (store.read_run(path, like(config)) for path in (directory, expected))
    assert int(found.iterations) == config.iterations
    assert_same_bits(found, wanted)
    weights = store.read_weights(directory, like(config).learner.variables)
    assert_same_bits(weights, found.learner.variables)
    assert rows(directory) == rows(expected)
    for name in (run_directory.RESULT_FILE, run_directory.GAME_FILE, run_directory.CONFIG_FILE):
        assert (directory / name).read_text() == (expected / name).read_text()


def kept(directory: Path, kind: str) -> list[str]:
    """The checkpoints by name, all but those set aside."""
    return sorted(p.name for p in (directory / kind).iterdir() if ".aside" not in p.name)


def test_run_learns_and_is_complete(tiny_run):
    """The run that the others are compared with is not empty."""
    found = rows(tiny_run)
    assert [row["iteration"] for row in found] == list(range(1, CONFIG.iterations + 1))
    assert found[-1]["replay_positions"] > 0
    losses = [row["policy_loss"] for row in found if "policy_loss" in row]
    assert len(set(losses)) == len(losses) >= 4
    final = store.read_run(tiny_run, like(CONFIG))
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


def test_stopped_twice_by_signals(tiny_run, tmp_path, monkeypatch, capsys):
    """Neither 1 nor 5 is due for a checkpoint: the signal itself makes it."""
    directory = tmp_path / DIRECTORY
    for done, number in ((1, signal.SIGTERM), (5, signal.SIGINT)):
        break_off(monkeypatch, done - 1, functools.partial(signal.raise_signal, number))
        assert not training.train(CONFIG, tmp_path, resume=done > 1)
        told = (
            f"saved after iteration {done}; to continue: python -m train run --resume {directory}"
        )
        assert told in capsys.readouterr().out.splitlines()
        assert rows(directory) == rows(tiny_run)[:done]
        assert store.newest_iteration(directory, store.RESUME) == done
        assert not (directory / run_directory.RESULT_FILE).exists()
    assert training.train(CONFIG, tmp_path, resume=True)
    assert_same_run(directory, tiny_run)
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


def test_killed_between_checkpoints(tiny_run, tmp_path, monkeypatch):
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
    assert_same_run(directory, tiny_run)


def test_killed_before_anything_is_saved(tiny_run, tmp_path, monkeypatch):
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
    assert_same_run(directory, tiny_run)
    assert kept(directory, store.WEIGHTS) == ["3", "4", "6"]
    assert kept(directory, store.RESUME) == ["4", "6"]


def test_second_interrupt_drops_the_iteration(tmp_path, monkeypatch):
    monkeypatch.setattr(interrupts, "TOGETHER", 0.0)
    break_off(monkeypatch, 2, lambda: [ctrl_c(), ctrl_c()])
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        training.train(CONFIG, tmp_path, resume=False)
    assert signal.getsignal(signal.SIGINT) is before
    assert store.newest_iteration(tmp_path / DIRECTORY, store.RESUME) == 2


def copied(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / DIRECTORY))


def test_damaged_checkpoint_costs_two_iterations(tiny_run, tmp_path, capsys):
    directory = copied(tiny_run, tmp_path)
    (directory / "resume" / "6" / "run" / "manifest.ocdbt").unlink()
    assert training.train(CONFIG, tmp_path, resume=True)
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(f"{directory}/resume/6: cannot be read: ")
    assert line.endswith("; taking iteration 4")
    assert "iteration 5: " in said.out
    assert "iteration 4: " not in said.out
    assert_same_run(directory, tiny_run)
    for kind in (store.WEIGHTS, store.RESUME):
        assert kept(directory, kind) == kept(tiny_run, kind)
        assert (directory / kind / "6.aside").is_dir()
    found, wanted = read_scalars(directory), read_scalars(tiny_run)
    for name in wanted:
        if not name.startswith("speed/"):
            assert found[name] == wanted[name], name
    # Nothing was in the way: the next damaged one finds a free name.
    (directory / "resume" / "6" / "meta" / "metadata").unlink()
    assert training.train(CONFIG, tmp_path, resume=True)
    assert (directory / "resume" / "6.aside1").is_dir()
    assert_same_run(directory, tiny_run)


def test_nothing_to_take_is_refused_and_left_alone(tiny_run, tmp_path, capsys):
    directory = copied(tiny_run, tmp_path)
    for iteration in ("4", "6"):
        (directory / "resume" / iteration / "run" / "manifest.ocdbt").unlink()
    before = sorted(directory.rglob("*"))
    message = refusal(training.train, CONFIG, tmp_path, resume=True)
    assert message.startswith(f"{directory}/resume/6: cannot be read: ")
    assert message.endswith("; nor can any other of 2")
    assert sorted(directory.rglob("*")) == before
    assert rows(directory) == rows(tiny_run)
    assert capsys.readouterr().err == ""


def test_damaged_weights_are_set_aside_and_unfinished_ones_saved_again(tiny_run, tmp_path):
    directory = copied(tiny_run, tmp_path)
    shutil.rmtree(directory / "checkpoints" / "4" / "weights")
    (directory / "checkpoints" / "6").rename(directory / "checkpoints" / "6.orbax-checkpoint-tmp")
    assert training.train(CONFIG, tmp_path, resume=True)
    assert kept(directory, store.WEIGHTS) == ["3", "6"]
    assert (directory / "checkpoints" / "4.aside").is_dir()
    assert_same_run(directory, tiny_run)


def test_changed_rows_and_a_changed_config_are_told(tiny_run, tmp_path, monkeypatch, capsys):
    """A resumed run takes both as they are, and no checkpoint's checksum covers their files. It
    computes no first state."""
    directory = copied(tiny_run, tmp_path)

    def no_state(*arguments):
        raise AssertionError("a first state is computed")

    monkeypatch.setattr(iterations, "init", no_state)
    metrics, config = directory / METRICS_FILE, directory / run_directory.CONFIG_FILE
    for path, old, new in ((metrics, '"games": ', '"games": 1'), (config, ": 40", ": 44")):
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    assert training.train(CONFIG, tmp_path, resume=True)
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        f"{config}: evaluation.final_games was 40 when iteration 6 was saved and is 44 there"
    )
    assert second == f"{metrics}: the rows up to iteration 6 were changed after they were written"


def test_a_directory_that_is_removed_ends_the_run_in_one_line(tmp_path, monkeypatch):
    directory = tmp_path / DIRECTORY
    break_off(monkeypatch, 2, lambda: shutil.rmtree(directory))
    message = refusal(training.train, CONFIG, tmp_path, resume=False)
    assert message == f"{directory / METRICS_FILE}: was removed while the run wrote to it"
    assert not directory.exists()


def test_without_git_the_revision_is_unknown(tmp_path, monkeypatch):
    ask = provenance.git_revision.__wrapped__
    assert ask(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask(Path(provenance.__file__).parent) is None


MIX = [
    {"rules": {"size": 3, "stones": 1, "order": [0, 1]}},
    {"rules": {"size": 4, "stones": 2, "order": [0, 1, 0, 1]}, "weight": 2, "name": "small"},
]
MIXED = (
    *("--rules", json.dumps(MIX), "--network.planes", "BTRV", "--network.playable", "true"),
    *("--selfplay.plies", "24", "--replay.positions", "256", "--iterations", "4"),
)


@pytest.mark.slow
def test_a_mixed_run_from_start_to_matches(tmp_path, monkeypatch, capsys):
    """It learns, is matched on each rule set and goes on exactly."""
    config = tiny.config(*MIXED)
    assert training.train(config, tmp_path / "whole", resume=False)
    said = capsys.readouterr().out
    assert "tiny on 3x3" in said and "tiny on small" in said
    found = rows(tmp_path / "whole" / "tiny")
    assert set(found[-1]["by_rules"]) == {"3x3", "small"}
    assert sum(row["by_rules"]["small"]["games"] for row in found) > 0
    matched = [row for row in found if "matches_by_rules" in row]
    assert matched and set(matched[0]["matches_by_rules"]) == {"3x3", "small"}
    break_off(monkeypatch, 1)
    assert not training.train(config, tmp_path / "parts", resume=False)
    assert training.train(config, tmp_path / "parts", resume=True)
    assert rows(tmp_path / "parts" / "tiny") == found


@pytest.fixture
def saved_run(tmp_path, monkeypatch):
    """Makes a directory look as if a run of this saved config had a checkpoint."""

    def save(fields):
        meta = {"config": fields, "iteration": 1, "sums": {}}
        (tmp_path / fields["name"]).mkdir(exist_ok=True)
        monkeypatch.setattr(run_directory, "has_checkpoint", lambda directory: True)
        monkeypatch.setattr(run_directory.store_lib, "read_meta", lambda *args: meta)
        return tmp_path / fields["name"]

    return save


def test_a_run_goes_on_with_rules_that_mean_the_same(saved_run):
    config = tiny.config("--rules", "hkoi")
    for rules in ("hkoi", PRESETS["hkoi"].to_dict()):
        directory = saved_run(config_to_dict(config) | {"rules": rules})
        run_directory.check_directory(directory, config, resume=True)


def test_a_run_does_not_go_on_with_other_rules(saved_run):
    directory = saved_run(config_to_dict(tiny.config("--rules", "hkoi")))
    other = tiny.config("--rules", "wallzero-empty")
    message = refusal(run_directory.check_directory, directory, other, resume=True)
    assert "cannot resume: rules.tie was ['region'" in message


def test_the_config_of_the_first_version_is_that_of_a_run_that_may_go_on(saved_run):
    """It lacks all newer keys, which are read as what was done before there were any, so it equals
    the saved one. The card of the first weights has it; the checkpoint is made up, and whether one
    of that version can be read is not asked."""
    card = resources.files("train") / "models" / "wallzero-4stone-v1" / "card.json"
    fields = json.loads(card.read_text(encoding="utf-8"))["config"]
    newer = [("network", "destination_head"), ("selfplay", "cheap_noise"), ("search", "engine")]
    assert "start_weights" not in fields
    assert not any(key in fields[table] for table, key in newer)
    config = config_from_dict(fields, where="old")
    run_directory.check_directory(saved_run(fields), config, resume=True)
    assert config.start_weights == ""
    assert not config.network.destination_head and not config.selfplay.cheap_noise
    assert (config.selfplay.opening_plies, config.selfplay.temperature) == (0, None)
    assert (config.selfplay.bootstrap_player, config.search.value_scale) == ("greedy", 0.1)
