"""`python -m train config`: a readable table, and TOML that a run reads back."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command
from tests.train.test_config import FULL_CONFIG
from train.config import RunConfig, config_from_dict, config_to_dict, read_config
from train.config.reading import config_to_toml
from train.config.run import CONFIG_FILE
from wallgo_jax.game.rules import PRESETS, Rules

CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*.toml"))
WALLED = Rules(size=4, stones=1, start=((0, 0, 0), (3, 3, 1)), order=(), walls=5, tie=())


def shown(*words: object) -> str:
    said = command("config", *words)
    assert (said.code, said.err) == (0, "")
    return said.out


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_every_key_has_a_row():
    out = shown()
    assert max(map(len, out.splitlines())) <= 80
    rows = {line[2:].split()[0] for line in out.splitlines() if line[2:3].strip()}
    for field in dataclasses.fields(RunConfig):
        if field.name == "mix":
            continue  # `rules` says the same
        value = getattr(RunConfig(), field.name)
        if dataclasses.is_dataclass(value) and field.name != "rules":
            assert f"[{field.name}" in out
            rows_needed = {inner.name for inner in dataclasses.fields(value)} - {"weights"}
            assert rows_needed - {"ethen", "wjx"} <= rows
        else:
            assert field.name in rows
    assert "[learner.weights]" in out
    assert "[heuristics.ethen]" in out


def test_what_differs_is_marked_and_its_default_named():
    out = shown(tiny.PATH, "--learner.steps", "9", "--only", "learner.steps")
    assert out.splitlines()[1].split() == "* steps 9 steps of an iteration [steps]".split()
    assert out.splitlines()[2].strip() == "(32)"
    assert out.splitlines()[-1] == "* differs from its default, which stands below it"
    unchanged = shown("--only", "learner.batch")
    assert unchanged.splitlines()[1].startswith("  batch ")
    assert "*" not in unchanged


def test_a_part_alone_is_told_in_full():
    out = " ".join(shown("--only", "selfplay.full-search-prob").split())
    assert "[0 to 1]. The other plies get `cheap_simulations` without noise" in out
    assert "The other plies get" not in " ".join(shown().split())
    assert "[search]" in shown("--only", "search")
    assert "[learner]" not in shown("--only", "search")


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        FULL_CONFIG,
        tiny.config(),
        dataclasses.replace(RunConfig(), name='a "b" é😀', rules=WALLED),
        dataclasses.replace(RunConfig(), rules=PRESETS["hkoi"]),
        *map(read_config, CONFIGS),
    ],
    ids=lambda config: config.name,
)
def test_toml_is_read_back(config, tmp_path):
    path = tmp_path / "again.toml"
    path.write_text(config_to_toml(config, opening="a comment"), encoding="utf-8")
    assert read_config(path) == config
    fields = tomllib.loads(path.read_text(encoding="utf-8"))
    # Every key is written, so that nothing rests on a default: walls alone may have no value.
    expected = config_to_dict(config)
    listed = expected["rules"]
    for each in [part["rules"] for part in listed] if isinstance(listed, list) else [listed]:
        if isinstance(each, dict) and each["walls"] is None:
            del each["walls"]
    assert fields == expected


def test_toml_says_what_keys_mean():
    lines = shown("--toml", "--learner.learning_rate", "0.5").splitlines()
    place = lines.index("learning_rate = 0.5")
    assert lines[place - 1] == "# peak learning rate [rate] (default 0.003)"


def test_config_of_a_run_directory(tmp_path):
    config = dataclasses.replace(tiny.config(), name="x", iterations=99)
    (tmp_path / CONFIG_FILE).write_text(json.dumps(config_to_dict(config)))
    changed = tomllib.loads(shown(tmp_path, "--toml", "--seed", "5"))
    assert config_from_dict(changed, where="") == dataclasses.replace(config, seed=5)
