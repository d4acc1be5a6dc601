"""Configs are read from files and command lines, and come back from JSON."""

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
from train.learning.config import LearnerConfig
from train.network import NetworkConfig
from train.search.config import SearchConfig
from wallgo_jax.game.rules import PRESETS, Rules

CONFIGS = Path(__file__).parents[2] / "configs"

FULL = """
name = "every key"
seed = 11
iterations = 12
rules = "hkoi"
grid = 8
start_weights = "runs/old"
deterministic = true
loops_in_graphs = true

[network]
blocks = "2R1T"
width = 16
heads = 2
mlp_ratio = 1.5
norm = "layer"
value_width = 24
value = "wdl"
ownership = false
margin = true
reply = true
playable = true
destination_head = true
destination_width = 8
destination_rank = 4
destination_path = true
walled_convolutions = 2
stones_close_gates = true
walking_bias = true
planes = "BTRH"
mover_first = false
dtype = "bfloat16"

[search]
simulations = 5
max_considered_actions = 4
player_max_considered_actions = 3
kind = "puct"
engine = "mctx"
value_scale = 0.5
player_value_scale = 0.75
visit_offset = 20
rescale_values = false
least_spread = 0.25
first_play = "minizero"
rounds = true
c_init = 2
c_base = 1000
dirichlet_fraction = 0.5
dirichlet_alpha = 0.3
temperature = 0.75
temperature_plies = 23
first_simulations = 3
prior_boost = ["stay=2.0", "placement=1"]
prior_boost_halflife = 4.0

[selfplay]
boards = 6
plies = 7
full_search_prob = 0.125
cheap_simulations = 2
cheap_policy_weight = 0.5
policy_surprise_weight = 0.5
cheap_noise = true
setup_prob = 0.375
opening_prob = 0.75
opening_plies = 6
random_opening_prob = 0.25
temperature = 0.9
final_temperature = 0.1
temperature_halflife = 11
bootstrap_iterations = 1
bootstrap_player = "wjx"

[replay]
positions = 8
memory = "host"

[learner]
batch = 9
steps = 10
optimizer = "sgd"
momentum = 0.5
learning_rate = 0.5
schedule = "steps"
final_rate = 0.25
lr_drops = [0.5, 0.625]
warmup = 3
weight_decay = 0.125
max_grad_norm = 2
symmetry = false
ema_decay = 0.375
value_mix = 0.5
td_steps = 2
validation_every = 4
freeze = ["trunk=3"]

[learner.weights]
policy = 1.5
value = 0.75
ownership = 0.0
margin = 0.5
reply = 0.25

[evaluation]
every = 0
opponents = ["greedy", "net:runs/old"]
anchors = ["best", "random"]
sprt = "-5,15"
games = 14
final_games = 16
batch = 18
simulations = 19
opening_plies = 20
players_place = true

[checkpoint]
every = 21
keep = 22
keep_best = 23
keep_every = 24

[tracking]
wandb = "walls"

[heuristics.ethen]
formula = "wjx"
sure_own = 0.7
sure_other = -0.6
semi_sure_own = 0.5
semi_sure_other = -0.4
boundary = 3
guess_weight = 0.2
stones_block = true
top_k = 2
temperature = 0.5
scale = 4.0

[heuristics.wjx]
top_k = 3
"""

FULL_CONFIG = config_from_dict(tomllib.loads(FULL), where="full")


def write(folder: Path, text: str) -> Path:
    """A config file."""
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _flat(tables: dict, table: str = "") -> dict:
    """The values of nested tables by path."""
    values = {}
    for name, value in tables.items():
        inner = isinstance(value, dict)
        values |= _flat(value, f"{table}{name}.") if inner else {f"{table}{name}": value}
    return values


def test_every_key_is_read(tmp_path):
    config, written = read_config(write(tmp_path, FULL)), _flat(tomllib.loads(FULL))
    keys = {key.path: key for key in keys_of(config)}
    assert {path: keys[path].value for path in written} == written
    # The text leaves no key at its default, but for one that stands alone, without start_weights,
    # functions, which no file may name, and those whose other value stands apart from mctx.
    assert [path for path in written if not keys[path].is_changed] == []
    left_out = {path for path in keys.keys() - written.keys() if "heuristics.wjx" not in path}
    alone = {"init_from", "search.opponents", "selfplay.opponent"}
    assert left_out == alone | set(functions.KEYS.values())


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


def test_config_saved_before_a_key_was_there_has_its_default():
    plain = RunConfig(network=NetworkConfig(), search=SearchConfig())
    fields = config_to_dict(plain)
    for key in ("destination_head", "destination_width", "destination_rank", "destination_path"):
        del fields["network"][key]
    for key in ("walled_convolutions", "stones_close_gates", "walking_bias"):
        del fields["network"][key]
    for key in ("value_mix", "td_steps"):
        del fields["learner"][key]
    del fields["selfplay"]["cheap_policy_weight"]
    for key in ("value_scale", "player_value_scale", "visit_offset", "rescale_values"):
        del fields["search"][key]
    assert config_from_dict(fields, where="here") == plain


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
