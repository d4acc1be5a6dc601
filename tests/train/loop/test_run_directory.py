"""Whether a run may go on with a config."""

import pytest

from tests.support.learner import tiny
from train.config import config_to_dict
from train.loop import run_directory
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS


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
