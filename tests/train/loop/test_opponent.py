"""Runs against a frozen opponent: its column, its weights in the run's folder."""

import shutil

import pytest

from tests.support.learner import saved, tiny
from tests.support.learner.commands import command, complaint
from train.loop.start import FOLDER, keep_opponent, load_opponent
from train.runtime.errors import UsageError


@pytest.fixture
def victim(tmp_path):
    return saved.save_run(tmp_path / "victim", seeds={1: 3})


def test_wrong_opponents_end_a_run_in_one_line(victim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, said in (
        ("nobody", "selfplay.opponent: player 'nobody': unknown; known players: "),
        ("greedy", "selfplay.opponent: player 'greedy': has no weights"),
        ("pretrained:wallzero-4stone", "learned wallzero-4stone, asked to play custom rules on 3"),
    ):
        words = ["run", tiny.PATH, "--name", "attack", "--selfplay.opponent", name]
        assert said in complaint(command(*words))
        assert not (tmp_path / "runs" / "attack").exists()


def test_a_run_that_has_lost_its_opponents_weights_does_not_go_on(victim, tmp_path):
    config = tiny.config(f"--selfplay.opponent={victim}@2")
    directory = saved.save_run(tmp_path / config.name, seeds={1: 0}, config=config)
    with pytest.raises(UsageError) as caught:
        load_opponent(config, directory, resume=True)
    assert str(caught.value) == (
        f"{directory / FOLDER}: the weights that the run plays against are gone, and "
        f"'{victim}@2' may have others by now: put the folder back, or start a new run"
    )
    keep_opponent(directory, load_opponent(config, directory, resume=False))
    shutil.rmtree(victim)
    kept = load_opponent(config, directory, resume=True)
    assert kept.trained.source == str(directory / FOLDER)


ATTACK = ("--selfplay.opponent=pretrained:wallzero-4stone",)
