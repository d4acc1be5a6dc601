"""Means with their intervals, over seeds and over games, against figures worked out by hand."""

import math

import numpy as np
import pytest

from train.experiments.lib.stats import (
    MatchCounts,
    by_game,
    difference,
    mean_rate,
    over_games,
    over_seeds,
    rate_of,
)


def test_interval_is_students():
    """Rates 0.5 to 0.6: standard deviation 0.0374166, t(5) = 2.570582, half a width 0.039266."""
    found = over_seeds([0.50, 0.52, 0.54, 0.56, 0.58, 0.60], 200)
    assert found.mean == pytest.approx(0.55)
    assert found.low == pytest.approx(0.55 - 0.039266, abs=1e-5)
    assert found.high == pytest.approx(0.55 + 0.039266, abs=1e-5)
    assert found.verdict == "better"


def test_one_seed_has_the_interval_of_its_games():
    """Wilson's for 60 of 100: 50.20 to 69.06 %; it decides nothing."""
    found = over_seeds([0.6], 100)
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
    assert over_seeds(rates, 200).verdict == verdict


def test_means_over_games_have_students_interval():
    """Values 1, 2, 3: mean 2, standard error 1/√3, 4.303 of it."""
    mean = over_games(np.array([1.0, 2.0, np.nan, 3.0]))
    assert (mean.mean, mean.number) == (2.0, 3)
    assert mean.high - mean.mean == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    averages = by_game(np.array([1, 0, 1]), np.array([0, 0, 2]), 3)
    assert np.array_equal(averages, [0.5, np.nan, 1.0], equal_nan=True)
    assert over_games(np.array([1.0])).text() == over_games(np.array([1.0])).share() == ""


MEETINGS = [
    MatchCounts("A", "B", 0, 3, 0, 1),
    MatchCounts("A", "C", 0, 2, 2, 0),
    MatchCounts("B", "C", 0, 4, 0, 0),
    MatchCounts("A", "B", 1, 1, 0, 3),
    MatchCounts("A", "C", 1, 4, 0, 0),
    MatchCounts("B", "C", 1, 3, 0, 1),
]


def test_a_variants_mean_is_over_seeds():
    """A: 6 of 8 with seed 0, 5 of 8 with seed 1; B: 5 and 6; C: 1 and 1."""
    assert [rate_of(MEETINGS, "A", seed) for seed in (0, 1)] == [6 / 8, 5 / 8]
    assert [rate_of(MEETINGS, "C", seed) for seed in (0, 1)] == [1 / 8, 1 / 8]
    mean = mean_rate(MEETINGS, "A")
    # The standard error is a half of 1/8, Student's factor for one degree of freedom 12.706.
    assert mean.mean == pytest.approx(11 / 16)
    assert mean.low == pytest.approx(max(0.0, 11 / 16 - 12.706 / 16), abs=1e-3)
    gap = difference(MEETINGS, "A", "C")
    assert gap.mean == pytest.approx(9 / 16)


def test_the_difference_of_one_seed_has_no_interval():
    """With seed 0 A wins 3 of 4 against B, and the mean rates are 3/4 and 1/4."""
    gap = difference([MatchCounts("A", "B", 0, 3, 0, 1)], "A", "B")
    assert gap.mean == 0.5 and math.isnan(gap.low) and math.isnan(gap.high)
    assert gap.points() == "+50.0"
    two = [MatchCounts("A", "B", seed, 3, 0, 1) for seed in (0, 1)]
    assert difference(two, "A", "B").points() == "+50.0 (+50.0 to +50.0)"
