"""Lists of rule sets: what files, the command line and Python may write."""

import json

from tests.support.learner import tiny
from train.config import config_from_dict, config_to_dict, read_config
from train.config.rule_sets import RuleSet, read_rule_sets
from wallgo_jax.game.rules import PRESETS, Rules

FOUR = Rules(size=4, stones=1, order=(0, 1))
LIST = """
name = "mixed"
grid = 7
rules = [
  "hkoi",
  { rules = "wallzero-empty", weight = 2 },
  { rules = { size = 5, stones = 2, order = [0, 1, 0, 1] }, weight = 0.5, name = "small" },
]

[network]
planes = "BTRV"
playable = true
"""


def test_a_file_lists_rule_sets(tmp_path):
    (tmp_path / "mixed.toml").write_text(LIST)
    config = read_config(tmp_path / "mixed.toml")
    assert [each.name for each in config.rule_sets] == ["hkoi", "wallzero-empty", "small"]
    assert [each.weight for each in config.rule_sets] == [1, 2, 0.5]
    assert config.learned[0] == config.rules == PRESETS["hkoi"]
    assert (config.grid_side, config.stones) == (7, 4)
    again = json.loads(json.dumps(config_to_dict(config)))
    assert config_from_dict(again, where="saved") == config


def test_one_entry_is_a_run_of_one_rule_set():
    assert tiny.config("--rules", "hkoi=3") == tiny.config("--rules", "hkoi")
    assert tiny.config("--rules", "hkoi").mix == ()


def test_the_command_line_lists_names_with_weights():
    config = tiny.config("--rules", "hkoi=2,wallzero-empty")
    assert [(each.name, each.weight) for each in config.rule_sets] == [
        ("hkoi", 2),
        ("wallzero-empty", 1),
    ]


def test_equal_names_are_numbered():
    walls = [Rules(size=4, stones=1, order=(0, 1), walls=walls) for walls in (3, 5)]
    assert [each.name for each in read_rule_sets(walls)] == ["4x4", "4x4-2"]


def test_alone_is_a_run_of_one_rule_set():
    config = tiny.config("--rules", "hkoi,wallzero-empty")
    assert config.alone(PRESETS["hkoi"]).rule_sets == (RuleSet(PRESETS["hkoi"], 1.0, "hkoi"),)


def test_alone_is_allowed_where_targets_look_further_than_its_games():
    small = {"rules": {"size": 3, "stones": 1, "order": [0, 1]}}
    words = ["--rules", json.dumps([small, "wallzero-4stone"]), "--network.playable", "true"]
    words += ["--learner.value_mix", "0.5", "--learner.td_steps", "20"]
    config = tiny.config(*words, "--network.planes", "BTRV")
    assert config.learned[0].max_plies < config.learner.td_steps
    for rules in config.learned:
        assert config.alone(rules).learned == (rules,)
