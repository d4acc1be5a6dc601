"""The command `levels`: a pool of levels and anchors, their Elo in the card that the page reads."""

import json

import pytest

from tests.support.learner.commands import command, complaint
from train.cli.games import levels as levels_command
from train.play.games import levels as level_names
from train.play.games.levels import Level


@pytest.fixture
def model(finished, tmp_path, monkeypatch):
    """A tiny model, with two levels to rate and one anchor."""
    run, _ = finished
    folder = tmp_path / "mine"
    assert command("export", run, folder).code == 0
    two = {"low": Level("low", 1, 2.0), "high": Level("high", 2, 0.0)}
    monkeypatch.setattr(level_names, "LEVELS", two)
    monkeypatch.setattr(levels_command, "ANCHORS", ("random",))
    monkeypatch.chdir(tmp_path)
    return folder


SMALL = ("--games", 2, "--budget", 4, "--opening-plies", 0)


def test_levels_are_rated_into_the_card(model, tmp_path):
    said = command("levels", model, *SMALL, "--card", "--json", tmp_path / "levels.json")
    assert said.code == 0, said.err
    card = json.loads((model / "card.json").read_text())
    figures = json.loads((tmp_path / "levels.json").read_text())
    elo = {row["player"]: row["elo"] for row in figures["players"]}
    assert elo["random"] == 0
    assert card["levels"] == {name: round(elo[name]) for name in ("high", "low")}
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
    ],
)
def test_what_cannot_be_rated_is_refused(model, words, reason):
    said = command("levels", *(str(word).format(model=model) for word in words))
    assert reason in complaint(said)
