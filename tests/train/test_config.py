"""Configs and their lists of rule sets are read from files, command lines and Python, and come back
from JSON."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from tests.support.learner import tiny
from train import functions
from train.config import (
    CheckpointConfig,
    RunConfig,
    config_from_dict,
    config_to_dict,
    read_config,
)
from train.config.reading import keys_of
from train.config.rule_sets import RuleSet, read_rule_sets
from train.learning.config import LearnerConfig
from wallgo_jax.game.rules import PRESETS, Rules

CONFIGS = Path(__file__).parents[2] / "configs"

OTHER_VALUES = {
    "name": "every key",
    "rules": "hkoi",
    "grid": 8,
    "start_weights": "runs/old",
    "network.blocks": "2R1T",
    "network.width": 16,
    "network.heads": 2,
    "network.norm": "layer",
    "network.value": "wdl",
    "network.destination_head": True,
    "network.planes": "BTRH",
    "network.dtype": "bfloat16",
    "search.kind": "puct",
    "search.engine": "mctx",
    "search.first_play": "minizero",
    "search.first_simulations": 3,
    "search.player_value_scale": 0.75,
    "search.prior_boost": ["stay=2.0", "placement=1"],
    "selfplay.temperature": 0.9,
    "selfplay.setup_prob": 0.375,
    "selfplay.random_opening_prob": 0.25,
    "selfplay.cheap_policy_weight": 0.5,
    "selfplay.policy_surprise_weight": 0.5,
    "selfplay.bootstrap_player": "wjx",
    "replay.memory": "host",
    "learner.optimizer": "sgd",
    "learner.schedule": "steps",
    "learner.lr_drops": [0.5, 0.625],
    "learner.freeze": ["trunk=3"],
    "learner.ema_decay": 0.375,
    "learner.value_mix": 0.5,
    "evaluation.opponents": ["greedy", "net:runs/old"],
    "evaluation.anchors": ["best", "random"],
    "evaluation.sprt": "-5,15",
    "evaluation.games": 14,
    "evaluation.final_games": 16,
    "evaluation.batch": 18,
    "tracking.wandb": "walls",
    "heuristics.ethen.formula": "wjx",
    "heuristics.wjx.formula": "ethen",
}
"""Of keys that hold text or lists, and of numbers that go together."""
# A key that stands alone, without start_weights, functions, which no file may name, and keys whose
# other value stands apart from mctx or from a host's replay.
LEFT_OUT = {
    *("init_from", "search.opponents", "selfplay.opponent", "replay.reanalyse"),
    *functions.KEYS.values(),
}


def _another(value):
    """Another truth value or number."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value / 2


FULL = {
    key.path: OTHER_VALUES[key.path] if key.path in OTHER_VALUES else _another(key.default)
    for key in keys_of(RunConfig())
    if key.path not in LEFT_OUT
}
"""A value by each key that a file may hold; none is the default."""
TEXT = "\n".join(f"{path} = {json.dumps(value)}" for path, value in FULL.items())
FULL_CONFIG = config_from_dict(tomllib.loads(TEXT), where="full")
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


def write(folder: Path, text: str) -> Path:
    """A config file."""
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_is_read(tmp_path):
    keys = {key.path: key for key in keys_of(read_config(write(tmp_path, TEXT)))}
    assert {path: keys[path].value for path in FULL} == FULL
    assert [path for path in FULL if not keys[path].is_changed] == []
    assert keys.keys() - FULL.keys() == LEFT_OUT


def test_empty_file_means_the_defaults(tmp_path):
    assert read_config(write(tmp_path, "")) == RunConfig()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_configs_are_read(path):
    assert read_config(path).name == path.stem


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["--iterations", "9"], "iterations", 9),
        (["--learner.steps", "9"], "learner.steps", 9),
        (["--learner.learning-rate", "1e-4"], "learner.learning_rate", 1e-4),
        (["--network.blocks", '"RT"'], "network.blocks", "RT"),
        (["--network.mover-first=false"], "network.mover_first", False),
        (["--name=x=y"], "name", "x=y"),
        # What TOML reads as a number, a date or a table is text where the key holds text.
        (["--name", "5"], "name", "5"),
        (["--name=2024-01-01"], "name", "2024-01-01"),
        (["--name", "true"], "name", "true"),
        (["--name", '"5"'], "name", "5"),
        (["--tracking.wandb", "{}"], "tracking.wandb", "{}"),
        (["--learner.steps", "1", "--iterations", "2147483647"], "iterations", 2147483647),
        (["--evaluation.opponents", '["greedy", "random"]'], None, ("greedy", "random")),
        (["--rules", "wallzero-empty"], "rules", PRESETS["wallzero-empty"]),
        (["--rules.size", "5"], "rules", Rules(size=5, stones=1, order=(0, 1))),
        (["--seed", "1", "--iterations=2", "--seed", "3"], "seed", 3),
        (["--checkpoint.keep", "7", "--checkpoint.every=8"], "checkpoint", CheckpointConfig(8, 7)),
        # Switches take numbers and truth.
        (["--network.ownership", "0"], "network.ownership", False),
        (["--network.margin", "true"], "network.margin", True),
        # A temperature may be off or stay as it is.
        (["--selfplay.temperature", "0"], "selfplay.temperature", None),
        (["--selfplay.temperature", "0.2"], "selfplay.temperature", 0.2),
        # One entry is a run of one rule set.
        (["--rules", "hkoi=3"], "rule_sets", (RuleSet(PRESETS["hkoi"], 1.0, "hkoi"),)),
    ],
)
def test_overrides(words, path, value):
    found = tiny.config(*words)
    for name in (path or "evaluation.opponents").split("."):
        found = getattr(found, name)
    assert found == value
    assert type(found) is type(value)


def test_override_of_a_table_that_the_file_leaves_out(tmp_path):
    """Its other keys stay those that the table has without the override."""
    path = write(tmp_path, 'name = "a"\n[learner]\nbatch = 64\n')
    plain = read_config(path)
    config = read_config(path, ["--search.simulations", "3", "--learner.warmup", "5"])
    assert config.search == dataclasses.replace(plain.search, simulations=3)
    assert config.search.player_value_scale == RunConfig().search.player_value_scale > 0
    assert config.learner == LearnerConfig(batch=64, warmup=5)
    assert (config.network, config.selfplay) == (RunConfig().network, RunConfig().selfplay)


def test_least_and_largest_values_are_taken():
    words = ("boards=1", "plies=1", "cheap_simulations=1", "full_search_prob=1")
    words += ("random_opening_prob=0", "opening_plies=0", "cheap_policy_weight=0")
    config = read_config(None, [f"--selfplay.{word}" for word in words])
    assert (config.selfplay.boards, config.selfplay.opening_plies) == (1, 0)
    largest = ("opening_plies=1", "random_opening_prob=1", "policy_surprise_weight=1")
    config = read_config(None, [f"--selfplay.{word}" for word in largest])
    assert config.selfplay.random_opening_prob == 1


@pytest.mark.parametrize("config", [RunConfig(), FULL_CONFIG, tiny.config()], ids=lambda c: c.name)
def test_round_trip_through_json(config):
    fields = json.loads(json.dumps(config_to_dict(config)))
    assert config_from_dict(fields, where="here") == config
    # The tables are complete: nothing rests on a default.
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value) and field.name != "rules":
            assert set(fields[field.name]) == {inner.name for inner in dataclasses.fields(value)}


@pytest.mark.parametrize("table", ["network", "search", "selfplay", "learner"])
def test_config_saved_before_a_key_was_there_has_its_default(table):
    plain = RunConfig(**{table: {}})
    fields = config_to_dict(plain)
    for key in fields[table]:
        older = {name: value for name, value in fields[table].items() if name != key}
        assert config_from_dict(fields | {table: older}, where="here") == plain, key


def test_rules_are_one_thing_however_they_are_given():
    """A name or a table, read or passed as a keyword, gives equal rules."""
    table = PRESETS["hkoi"].to_dict()
    for given in ("hkoi", table, PRESETS["hkoi"]):
        config = config_from_dict({"rules": given}, where="here")
        assert config == RunConfig(rules=PRESETS["hkoi"])
        assert config_to_dict(config)["rules"] == "hkoi"
    assert RunConfig(**{"rules": "hkoi"}).rules == PRESETS["hkoi"]
    fields = config_to_dict(tiny.config())
    assert fields["rules"] == tiny.RULES.to_dict()
    assert config_from_dict(fields, where="here").rules == tiny.RULES


def test_quickstart_file_is_the_built_in_run():
    assert read_config(str(CONFIGS / "quickstart.toml")) == RunConfig()


def test_a_file_lists_rule_sets(tmp_path):
    config = read_config(write(tmp_path, LIST))
    assert [each.name for each in config.rule_sets] == ["hkoi", "wallzero-empty", "small"]
    assert [each.weight for each in config.rule_sets] == [1, 2, 0.5]
    assert config.learned[0] == config.rules == PRESETS["hkoi"]
    assert (config.grid_side, config.stones) == (7, 4)
    again = json.loads(json.dumps(config_to_dict(config)))
    assert config_from_dict(again, where="saved") == config


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
