"""Wrong configs are refused in one line: a table of overrides and files, a word each."""

import shlex
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.refusals import refusal
from train.config import RunConfig, config_from_dict, read_config, read_saved_config

TRIO = "--rules.players 3 --rules.order '[0, 1, 2]' --learner.value_mix 0.5"
MIXED = "--rules hkoi,wallzero-empty"

# Overrides of the tiny run, and a word of the complaint; tests of the command line have more.
OVERRIDES = [
    # Unknown keys, with a hint where one is near.
    ("--learner.stpes 1", "learner.steps?"),
    ("--learner.weights.valu 1", "learner.weights.value?"),
    ("--learner.lr 1", "learner.learning_rate?"),
    ("--network.simulations 8", "search.simulations?"),
    ("--rules.sise 3", "size"),
    ("--mix '[]'", "mix"),
    # Keys that are gone.
    ("--loops_in_graphs true", "loops_in_graphs: no longer exists"),
    ("--loops-in-graphs 0", "loops_in_graphs: no longer exists"),
    # Words that are not options.
    ("extra", "extra"),
    ("--seed 1 2", "'2'"),
    ("--", "'--'"),
    ("-s 1", "'-s'"),
    ("--seed", "value"),
    ("--iterations.x 1", "table"),
    # Wrong types.
    ("--iterations 2.5", "iterations"),
    ("--learner 5", "learner"),
    ("--network.mover_first perhaps", "network.mover_first"),
    ("--evaluation.opponents random", "evaluation.opponents"),
    ("--rules.walls true", "rules.walls"),
    ("--rules.order 5", "rules.order"),
    ("--learner.lr_drops '[0.5, nan]'", "learner.lr_drops.1"),
    ("--network.custom '{}'", "Python"),
    ("--evaluation.opponents '[\"random\", 3]'", "evaluation.opponents.1"),
    # Out of range.
    ("--iterations 0", "iterations"),
    ("--seed 2147483648", "seed"),
    ("--name ..", "name"),
    ("--network.width 99999999999999999999999", "network.width"),
    ("--network.destination_width 8", "network.destination_width"),
    ("--network.destination_path true", "network.destination_path"),
    ("--network.destination_rank 2", "network.destination_rank"),
    ("--network.walking_bias true", "network.walking_bias"),
    ("--network.stones_close_gates true", "network.stones_close_gates"),
    ("--network.planes BR", "network.planes"),
    ("--search.kind mcts", "search.kind"),
    ("--selfplay.random_opening_prob 0.5", "selfplay.random_opening_prob"),
    ("--selfplay.temperature 0.001", "selfplay.temperature"),
    ("--evaluation.games 5", "evaluation.games"),
    ("--evaluation.opening_plies 26", "evaluation.opening_plies"),
    ("--checkpoint.keep 1e23", "checkpoint.keep"),
    ("--iterations 2147483648 --learner.steps 1", "2147483647"),
    ("--learner.freeze '[\"trunk=100000\"]' --learner.steps 30000", "trunk=100000"),
    ("--name ''", "name"),
    ("--name a/b", "name"),
    ("--name .hidden", "name"),
    ("--network.blocks T --network.width 6", "heads"),
    ("--network.blocks RT --network.width 32 --network.mlp_ratio 0.01", "network.mlp_ratio"),
    ("--search.kind puct --search.engine mctx --search.c_init 0.0009", "0.001"),
    ("--search.first_simulations 3", "first_simulations"),
    ("--selfplay.opening_plies 26", "14"),
    ("--selfplay.temperature 0.1", "final_temperature"),
    ("--selfplay.cheap_simulations 0", "cheap_simulations"),
    ("--selfplay.opponent runs/one --search.engine mctx", "native"),
    ("--selfplay.opponent runs/one --selfplay.boards 5", "selfplay.boards"),
    ("--learner.td_steps 2", "value_mix"),
    ("--learner.value_mix 0.5 --learner.td_steps -1", "learner.td_steps"),
    ("--learner.value_mix 0.5 --learner.td_steps 1000", "1000"),
    (f"{TRIO} --network.value wdl", "wdl"),
    (f"{TRIO} --learner.td_steps 2", "learner.td_steps"),
    ("--evaluation.sprt '\"20\"'", "evaluation.sprt"),
    ("--rules playwallgo-3p --evaluation.sprt 0,20", "evaluation.sprt"),
    # Rules, and lists of them.
    ("--rules no/such.json", "no/such.json"),
    ("--rules '[3'", "JSON"),
    (f"--rules {'[' * 20_000}", "JSON"),
    ("--rules 3", "preset"),
    ("--rules.size 2", "size"),
    ("--rules.order '[0, 0]'", "order"),
    ("--rules.tie '[\"coin\"]'", "coin"),
    ("--rules '[]'", "least"),
    ("--rules hkoi,hkio", "hkoi?"),
    ("--rules hkoi=0,wallzero-empty", "weight"),
    ("--rules hkoi=1e308,wallzero-empty", "1e308"),
    (f'--rules \'[{{"rules": "hkoi", "weight": 1{"0" * 400}}}, "wallzero-empty"]\'', "weight"),
    ("--rules hkoi,", "''"),
    ("--rules hkoi=a,wallzero-empty", "'a'"),
    ("--rules hkoi,hkoi=2", "again"),
    ("--rules hkoi,playwallgo-3p", "players"),
    ('--rules \'["hkoi", {"rules": "wallzero-empty", "share": 2}]\'', "share"),
    (f"{MIXED} --grid 6", "grid"),
    (f"{MIXED} --grid 8", "network.playable"),
    (f"{MIXED} --selfplay.boards 1", "selfplay.boards"),
]

# The text of a file, and a word of the complaint.
FILES = [
    ("name = \nseed = 1", "line"),
    ("seed = 1\nseed = 2", "TOML"),
    ("[learner\n", "line"),
    ("learner = 3", "learner"),
    ("name = 5", "name"),
    ("learning_rate = 0.1", "learner.learning_rate?"),
    ("[network]\nlr = 0.1", "learner.learning_rate?"),
    ("[[learner]]\nsteps = 1", "learner"),
    ("[network.extra]\na = 1", "network.extra"),
    # Tables where a function's name stands.
    ("[network.custom]", "network.custom"),
    ("[learner]\ncustom_loss = {a = 1}", "learner.custom_loss"),
    # Line breaks in keys and values.
    ('[learner]\nsteps = "two\\nlines"', "learner.steps"),
    ('"two\\nlines" = 3', "two"),
    ('name = "two\\nlines"', "name"),
    ("[rules]\nstart = [[0, 0, 0], [1, 1]]", "rules.start.1"),
    ("[rules]\nplayers = 4\nstones = 4\nsize = 3", "stones"),
]


def names(message: str, word: str) -> bool:
    """Whether a message has a word; of a key, each of its parts."""
    return all(part in message for part in word.split("."))


@pytest.mark.parametrize(("words", "word"), OVERRIDES, ids=lambda text: text[:80])
def test_wrong_overrides(words, word):
    message = refusal(read_config, tiny.PATH, shlex.split(words))
    assert names(message, word)


@pytest.mark.parametrize(("text", "word"), FILES)
def test_wrong_files(tmp_path, text, word):
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    message = refusal(read_config, path)
    assert str(path) in message
    assert names(message, word)


def test_unreadable_files(tmp_path):
    missing, binary = tmp_path / "missing.toml", tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    rules = tmp_path / "rules.json"
    rules.write_text('{"size": 2}')
    for path in (missing, missing / "a", binary):
        assert str(path) in refusal(read_config, path)
    assert "rules.json" in refusal(read_config, None, ["--rules", str(rules)])
    assert "directory" in refusal(read_config, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert f"--resume {tmp_path}" in refusal(read_config, tmp_path)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[]", "[]"),
        ("null", "None"),
        ('"a\\nb"', r"'a\nb'"),
        ('{"network": {"custom": {"a": 1}}}', "network.custom"),
    ],
)
def test_wrong_saved_configs(tmp_path, text, word):
    path: Path = tmp_path / "config.json"
    path.write_text(text)
    message = refusal(read_saved_config, tmp_path)
    assert str(path) in message
    assert names(message, word)
    assert "directory" in refusal(read_saved_config, path)


def test_a_saved_config_may_hold_a_key_that_is_gone_at_its_off_value():
    assert config_from_dict({"loops_in_graphs": False}, where="config") == RunConfig()


def test_complaint_opens_with_where():
    message = refusal(config_from_dict, {"sed": 1}, where="over there")
    assert message.startswith("over there: ") and "seed" in message
