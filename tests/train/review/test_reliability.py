"""A calibration is fitted to what happened, and its curves say whether chances come true."""

import numpy as np
import pytest

from train.review.reliability import fit_factor, make_curve


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
