"""Decisions before a run: the stage of each iteration, and whether a run may go on."""

import pytest

from tests.support.learner import tiny
from train.config import config_to_dict
from train.loop import run_directory
from train.loop.selfplay_programs import BOOTSTRAP, Stage, StageKind, stage_at
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS


def test_stages_follow_the_config():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    stages = [stage_at(config, iteration) for iteration in range(6)]
    assert stages[:2] == [BOOTSTRAP, BOOTSTRAP]
    assert {stage.kind for stage in stages[2:]} == {StageKind.SEARCH}
    assert [stage.simulations for stage in stages[2:]] == [4, 8, 8, 8]


def test_the_bootstrap_is_no_search_of_few_simulations():
    """The kind of a stage decides, not its number of simulations."""
    assert BOOTSTRAP != Stage(StageKind.SEARCH, BOOTSTRAP.simulations)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Makes a directory look as if a run of this saved config had a checkpoint."""

    def save(fields):
        meta = {"config": fields, "iteration": 1}
        monkeypatch.setattr(run_directory, "has_checkpoint", lambda directory: True)
        monkeypatch.setattr(run_directory.store_lib, "read_meta", lambda *args: meta)
        return tmp_path

    return save


def test_a_run_goes_on_with_rules_that_mean_the_same(saved):
    config = tiny.config("--rules", "hkoi")
    for rules in ("hkoi", PRESETS["hkoi"].to_dict()):
        directory = saved(config_to_dict(config) | {"rules": rules})
        run_directory.check_directory(directory, config, resume=True)


def test_a_run_does_not_go_on_with_other_rules(saved):
    directory = saved(config_to_dict(tiny.config("--rules", "hkoi")))
    other = tiny.config("--rules", "wallzero-empty")
    with pytest.raises(UsageError, match=r"cannot resume: rules\.tie was \['region'"):
        run_directory.check_directory(directory, other, resume=True)
