"""Configs: what is read from files and command lines, and what is said of wrong ones."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.support import tiny
from train.config import (
    CheckpointConfig,
    EvaluationConfig,
    RunConfig,
    config_from_dict,
    config_to_dict,
    read_config,
)
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig, LossWeights
from train.network import NetworkConfig
from train.players.config import HeuristicConfig, HeuristicsConfig
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from wallgo_jax.game.rules import PRESETS, Rules

CONFIGS = Path(__file__).parents[2] / "configs"

FULL = """
name = "every key"
seed = 11
iterations = 12
rules = "hkoi"

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
planes = "BTRH"
mover_first = false
dtype = "bfloat16"

[search]
simulations = 5
max_considered_actions = 4
kind = "puct"
engine = "mctx"
c_init = 2
c_base = 1000
dirichlet_fraction = 0.5
dirichlet_alpha = 0.3
temperature = 0.75
temperature_plies = 23
first_simulations = 3

[selfplay]
boards = 6
plies = 7
full_search_prob = 0.125
cheap_simulations = 2
policy_surprise_weight = 0.5
bootstrap_iterations = 1

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

[checkpoint]
every = 21
keep = 22
keep_best = 23
keep_every = 24

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

FULL_CONFIG = RunConfig(
    name="every key",
    seed=11,
    iterations=12,
    rules=PRESETS["hkoi"],
    network=NetworkConfig(
        "2R1T", 16, 2, 1.5, "layer", 24, "wdl", False, True, True, "BTRH", False, "bfloat16"
    ),
    search=SearchConfig(5, 4, "puct", "mctx", 2.0, 1000.0, 0.5, 0.3, 0.75, 23, 3),
    selfplay=SelfPlayConfig(6, 7, 0.125, 2, 0.5, 1),
    replay=ReplayConfig(8, "host"),
    learner=LearnerConfig(
        9,
        10,
        "sgd",
        0.5,
        0.5,
        "steps",
        0.25,
        (0.5, 0.625),
        3,
        0.125,
        2.0,
        False,
        0.375,
        LossWeights(1.5, 0.75, 0.0, 0.5, 0.25),
    ),
    evaluation=EvaluationConfig(
        0, ("greedy", "net:runs/old"), ("best", "random"), 14, "-5,15", 16, 18, 19, 20
    ),
    checkpoint=CheckpointConfig(21, 22, 23, 24),
    heuristics=HeuristicsConfig(
        ethen=HeuristicConfig("wjx", 0.7, -0.6, 0.5, -0.4, 3, 0.2, True, 2, 0.5, 4.0),
        wjx=HeuristicConfig("wjx", top_k=3),
    ),
)


def write(folder: Path, text: str) -> Path:
    """A config file."""
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path, *overrides: str) -> str:
    """What is said of a wrong config, in one line."""
    with pytest.raises(UsageError) as caught:
        read_config(path, overrides)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def test_every_key_is_read(tmp_path):
    config = read_config(write(tmp_path, FULL))
    assert config == FULL_CONFIG
    assert config.rules == PRESETS["hkoi"]
    # The text above leaves no key at its default.
    for field in dataclasses.fields(config):
        value, default = getattr(config, field.name), getattr(RunConfig(), field.name)
        if not dataclasses.is_dataclass(value) or field.name == "rules":
            assert value != default
            continue
        for inner in dataclasses.fields(value):
            assert getattr(value, inner.name) != getattr(default, inner.name)


def test_empty_file_means_the_defaults(tmp_path):
    assert read_config(write(tmp_path, "")) == RunConfig()


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_configs_are_read(path):
    assert read_config(path).name == path.stem


def test_rules_as_a_table():
    config = tiny.config()
    assert config.rules == Rules(size=3, stones=1, order=(0, 1))
    table = (
        "{size = 4, stones = 1, start = [[0, 0, 0], [3, 3, 1]], order = [], walls = 5, tie = []}"
    )
    changed = tiny.config("--rules", table)
    start = ((0, 0, 0), (3, 3, 1))
    assert changed.rules == Rules(size=4, stones=1, start=start, order=(), walls=5, tie=())


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["--iterations", "9"], "iterations", 9),
        (["--iterations=9"], "iterations", 9),
        (["--learner.steps", "9"], "learner.steps", 9),
        (["--learner.steps=9"], "learner.steps", 9),
        (["--learner.learning-rate", "1e-4"], "learner.learning_rate", 1e-4),
        (["--learner.learning_rate=2"], "learner.learning_rate", 2.0),
        (["--network.blocks", "2R1T"], "network.blocks", "2R1T"),
        (["--network.blocks", '"RT"'], "network.blocks", "RT"),
        (["--network.mover-first=false"], "network.mover_first", False),
        (["--name", "a-b_c"], "name", "a-b_c"),
        (["--name=x=y"], "name", "x=y"),
        (["--evaluation.opponents", '["greedy", "random"]'], None, ("greedy", "random")),
        (["--evaluation.final-games", "50"], "evaluation.final_games", 50),
        (["--rules", "wallzero-empty"], "rules", PRESETS["wallzero-empty"]),
        (["--rules.size", "5"], "rules", Rules(size=5, stones=1, order=(0, 1))),
        (["--rules.stay-needs-room", "true"], "rules.stay_needs_room", True),
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
    config = read_config(write(tmp_path, 'name = "a"'), ["--search.simulations", "3"])
    assert config == RunConfig(name="a", search=SearchConfig(simulations=3))


def test_override_changes_nothing_else():
    changed = tiny.config("--learner.steps", "9")
    learner = dataclasses.replace(tiny.config().learner, steps=9)
    assert changed == dataclasses.replace(tiny.config(), learner=learner)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # Unknown keys, with a hint where one is near.
        (["--iteration", "1"], "unknown key iteration; did you mean iterations? Known keys: name,"),
        (["--foo", "1"], "unknown key foo; known keys: name, seed, iterations, rules, network,"),
        (["--learnr.steps", "1"], "unknown key learnr; did you mean learner?"),
        (["--learner.stpes", "1"], "unknown key learner.stpes; did you mean learner.steps? Known"),
        (["--learner.q", "1"], "unknown key learner.q; known keys: batch, steps, optimizer,"),
        (["--learner.str", "1"], "unknown key learner.str; "),
        (["--seed", "x", "--learner.q", "1"], "unknown key learner.q; known keys: batch,"),
        (
            ["--heuristics.wjx.scal", "1"],
            "unknown key heuristics.wjx.scal; did you mean heuristics.",
        ),
        (["--rules.sise", "3"], "unknown key rules.sise; did you mean rules.size? Known keys: "),
        # Words that are no options.
        (["extra"], "'extra' is not an option; write --some.key value"),
        (["--seed", "1", "2"], "'2' is not an option"),
        (["--"], "'--' is not an option"),
        (["-s", "1"], "'-s' is not an option"),
        (["--seed"], "--seed has no value"),
        (["--iterations.x", "1"], "--iterations.x: iterations is not a table"),
        # Wrong types.
        (["--iterations", "many"], "iterations: Input should be a valid integer"),
        (["--iterations", "many"], "(got 'many')"),
        (["--iterations", "2.5"], "iterations: Input should be a valid integer"),
        (["--name", "5"], "name: Input should be a valid string (got 5)"),
        (["--learner", "5"], "learner: Input should be a dictionary"),
        (["--learner.learning_rate", "fast"], "learner.learning_rate: Input should be a valid num"),
        (["--network.mover_first", "perhaps"], "network.mover_first: Input should be a valid bool"),
        (["--evaluation.opponents", "random"], "evaluation.opponents: Input should be a valid tup"),
        (["--evaluation.opponents", '["random", 3]'], "evaluation.opponents.1: Input should be a"),
        # Out of range.
        (["--iterations", "0"], "iterations must be at least 1"),
        (["--seed", "-1"], "seed must be from 0 to 2147483647"),
        (["--seed", "2147483648"], "seed must be from 0 to 2147483647"),
        (["--name", ""], "name '' must be a plain directory name"),
        (["--name", "a/b"], "name 'a/b' must be a plain directory name"),
        (["--name", ".."], "name '..' must be a plain directory name"),
        (["--name", ".hidden"], "name '.hidden' must be a plain directory name"),
        (["--network.blocks", "RXT"], "network: blocks: 'RXT': 'X' at place 2"),
        (["--network.width", "0"], "network: width, heads, value_width and mlp_ratio must be"),
        (["--network.blocks", "T", "--network.width", "6"], "width 6 is not a multiple of heads 4"),
        (["--network.dtype", "float16"], "network: dtype 'float16' is not one of auto, float32"),
        (["--network.planes", "BR"], "planes: 'BR' is not one of B, BT, BTR, BTRH"),
        (
            ["--search.simulations", "0"],
            "search: simulations and max_considered_actions must be at least 1",
        ),
        (["--search.kind", "mcts"], "search: kind 'mcts' is not one of gumbel, puct"),
        (["--search.engine", "fast"], "search: engine 'fast' is not one of native, mctx"),
        (["--search.c_base", "0"], "search: c_init must be a number from 0 on, c_base a positive"),
        (["--search.dirichlet_fraction", "2"], "search: dirichlet_fraction must be from 0 to 1"),
        (["--search.dirichlet_alpha", "0"], "search: dirichlet_alpha must be from 0.001 to 1000"),
        (["--search.temperature", "-1"], "search: temperature must be 0 or from 0.01 to 100"),
        (["--search.temperature", "nan"], "search: temperature must be 0 or from 0.01 to 100"),
        (["--search.temperature_plies", "-1"], "search: temperature_plies must not be negative"),
        (["--search.first_simulations", "3"], "first_simulations must be from 0 to simulations"),
        (
            ["--selfplay.full_search_prob", "0"],
            "selfplay: full_search_prob must be above 0, at most 1",
        ),
        (["--selfplay.cheap_simulations", "0"], "cheap_simulations must be at least 1"),
        (
            ["--selfplay.policy_surprise_weight", "1.5"],
            "selfplay: policy_surprise_weight must be from 0 to 1",
        ),
        (["--selfplay.plies", "0"], "selfplay: boards and plies must be at least 1"),
        (["--replay.positions", "0"], "replay: positions must be at least 1"),
        (["--learner.batch", "0"], "learner: batch and steps must be at least 1"),
        (
            ["--learner.learning_rate", "0"],
            "learner: learning_rate and max_grad_norm must be positive",
        ),
        (["--learner.weight_decay", "-1"], "weight_decay not negative"),
        (["--learner.weights.value", "-1"], "value must be a number from 0 on"),
        (["--learner.weights.valu", "1"], "did you mean learner.weights.value?"),
        (["--network.norm", "group"], "network: norm 'group' is not one of batch, layer, none"),
        (["--network.value", "q"], "network: value 'q' is not one of scalar, wdl"),
        (["--evaluation.games", "5"], "evaluation: games, final_games and batch must be even"),
        (["--evaluation.batch", "0"], "evaluation: games, final_games and batch must be even"),
        (["--evaluation.every", "-1"], "evaluation: every and opening_plies must not be negative"),
        (["--checkpoint.keep", "0"], "checkpoint: every and keep must be at least 1"),
        (["--checkpoint.keep_best", "-1"], "keep_best and keep_every must not be negative"),
        (["--checkpoint.keep-every", "-1"], "keep_best and keep_every must not be negative"),
        # Rules.
        (["--rules", "wallzero"], "rules: unknown preset 'wallzero'; known presets: wallzero-4"),
        (["--rules", "3"], "rules: must be the name of a preset or a table of rules (got 3)"),
        (["--rules.size", "2"], "rules: size is 2, not a whole number from 3 to 9"),
        (["--rules.size", "big"], "rules.size: Input should be a valid integer"),
        (["--rules.order", "[0, 0]"], "rules: start and order give player 0 2 stones, not 1"),
        (["--rules.order", "5"], "rules.order: Input should be a valid tuple (got 5)"),
        (["--rules.tie", '["coin"]'], "rules: tie has 'coin', not one of region, mover_loses"),
        (
            ["--rules", "playwallgo-3p"],
            "evaluation.opponents: matches are between two players; for",
        ),
        (
            ["--rules.players", "3", "--rules.order", "[0, 1, 2]"],
            "for rules of 3 players it must be",
        ),
    ],
)
def test_wrong_overrides(words, expected):
    assert expected in complaint(tiny.PATH, *words)


def test_rules_are_complained_of_once():
    message = complaint(tiny.PATH, "--rules.size", "2")
    assert message == f"config {tiny.PATH}: rules: size is 2, not a whole number from 3 to 9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = \nseed = 1", "Invalid value (at line 1, column 8)"),
        ("seed = 1\nseed = 2", "Cannot overwrite a value"),
        ("[learner\n", "line 1"),
        ("learner = 3", "learner: Input should be a dictionary"),
        ('[learner]\nsteps = "two\\nlines"', "learner.steps: Input should be a valid integer"),
        ('"two\\nlines" = 3', "unknown key two lines; known keys: "),
        ('name = "two\\nlines"', "name 'two\\nlines' must be a plain directory name"),
        ("[rules]\nstart = [[0, 0, 0], [1, 1]]", "rules.start.1"),
        (
            "[rules]\nplayers = 4\nstones = 4\nsize = 3",
            "rules: 4 players with 4 stones each do not",
        ),
        ("[[learner]]\nsteps = 1", "learner: Input should be a dictionary"),
        ("[network.extra]\na = 1", "unknown key network.extra"),
    ],
)
def test_wrong_files(tmp_path, text, expected):
    path = write(tmp_path, text)
    message = complaint(path)
    assert message.startswith(f"config {path}: ")
    assert expected in message


def test_unreadable_files(tmp_path):
    missing = tmp_path / "missing.toml"
    assert complaint(missing) == f"config {missing}: no such file"
    assert "directory" in complaint(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "utf-8" in complaint(binary)


@pytest.mark.parametrize("config", [RunConfig(), FULL_CONFIG, tiny.config()], ids=lambda c: c.name)
def test_round_trip_through_json(config):
    fields = json.loads(json.dumps(config_to_dict(config)))
    assert config_from_dict(fields, where="here") == config
    # The tables are complete: nothing rests on a default.
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value) and field.name != "rules":
            assert set(fields[field.name]) == {inner.name for inner in dataclasses.fields(value)}


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


def test_complaint_opens_with_where():
    with pytest.raises(UsageError, match=r"^over there: unknown key sed; did you mean seed\?"):
        config_from_dict({"sed": 1}, where="over there")
