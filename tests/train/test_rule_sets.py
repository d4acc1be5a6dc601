"""Lists of rule sets: what files, the command line and Python may write, and what is refused."""

import json

import pytest

from tests.support.learner import tiny
from train.config import config_from_dict, config_to_dict, read_config
from train.config.rule_sets import RuleSet, read_rule_sets
from train.runtime.errors import UsageError
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rules", "[]"], "rules: the list is empty"),
        (["--rules", "hkoi,hkio"], "rules: entry 2: unknown preset 'hkio'; did you mean hkoi?"),
        (["--rules", "hkoi=0,wallzero-empty"], "rules: entry 1: weight is 0.0, not from 0.001"),
        (["--rules", "hkoi=1e308,wallzero-empty"], "entry 1: weight is 1e+308, not from 0.001 to"),
        (
            ["--rules", f'[{{"rules": "hkoi", "weight": 1{"0" * 400}}}, "wallzero-empty"]'],
            "entry 1: weight is 10000000000000000000, not from 0.001 to 1,000,000",
        ),
        (["--rules", "[" * 20_000], "rules: not JSON: "),
        (["--rules", "hkoi,"], "rules: entry 2 of 'hkoi,' is empty"),
        (["--rules", "hkoi=a,wallzero-empty"], "'a' is not a weight above 0"),
        (["--rules", "hkoi,hkoi=2"], "entry 2: has the rules of hkoi again"),
        (["--rules", "hkoi,playwallgo-3p"], "entry 2: is for 3 players, hkoi for 2"),
        (
            ["--rules", '["hkoi", {"rules": "wallzero-empty", "share": 2}]'],
            "entry 2: unknown key 'share'; known keys: rules, weight, name",
        ),
        (
            ["--rules", "hkoi,wallzero-empty", "--grid", "6"],
            "grid 6 is smaller than the 7x7 board of hkoi",
        ),
        (
            ["--rules", "hkoi,wallzero-empty", "--grid", "8"],
            "network.playable must be true: the board of hkoi is smaller than the grid of 8",
        ),
        (
            ["--rules", "hkoi,wallzero-empty", "--selfplay.boards", "1"],
            "selfplay.boards (1) must be at least 2",
        ),
        (["--mix", "[]"], "unknown key mix; known keys: name, seed"),
    ],
)
def test_wrong_lists_are_refused_in_one_line(words, said):
    with pytest.raises(UsageError) as caught:
        tiny.config(*words)
    assert said in str(caught.value) and "\n" not in str(caught.value)


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
