"""Values become win chances, and a calibration is fitted to what happened."""

import json

import numpy as np
import pytest

from train.review import chances
from train.review.analyst import read_calibration
from train.review.chances import fit_factor, win_chance
from train.review.reliability import make_curve
from train.runtime.errors import UsageError


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


def test_a_calibration_is_read_again(tmp_path):
    made = chances.Calibration(0.5, 0.75, 64)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({"calibration": chances.to_dict(made), "player": "x"}))
    assert read_calibration(path) == made


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "no JSON"),
        ("[]", "no calibration of"),
        ('{"calibration": {"network": 1}}', "calibration: search None is not a number above 0"),
        (
            '{"calibration": {"network": -1, "search": 1}}',
            "calibration: network -1 is not a number above 0",
        ),
    ],
)
def test_a_wrong_calibration_is_refused_in_one_line(tmp_path, text, complaint):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint) as raised:
        read_calibration(path)
    assert str(raised.value).startswith(str(path))
