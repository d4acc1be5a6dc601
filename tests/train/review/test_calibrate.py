"""A calibration is fitted to what happened, and a card with it corrects all win chances."""

import json
import random

import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command
from tests.support.learner.reports import report_of
from tests.support.reference.games import random_game
from train.checkpoints import exported
from train.checkpoints.exported import CALIBRATION_KEY, Calibration
from train.data.record_dataset import RecordedGames
from train.engine.protocol import format_evaluation
from train.players.registry import make_evaluating_player
from train.review import reliability
from train.review.game_review import review_game
from train.review.player import make_analysis_player
from train.review.reliability import fit_factor, make_curve, measure_reliability
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record


@pytest.mark.slow
def test_a_card_keeps_what_is_fitted(folder, tmp_path):
    rng, games, figures = random.Random(0), tmp_path / "games.jsonl", tmp_path / "figures.json"
    played = [random_game(rng, tiny.RULES.to_dict(), grid=3) for _ in range(8)]
    ended = [(tuple(game.actions), tuple(game.rewards[-1])) for game in played]
    records.write(games, [Record(tiny.RULES, actions, result=result) for actions, result in ended])
    words = ("--games", games, "--positions", "16", "--card", "--json", figures)
    said = command("calibrate", f"{folder}@12", *words)
    assert said.code == 0, said.err
    assert "after search" in said.out and f"written: {folder}/card.json (calibration)" in said.out
    fitted = json.loads(figures.read_text())
    card = json.loads((folder / exported.CARD_FILE).read_text())
    assert card[CALIBRATION_KEY] == fitted["calibration"] and card["run"] == "tiny"
    assert card[CALIBRATION_KEY]["simulations"] == 12
    halves = [sum(b["positions"] for b in c["plain"]["bins"]) for c in fitted["curves"].values()]
    assert halves == [fitted["positions"]] * 2 and 0 < fitted["positions"] < 16
    assert make_evaluating_player(f"{folder}@12").calibration == Calibration(
        **card[CALIBRATION_KEY]
    )


def test_the_card_corrects_what_a_review_tells(folder, game):
    exported.add_to_card(
        folder, {CALIBRATION_KEY: {"network": 0.25, "search": 0.5, "simulations": 12}}
    )
    player = make_analysis_player(f"{folder}@12", tiny.RULES)
    review = review_game(player, game)
    value = np.clip(review.values[0, 0], -1, 1)
    odds = ((1 + value) / (1 - value)) ** 0.5
    assert review.chances[0, 0] == pytest.approx(odds / (1 + odds))
    assert review.chances[0, 0] != pytest.approx((1 + value) / 2, abs=1e-6)


def test_win_chances_are_corrected_and_values_are_not(game):
    calibration = Calibration(network=1.0, search=0.5, simulations=4)
    report = report_of(game.states[1], 0, 0.2, calibration=calibration)
    odds = (1.2 / 0.8) ** 0.5
    assert report.win_chance == pytest.approx(odds / (1 + odds))
    assert report.candidates[0].win_chance == pytest.approx(report.win_chance)
    assert format_evaluation(report, details=False)["evaluation"] == pytest.approx(-0.2)
    assert report.chance(0.2, is_searched=False) == pytest.approx(0.6)


def test_the_fit_finds_the_factor_that_made_the_outcomes():
    rng = np.random.default_rng(0)
    value = rng.uniform(-0.95, 0.95, 40_000)
    true = 1 / (1 + ((1 - value) / (1 + value)) ** 0.6)
    outcome = np.where(rng.random(len(value)) < true, 1.0, -1.0)
    assert fit_factor(value, outcome) == pytest.approx(0.6, abs=0.02)


def test_reliability_bins_hold_means():
    chance = np.array([0.05, 0.05, 0.95, 0.95])
    score = np.array([0.0, 0.5, 1.0, 1.0])
    curve = make_curve(chance, score, np.arange(4), np.random.default_rng(0))
    assert [(each.predicted, each.scored, each.positions) for each in curve.bins] == [
        (pytest.approx(0.05), 0.25, 2),
        (pytest.approx(0.95), 1.0, 2),
    ]
    assert curve.brier == pytest.approx((0.05**2 + 0.45**2 + 2 * 0.05**2) / 4)
    assert curve.calibration_error == pytest.approx((2 * 0.2 + 2 * 0.05) / 4)
    assert curve.bins[1].interval == (1.0, 1.0)


@pytest.mark.slow
def test_only_games_that_gave_positions_are_counted(game, monkeypatch):
    def search(player, states, **others):
        return [report_of(state, 0, 0.1, network_value=0.2) for state in states]

    monkeypatch.setattr(reliability, "search_positions", search)
    recorded = RecordedGames((records.of_game(game),) * 40, tuple(map(str, range(40))))
    player = make_analysis_player("heuristic-search:wjx@4", tiny.RULES)
    found = measure_reliability(player, recorded, positions=12, seed=0)
    # Twelve of 200 positions are of at most twelve games, and those of odd number are measured.
    assert 0 < found.measured_games <= found.positions < 12
    assert f"{found.positions} positions of {found.measured_games} games" in str(
        found.table().caption
    )
    every = measure_reliability(player, recorded, positions=999, seed=0)
    assert (every.games, every.positions, every.measured_games) == (40, 100, 20)
