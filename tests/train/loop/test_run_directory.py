"""Whether a run may go on with a config."""

import json
from importlib import resources

import pytest

from tests.support.learner import tiny
from train.config import config_from_dict, config_to_dict
from train.loop import run_directory
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Makes a directory look as if a run of this saved config had a checkpoint."""

    def save(fields):
        meta = {"config": fields, "iteration": 1, "sums": {}}
        (tmp_path / fields["name"]).mkdir(exist_ok=True)
        monkeypatch.setattr(run_directory, "has_checkpoint", lambda directory: True)
        monkeypatch.setattr(run_directory.store_lib, "read_meta", lambda *args: meta)
        return tmp_path / fields["name"]

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


def test_the_config_of_the_first_version_is_that_of_a_run_that_may_go_on(saved):
    """It lacks all newer keys, which are read as what was done before there were any, so it equals
    the saved one. The card of the first weights has it; the checkpoint is made up, and whether one
    of that version can be read is not asked."""
    card = resources.files("train") / "models" / "wallzero-4stone-v1" / "card.json"
    fields = json.loads(card.read_text(encoding="utf-8"))["config"]
    newer = [("network", "destination_head"), ("selfplay", "cheap_noise"), ("search", "engine")]
    assert "start_weights" not in fields
    assert not any(key in fields[table] for table, key in newer)
    config = config_from_dict(fields, where="old")
    run_directory.check_directory(saved(fields), config, resume=True)
    assert config.start_weights == ""
    assert not config.network.destination_head and not config.selfplay.cheap_noise
    assert config.selfplay.opening_plies == config.selfplay.temperature == 0
    assert (config.selfplay.bootstrap_player, config.search.value_scale) == ("greedy", 0.1)
