"""Networks and rules of trained players are found by every form of their names."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.saved import save_run
from train.checkpoints import exported
from train.config import RunConfig
from train.network.build import network_for
from train.players import registry
from train.players.names import read_name
from train.players.networks import common_rules, load_network, rules_in_words
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS

MODEL = "pretrained:wallzero-4stone"


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> dict[str, str]:
    """Names of one network, by the way it is named."""
    folder = tmp_path_factory.mktemp("networks")
    run = save_run(folder / "one", seeds={9: 0, 10: 1})
    train.export(run, folder / "model")
    return {
        "run": f"{run}",
        "checkpoint": f"{run}/checkpoints/10",
        "net": f"net:{run}",
        "search": f"search:{run}@2",
        "exported": f"{folder / 'model'}",
        "net of exported": f"net:{folder / 'model'}",
    }


@pytest.fixture(scope="module")
def larger(tmp_path_factory) -> str:
    """A run of other rules."""
    rules = dataclasses.replace(tiny.RULES, size=4)
    config: RunConfig = dataclasses.replace(tiny.config(), rules=rules)
    return str(save_run(tmp_path_factory.mktemp("networks") / "four", seeds={1: 2}, config=config))


def test_every_form_has_the_same_weights(forms):
    expected = load_network(forms["run"])
    earlier = load_network(f"{forms['run']}/checkpoints/9")
    for trained, seed in ((expected, 1), (earlier, 0)):
        weights = tiny.new_weights(network_for(trained.config.network, 2), seed)
        jax.tree.map(np.testing.assert_array_equal, trained.variables, weights)
    for form in forms.values():
        found = load_network(form)
        assert found.config == expected.config == tiny.config()
        jax.tree.map(np.testing.assert_array_equal, found.variables, expected.variables)
        assert common_rules([form]) == tiny.RULES
        player = registry.make_player(form, tiny.RULES)
        assert player.name == read_name(form).full
    same = ("run", "exported", "checkpoint")
    assert len({registry.make_player(forms[form], tiny.RULES).act for form in same}) == 1


def test_networks_say_what_they_are(forms):
    told = {form: load_network(name)[2:4] for form, name in forms.items()}
    run = forms["run"]
    assert told["run"] == told["net"] == told["search"] == ("one", f"{run}, iteration 10")
    assert told["checkpoint"] == ("one/10", f"{run}, iteration 10")
    assert told["exported"] == told["net of exported"] == ("model", forms["exported"])
    assert load_network(MODEL)[2:4] == ("wallzero-4stone", MODEL)
    assert load_network(f"net:{MODEL}").config == load_network(MODEL).config


def test_rules_are_those_that_players_have_learned(forms, larger):
    assert common_rules(["random", "wjx"]) is None
    assert common_rules(["random", forms["net"], forms["exported"]]) == tiny.RULES
    assert common_rules([MODEL, "greedy"]) == PRESETS["wallzero-4stone"]
    with pytest.raises(UsageError, match=r"3x3, .* 4x4: `rules=` .* `transfer=True`"):
        common_rules([forms["run"], "random", larger])


def test_rules_that_have_no_name_are_told_apart():
    walls = dataclasses.replace(tiny.RULES, walls=3)
    assert rules_in_words(walls, [tiny.RULES]) == "custom rules on 3x3 (walls 3)"
    assert rules_in_words(walls, [PRESETS["hkoi"]]) == "custom rules on 3x3"


@pytest.mark.parametrize(
    ("file", "data", "said"),
    [
        (exported.CARD_FILE, b"{", "card.json"),
        (exported.CARD_FILE, b"{}", "export"),
        (exported.WEIGHTS_FILE, None, "weights.npz"),
        (exported.WEIGHTS_FILE, b"x", "its card"),
    ],
)
def test_exported_folders_that_are_damaged(forms, tmp_path, file, data, said):
    good = load_network(forms["exported"])
    exported.write_model(tmp_path, good.variables, good.config, {})
    if data is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(data)
    with pytest.raises(UsageError, match=said) as caught:
        load_network(str(tmp_path))
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("{run}/checkpoints/8", "9, 10"),
        ("{run}/checkpoints/best", "9, 10"),
        ("{run}/checkpoints", "9, 10"),
        ("{folder}/onne", "did you mean"),
        ("{folder}", "model, one"),
    ],
)
def test_missing_paths_say_what_is_there(forms, name, said):
    run = Path(forms["run"])
    with pytest.raises(UsageError, match=said) as caught:
        load_network(name.format(run=run, folder=run.parent))
    assert "\n" not in str(caught.value)
