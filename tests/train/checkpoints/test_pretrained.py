"""Weights that come with the package: written, read back, refused where they are not right; values
become win chances by the calibration of a card or a file."""

import json
import os
import re
from pathlib import Path

import chex
import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.refusals import refusal
from train.arena.match import MatchOptions, play_match
from train.arena.match_openings import OpeningOptions
from train.checkpoints import exported, pretrained
from train.network.build import network_for
from train.players import registry
from train.search.evaluator import Calibration, win_chance
from wallgo_jax.formats.files import is_unfinished
from wallgo_jax.game.rules import PRESETS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A temporary folder of models in place of the package's."""
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    return tmp_path


def write(folder, name: str = "small", seed: int = 3):
    config = tiny.config()
    network = network_for(config.network, 2)
    variables = tiny.new_weights(network, seed)
    exported.write_model(folder / name, variables, config, {"run": "tiny"})
    return variables


def complaint(name: str) -> str:
    return refusal(registry.make_player, name, tiny.RULES)


def test_a_model_is_read_as_it_was_written_and_its_card_tells_what_lies_there(folder):
    variables = write(folder)
    player = registry.make_player("pretrained:small@2", tiny.RULES)
    assert player.name == "pretrained:small@2"
    chex.assert_trees_all_equal(player.variables, variables)
    assert pretrained.read_config("small") == tiny.config()
    card = json.loads((folder / "small" / "card.json").read_text())
    assert card["bytes"] == (folder / "small" / "weights.npz").stat().st_size
    assert card["parameters"] == sum(x.size for x in jax.tree.leaves(variables.params))
    assert card["run"] == "tiny"


class Killed(BaseException):
    """Stands in for a kill of the process."""


@pytest.mark.parametrize("file", ["card.json", "weights.npz"])
def test_a_folder_whose_writing_was_killed_is_told_and_written_again(folder, monkeypatch, file):
    def die(source, target):
        if target.name == file:
            raise Killed
        replace(source, target)

    replace = os.replace
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "replace", die)
        patch.setattr(Path, "unlink", lambda path, **how: None)  # nobody cleans up after a kill
        write(folder)
    assert [path for path in (folder / "small").iterdir() if is_unfinished(path.name)]
    assert complaint("pretrained:small") == (
        "pretrained model 'small': unknown; known models: none"
        if file == "card.json"
        else f"{folder / 'small' / 'weights.npz'}: cannot be read: No such file or directory"
    )
    write(folder)
    assert registry.make_player("pretrained:small@2", tiny.RULES).name == "pretrained:small@2"


def test_unknown_models(folder):
    assert "'big': unknown; known models: none" in complaint("pretrained:big")
    write(folder)
    assert "'big': unknown; known models: small" in complaint("pretrained:big")
    assert "is not of the form pretrained:NAME" in complaint("pretrained:")


def with_other_weights(folder):
    write(folder, "other", seed=4)
    (folder / "other" / "weights.npz").rename(folder / "small" / "weights.npz")


def with_other_config(folder):
    path = folder / "small" / "card.json"
    path.write_text(path.read_text().replace('"simulations": 2', '"simulations": 3', 1))


def of_another_game(folder):
    path = folder / "small" / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_version": "0"}))


@pytest.mark.parametrize(
    ("change", "word"),
    [(with_other_weights, "weights.npz"), (with_other_config, "config"), (of_another_game, "'0'")],
)
def test_a_model_that_is_not_what_was_written_is_refused(folder, change, word):
    write(folder)
    change(folder)
    assert word in complaint("pretrained:small")


MODELS = pretrained.models()


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_package(name):
    config = pretrained.read_config(name)
    network = network_for(config.network, config.rules.players)
    variables = exported.read_weights(pretrained.folder_of(name), network.shapes)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(variables))
    size = (pretrained.folder_of(name) / "weights.npz").stat().st_size
    assert size == pretrained.read_card(name)["bytes"] < 1_000_000


@pytest.mark.parametrize("name", ["wallzero-4stone", "wallzero-empty"])
def test_cards_of_the_newest_models_say_how_they_were_made(name):
    assert name in MODELS
    card = pretrained.read_card(name)
    assert pretrained.model_for(pretrained.read_config(name).rules) == name
    assert all(start["versions"]["wallgo-jax"] for start in card["starts"])
    assert card["hours"]["training"] > 0
    assert all(point["iteration"] <= card["iteration"] for point in card["curve"])
    assert card["matches"] or card["evaluation"]["matches"]
    page = (pretrained.folder_of(name) / "README.md").read_text()
    for heading in ("## Training", "## Matches", "## Config"):
        assert f"\n{heading}\n" in page


@pytest.mark.slow
def test_the_models_player_is_strong():
    rules = PRESETS["wallzero-4stone"]
    first, second = (
        registry.make_player(name, rules) for name in ("pretrained:wallzero-4stone@8", "wjx")
    )
    result = play_match(
        (first, second),
        rules,
        MatchOptions(40, 40, OpeningOptions(2)),
        key=jax.random.key(0),
    )
    assert result.win_rate > 0.8


def test_chances_of_two_players_add_up_to_one():
    value = np.linspace(-1, 1, 9)
    for factor in (1.0, 0.5, 2.0):
        chance = win_chance(value, players=2, factor=factor)
        assert chance + win_chance(-value, players=2, factor=factor) == pytest.approx(1)
        assert chance[[0, 4, 8]] == pytest.approx([0, 0.5, 1])
    assert win_chance(value, players=2) == pytest.approx((1 + value) / 2)


def test_a_draw_of_more_players_is_an_equal_share():
    assert win_chance([1.0, -0.5, 0.0], players=3) == pytest.approx([1, 0, 1 / 3])
    assert win_chance([1.0, -1 / 3, 0.0], players=4) == pytest.approx([1, 0, 1 / 4])


def test_a_calibration_is_read_again(tmp_path):
    made = Calibration(0.5, 0.75, 64)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({"calibration": made._asdict(), "player": "x"}))
    assert exported.read_calibration(path) == made


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ("[]", "calibration"),
        ('{"calibration": {"network": -1, "search": 1}}', "network: .*greater than 0 .*-1"),
    ],
)
def test_a_wrong_calibration_is_refused_in_one_line(tmp_path, text, word):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    message = refusal(exported.read_calibration, path)
    assert message.startswith(str(path)) and re.search(word, message)


def test_a_card_without_a_calibration_leaves_chances_as_they_are():
    assert exported.calibration_of_card({}, where="x") == Calibration(1.0, 1.0, None)
    kept = {"network": 0.5, "search": 0.75, "simulations": 64}
    assert exported.calibration_of_card({"calibration": kept}, where="x") == Calibration(
        0.5, 0.75, 64
    )
    assert "calibration" in refusal(exported.calibration_of_card, {"calibration": 3}, where="x")
