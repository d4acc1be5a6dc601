"""A calibration is fitted to what happened, and its curves say whether chances come true."""

import numpy as np
import pytest

from tests.support.learner.reports import report_of
from train.data.record_dataset import RecordedGames
from train.review import reliability
from train.review.player import make_analysis_player
from train.review.reliability import fit_factor, make_curve, measure_reliability
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves

RULES = Rules(size=3, stones=1, order=(0, 1))
MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"


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
def test_only_games_that_gave_positions_are_counted(monkeypatch):
    def search(player, states, **others):
        return [report_of(state, 0, 0.1, network_value=0.2) for state in states]

    monkeypatch.setattr(reliability, "search_positions", search)
    game = records.of_game(replay_moves(RULES, parse_moves(MOVES, grid=3)))
    recorded = RecordedGames((game,) * 40, tuple(map(str, range(40))))
    player = make_analysis_player("heuristic-search:wjx@4", RULES)
    found = measure_reliability(player, recorded, positions=12, seed=0)
    # Twelve of 200 positions are of at most twelve games, and those of odd number are measured.
    assert 0 < found.measured_games <= found.positions < 12
    assert f"{found.positions} positions of {found.measured_games} games" in str(
        found.table().caption
    )
    every = measure_reliability(player, recorded, positions=999, seed=0)
    assert (every.games, every.positions, every.measured_games) == (40, 100, 20)
