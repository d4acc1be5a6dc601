"""Decisions before a run: the stage of each iteration, and whether a run may go on."""

import jax
import pytest

from tests.support.learner import tiny
from train.config import config_to_dict
from train.loop import run_directory
from train.loop.replay_programs import FinishedPlies, steps_due
from train.loop.selfplay_programs import BOOTSTRAP, Stage, StageKind, stage_at
from train.loop.training import run_iteration
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
        meta = {"config": fields, "iteration": 1, "sums": {}}
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


def test_a_run_of_an_older_replay_is_refused_in_a_line(saved, monkeypatch):
    config = tiny.config()
    directory = saved(config_to_dict(config))
    meta = run_directory.store_lib.read_meta(directory, "resume")
    older = {"sums": {"replay_state.written": 0, "replay_state.ready": 0}}
    monkeypatch.setattr(run_directory.store_lib, "read_meta", lambda *args: meta | older)
    with pytest.raises(UsageError, match=r"cannot resume: an older version made it, .* still play"):
        run_directory.check_directory(directory, config, resume=True)


@pytest.mark.parametrize(
    ("every", "least", "expected"),
    [(0, 0, 0), (5, 0, 0), (1, 1, 1), (31, 10, 1), (64, 30, 4), (128, 60, 8), (900, 400, 8)],
)
def test_few_finished_plies_make_few_steps(every, least, expected):
    """Eight steps for the 128 plies of an iteration; none while a device has no finished game."""
    config = tiny.config("--selfplay.boards=16", "--learner.steps=8")
    assert steps_due(config, FinishedPlies(every, least)) == expected


def test_the_learning_rate_goes_by_steps_taken():
    """Iterations that take no step or few of them do not move the schedule."""
    config = tiny.config("--learner.steps=8", "--learner.warmup=40", "--learner.optimizer=sgd")
    programs = tiny.shared_programs(config)
    state, taken = programs.init(), 0
    for iteration in range(3):
        state, row = run_iteration(config, programs, state, iteration)
        taken += row["steps"]
        assert int(state.learner.step) == taken
        counts = [
            int(x)
            for path, x in jax.tree_util.tree_leaves_with_path(state.learner.optimizer)
            if "count" in jax.tree_util.keystr(path)
        ]
        assert set(counts) == {taken}
    assert 0 < taken < 3 * 8
