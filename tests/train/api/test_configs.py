"""Configs from Python: files, dicts and keywords, with the errors of the command line."""

import copy
import dataclasses

import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.config import read_config
from train.network import NetworkConfig
from wallgo_jax.game.rules import PRESETS, Rules


def test_changes_are_those_of_the_command_line():
    assert train.make_config() == read_config(None)
    words = ["--seed", "3", "--network.width", "16", "--rules.walls", "7"]
    expected = read_config(tiny.PATH, words)
    changes = {"network.width": 16, "rules.walls": 7}
    assert train.make_config(tiny.PATH, changes, seed=3) == expected
    made = train.make_config(str(tiny.PATH), {"rules.walls": 7}, seed=3, network={"width": 16})
    assert made == expected


def test_tables_may_be_dicts_and_dataclasses():
    made = train.make_config(
        {"name": "x", "network": {"width": 16}},
        rules={"size": 4, "stones": 1, "order": [0, 1]},
        search={"simulations": 3},
    )
    assert (made.name, made.network.width, made.search.simulations) == ("x", 16, 3)
    assert made.rules == Rules(size=4, stones=1, order=(0, 1))
    assert train.make_config(network=NetworkConfig(width=24)).network == NetworkConfig(width=24)
    assert train.make_config(made, rules=PRESETS["hkoi"]).rules == PRESETS["hkoi"]
    assert train.make_config(made) == made


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        (({"learner.batch": 16, "rules.walls": 7},), {}),
        (({"learner": {"batch": 16}, "rules.walls": 7},), {}),
        ((), {"learner.batch": 16, "rules.walls": 7}),
        ((None, {"learner": {"batch": 16}}), {"rules.walls": 7}),
        (
            ({"rules": PRESETS["wallzero-4stone"].to_dict(), "rules.walls": 7},),
            {"learner.batch": 16},
        ),
    ],
)
def test_keys_may_be_dotted_in_every_argument(given, keys):
    before = copy.deepcopy(given)
    made = train.make_config(*given, **keys)
    assert (made.learner.batch, made.rules.walls) == (16, 7)
    assert given == before
    weights = {"learner": {"weights.value": 0.5}, "network": {}}
    made = train.make_config(weights)
    assert made.learner.weights.value == 0.5
    assert made.network == NetworkConfig()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network.widht": 3}, ["--network.widht", "3"]),
        ({"network.width": 0}, ["--network.width", "0"]),
        ({"seed": -1}, ["--seed", "-1"]),
        ({"search": 3}, ["--search", "3"]),
        ({"network.lr": 3}, ["--network.lr", "3"]),
        ({"learner.custom_loss": "f"}, ["--learner.custom_loss", "f"]),
    ],
)
def test_complaints_are_those_of_the_command_line(changes, words):
    with pytest.raises(train.UsageError) as found:
        train.make_config(tiny.PATH, changes)
    assert "\n" not in str(found.value)
    assert complaint(command("config", tiny.PATH, *words)) == str(found.value)


def test_a_wrong_key_is_looked_for_in_all_tables():
    with pytest.raises(train.UsageError, match=r"mean learner\.learning_rate\?"):
        train.make_config(lr=0.1)


def test_no_file_names_a_function(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[network]\ncustom = "mine"\n', encoding="utf-8")
    with pytest.raises(train.UsageError, match=r"network\.custom"):
        read_config(path)


def test_names_are_shown_and_nothing_else():
    assert dir(train) == train.__all__
    assert dataclasses.is_dataclass(train.RunConfig)
    with pytest.raises(AttributeError, match="runn"):
        train.runn  # noqa: B018
