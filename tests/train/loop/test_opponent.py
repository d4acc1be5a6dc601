"""Runs against a frozen opponent: metrics, exact resume without the opponent's own folder."""

import shutil
import signal

import jax
import numpy as np
import pytest

from tests.support.learner import saved, tiny
from tests.support.learner.commands import command, complaint, read_rows, untimed
from train.checkpoints import store
from train.loop import training
from train.loop.opponent import FOLDER, keep_opponent, opponent_of
from train.programs.assembly import make_programs
from train.registry import load_network
from train.runtime.errors import UsageError

WORDS = ("--network.planes=BT", "--network.ownership=false", "--learner.value_mix=0.5")


@pytest.fixture
def victim(tmp_path):
    return saved.save_run(tmp_path / "victim", seeds={1: 3})


@pytest.mark.slow
def test_a_stopped_run_ends_as_one_that_was_not(victim, tmp_path, monkeypatch):
    """The opponent has other planes and heads than the learner and is gone when the run goes on."""
    config = tiny.config(f"--selfplay.opponent={victim}@2", *WORDS)
    assert training.train(config, tmp_path / "straight", resume=False)
    run_iteration = training.run_iteration

    def stop_in_the_middle(config, programs, state, iteration):
        if iteration == 2:
            signal.raise_signal(signal.SIGINT)
        return run_iteration(config, programs, state, iteration)

    with monkeypatch.context() as patch:
        patch.setattr(training, "run_iteration", stop_in_the_middle)
        assert not training.train(config, tmp_path / "stopped", resume=False)
    shutil.rmtree(victim)
    assert training.train(config, tmp_path / "stopped", resume=True)
    one, other = (tmp_path / name / config.name for name in ("straight", "stopped"))
    opponent = training.opponent_of(config, other, resume=True)
    like = make_programs(config, opponent=opponent).init()
    found, wanted = (jax.tree.leaves(store.read_run(path, like)) for path in (one, other))
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    rows = [untimed(row) for row in read_rows(one)]
    assert rows == [untimed(row) for row in read_rows(other)]
    sides = ("learner_win_rate_red", "learner_win_rate_blue")
    assert all(row[side] is not None for row in rows[1:] for side in sides)
    kept = load_network(str(other / FOLDER))
    assert kept.config.network.planes == "B"


def test_wrong_opponents_end_a_run_in_one_line(victim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, said in (
        ("nobody", "selfplay.opponent: player 'nobody': unknown; known players: "),
        ("greedy", "selfplay.opponent: player 'greedy': has no weights"),
        ("pretrained:wallzero-4stone", "learned wallzero-4stone, the run plays custom rules on 3"),
    ):
        words = ["run", tiny.PATH, "--name", "attack", "--selfplay.opponent", name]
        assert said in complaint(command(*words))
        assert not (tmp_path / "runs" / "attack").exists()


def test_a_run_that_has_lost_its_opponents_weights_does_not_go_on(victim, tmp_path):
    config = tiny.config(f"--selfplay.opponent={victim}@2")
    directory = saved.save_run(tmp_path / config.name, seeds={1: 0}, config=config)
    with pytest.raises(UsageError) as caught:
        opponent_of(config, directory, resume=True)
    assert str(caught.value) == (
        f"{directory / FOLDER}: the weights that the run plays against are gone, and "
        f"'{victim}@2' may have others by now: put the folder back, or start a new run"
    )
    keep_opponent(directory, opponent_of(config, directory, resume=False))
    shutil.rmtree(victim)
    kept = opponent_of(config, directory, resume=True)
    assert kept.trained.source == str(directory / FOLDER)


def test_a_run_without_an_opponent_has_no_column_of_it():
    plain, attack = (training._columns(tiny.config(*words)) for words in ((), ATTACK))
    assert [c.heading for c in attack if c not in plain] == ["learner wins"]


ATTACK = ("--selfplay.opponent=pretrained:wallzero-4stone",)
