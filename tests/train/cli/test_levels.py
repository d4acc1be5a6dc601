"""The command `levels`: a pool of levels and anchors, their Elo in the card that the page reads."""

import json

import pytest

from tests.support.learner.commands import command, complaint
from train.ui.games import levels as level_names
from train.ui.games.levels import Level

LOW, HIGH = Level("low", 1, 2.0), Level("high", 2, 0.0)


@pytest.fixture
def model(finished, tmp_path, monkeypatch):
    """A tiny model, with a level to rate and one anchor."""
    run, _ = finished
    folder = tmp_path / "mine"
    assert command("export", run, folder).code == 0
    monkeypatch.setattr(level_names, "LEVELS", {"low": LOW})
    monkeypatch.setattr(level_names, "ZERO", "random")
    monkeypatch.chdir(tmp_path)
    return folder


SMALL = ("--games", 2, "--budget", 4, "--opening-plies", 0)


@pytest.mark.parametrize(
    "levels", [[LOW], pytest.param([LOW, HIGH], marks=pytest.mark.slow)], ids=len
)
def test_levels_are_rated_into_the_card(model, tmp_path, monkeypatch, levels):
    monkeypatch.setattr(level_names, "LEVELS", {level.name: level for level in levels})
    said = command("levels", model, *SMALL, "--card", "--json", tmp_path / "levels.json")
    assert said.code == 0, said.err
    card = json.loads((model / "card.json").read_text())
    figures = json.loads((tmp_path / "levels.json").read_text())
    rows = {row["player"]: row for row in figures["players"]}
    assert rows["random"]["elo"] == 0
    for name in (level.name for level in levels):
        assert card["levels"][name] == {k: round(rows[name][k]) for k in ("elo", "low", "high")}
    assert card["levels_measured"]["zero"] == "random"
    assert figures["games"] == 4
    again = command("levels", model, *SMALL)
    assert "4 games, 0 of them new" in again.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("random",), "has no network"),
        (("{model}@8",), "name a network without simulations"),
        (("net:{model}",), "name a network without simulations"),
        (("{model}", "--games", 3), "games"),
        (("{model}", "--budget", 0), "levels: a budget of 0 games is too small"),
    ],
)
def test_what_cannot_be_rated_is_refused(model, words, reason):
    said = command("levels", *(str(word).format(model=model) for word in words))
    assert reason in complaint(said)
