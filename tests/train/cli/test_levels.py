"""The command `levels`: a pool of levels and anchors, their Elo in the card that the page reads."""

import json

import pytest

from tests.support.learner.commands import command
from train.ui.games import levels as level_names
from train.ui.games.levels import Level

LEVELS = {"low": Level("low", 1, 2.0), "high": Level("high", 2, 0.0)}


@pytest.fixture
def model(finished, tmp_path, monkeypatch):
    """A tiny model, with two levels to rate and one anchor."""
    run, _ = finished
    folder = tmp_path / "mine"
    assert command("export", run, folder).code == 0
    monkeypatch.setattr(level_names, "LEVELS", LEVELS)
    monkeypatch.setattr(level_names, "ZERO", "random")
    return folder


def test_levels_are_rated_into_the_card(model, plays, tmp_path):
    words = ["levels", model, "--games", 4, "--budget", 16]
    said = command(*words, "--card", "--json", tmp_path / "levels.json")
    assert said.code == 0, said.err
    card = json.loads((model / "card.json").read_text())
    figures = json.loads((tmp_path / "levels.json").read_text())
    rows = {row["player"]: row for row in figures["players"]}
    assert rows["random"]["elo"] == 0
    assert list(card["levels"]) == list(LEVELS)
    for name, level in card["levels"].items():
        assert level == {key: round(rows[name][key]) for key in ("elo", "low", "high")}
    assert card["levels_measured"]["zero"] == "random"
    assert (figures["games"], len(plays)) == (16, 4)
    assert "16 games, 0 of them new" in command(*words).out
    assert len(plays) == 4
