"""Networks and rules of trained players are found by every form of their names."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.saved import save_run
from train import registry
from train.checkpoints import exported
from train.cli.export import export
from train.config import RunConfig
from train.registry import common_rules, load_network
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS

MODEL = "pretrained:wallzero-4stone"


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> dict[str, str]:
    """Names of one network, by the way it is named."""
    folder = tmp_path_factory.mktemp("networks")
    run = save_run(folder / "one", seeds={9: 0, 10: 1})
    export(str(run), folder / "model")
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
    for form in forms.values():
        found = load_network(form)
        assert found.config == expected.config == tiny.config()
        pairs = zip(
            jax.tree.leaves(found.variables), jax.tree.leaves(expected.variables), strict=True
        )
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
        assert common_rules([form]) == tiny.RULES
        player = registry.make_player(form, tiny.RULES)
        assert player.name == registry.read_name(form).full
    first, *others = (
        registry.make_player(forms[form], tiny.RULES).act
        for form in ("run", "exported", "checkpoint")
    )
    assert all(act is first for act in others)


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
    with pytest.raises(UsageError) as caught:
        common_rules([forms["run"], "random", larger])
    assert str(caught.value) == (
        f"{forms['run']} has learned custom rules on 3x3, {larger} custom rules on 4x4: --rules "
        "says which to play, and --transfer lets both play it"
    )


def test_rules_that_have_no_name_are_told_apart():
    walls = dataclasses.replace(tiny.RULES, walls=3)
    assert registry.networks.tell_apart(tiny.RULES, walls) == (
        "custom rules on 3x3 (walls None)",
        "custom rules on 3x3 (walls 3)",
    )


def test_exported_folders_that_are_damaged(forms, tmp_path):
    good = load_network(forms["exported"])
    for name, change, said in (
        ("cut", lambda card, folder: card.write_text("{"), "card.json cannot be read: "),
        ("other", lambda card, folder: card.write_text("{}"), "card.json is no card of `export`: "),
        (
            "empty",
            lambda card, folder: (folder / exported.WEIGHTS_FILE).unlink(),
            "weights.npz cannot be read: No such file",
        ),
        (
            "changed",
            lambda card, folder: (folder / exported.WEIGHTS_FILE).write_bytes(b"x"),
            "weights.npz is not what its card says",
        ),
    ):
        folder = tmp_path / name
        exported.write_model(folder, good.variables, good.config, {})
        change(folder / exported.CARD_FILE, folder)
        with pytest.raises(UsageError) as caught:
            load_network(str(folder))
        assert str(caught.value).startswith(f"{folder}: {said}")
        assert "\n" not in str(caught.value)


def test_exported_weights_of_another_network(forms, tmp_path):
    good = load_network(forms["exported"])
    wider = tiny.config("--network.width", "16")
    exported.write_model(tmp_path / "wide", good.variables, wider, {})
    with pytest.raises(UsageError, match=r"wide: weights.npz has .* where the card's config asks"):
        load_network(str(tmp_path / "wide"))


def test_missing_paths_say_what_is_there(forms):
    run = forms["run"]
    for name, said in (
        (f"{run}/checkpoints/8", "/checkpoints/8: no such checkpoint; there are: 9, 10"),
        (f"{run}/checkpoints/best", "/checkpoints/best: no such checkpoint; there are: 9, 10"),
        (f"{run}/checkpoints", "; the checkpoints here: 9, 10"),
        (f"{run[:-3]}onne", "no such run directory, checkpoint or exported folder; did you mean "),
        (f"{run[:-3]}", "neither checkpoints/ITERATION nor card.json; there are: model, one"),
    ):
        with pytest.raises(UsageError) as caught:
            load_network(name)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
