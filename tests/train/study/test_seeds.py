"""Intervals over seeds, against figures worked out by hand."""

import pytest

from train.study.frame.seeds import estimate


def test_interval_is_students():
    """Rates 0.5 to 0.6: standard deviation 0.0374166, t(5) = 2.570582, half a width 0.039266."""
    found = estimate([0.50, 0.52, 0.54, 0.56, 0.58, 0.60], 200)
    assert found.mean == pytest.approx(0.55)
    assert found.low == pytest.approx(0.55 - 0.039266, abs=1e-5)
    assert found.high == pytest.approx(0.55 + 0.039266, abs=1e-5)
    assert found.verdict == "better"


def test_one_seed_has_the_interval_of_its_games():
    """Wilson's for 60 of 100: 50.20 to 69.06 %; it decides nothing."""
    found = estimate([0.6], 100)
    assert (found.low, found.high) == pytest.approx((0.5020, 0.6906), abs=1e-4)
    assert found.verdict == "screening"


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ([0.4, 0.41, 0.42, 0.4, 0.41, 0.42], "worse"),
        ([0.4, 0.6, 0.5, 0.45, 0.55, 0.5], "undecided"),
        ([0.7] * 5, "screening"),
    ],
)
def test_six_seeds_decide(rates, verdict):
    assert estimate(rates, 200).verdict == verdict
