"""Intervals over seeds and over games, and cells, against figures worked out by hand."""

import math

import numpy as np
import pytest

from train.experiments.tables import (
    Table,
    cell,
    elo,
    estimate_of,
    gaps_of,
    over_games,
    over_seeds,
    rates_of,
    verdict,
)


def test_interval_is_students():
    """Rates 0.5 to 0.6: standard deviation 0.0374166, t(5) = 2.570582, half a width 0.039266."""
    found = over_seeds([0.50, 0.52, 0.54, 0.56, 0.58, 0.60], 200)
    assert found.mean == pytest.approx(0.55)
    assert found.low == pytest.approx(0.55 - 0.039266, abs=1e-5)
    assert found.high == pytest.approx(0.55 + 0.039266, abs=1e-5)
    assert verdict(found) == "better"


def test_one_seed_has_the_interval_of_its_games():
    """Wilson's for 60 of 100: 50.20 to 69.06 %; it decides nothing."""
    found = estimate_of({"won": [55], "drawn": [10], "lost": [35]})
    assert (found.low, found.high) == pytest.approx((0.5020, 0.6906), abs=1e-4)
    assert verdict(found) == "screening"


@pytest.mark.parametrize(
    ("rates", "word"),
    [
        ([0.4, 0.41, 0.42, 0.4, 0.41, 0.42], "worse"),
        ([0.4, 0.6, 0.5, 0.45, 0.55, 0.5], "undecided"),
        ([0.7] * 5, "screening"),
    ],
)
def test_six_seeds_decide(rates, word):
    assert verdict(over_seeds(rates, 200)) == word


def test_means_over_games_have_students_interval():
    """Values 1, 2, 3: mean 2, standard error 1/√3, 4.303 of it."""
    mean = over_games(np.array([1.0, 2.0, np.nan, 3.0]))
    assert (mean.mean, mean.number) == (2.0, 3)
    assert mean.high - mean.mean == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert cell(over_games(np.array([1.0]))._asdict()) == ""


def meeting(first: str, second: str, seed: int, won: int, drawn: int, lost: int) -> dict:
    counts = {"won": won, "drawn": drawn, "lost": lost}
    return {"first": first, "second": second, "seed": seed, **counts}


MEETINGS = [
    meeting("A", "B", 0, 3, 0, 1),
    meeting("A", "C", 0, 2, 2, 0),
    meeting("B", "C", 0, 4, 0, 0),
    meeting("A", "B", 1, 1, 0, 3),
    meeting("A", "C", 1, 4, 0, 0),
    meeting("B", "C", 1, 3, 0, 1),
]


def test_a_variants_rates_are_of_each_seed():
    """A: 6 of 8 with seed 0, 5 of 8 with seed 1; C: 1 and 1."""
    assert rates_of(MEETINGS, "A") == [6 / 8, 5 / 8]
    assert rates_of(MEETINGS, "C") == [1 / 8, 1 / 8]
    assert gaps_of(MEETINGS, "A", "C") == [5 / 8, 4 / 8]


@pytest.mark.parametrize(
    ("value", "view", "text"),
    [
        ("a", "", "a"),
        (12345, "", "12,345"),
        ({"won": 334, "drawn": 1, "lost": 65}, "", "83.6 (79.7–86.9)"),
        ({"won": 334, "drawn": 1, "lost": 65}, "counts", "334, 1, 65"),
        ({"won": [1, 2], "drawn": [0, 1], "lost": [3, 1]}, "counts", "3, 1, 4"),
        ({"won": 400, "drawn": 0, "lost": 0}, "", "100 (99.0–100)"),
        ({"won": 1, "drawn": 0, "lost": 399}, "", "0.3 (0.0–1.4)"),
        ({"won": 104, "drawn": 170, "lost": 125, "draw": 1 / 3}, "", "40.3 (35.6–45.2)"),
        ({"won": 2375, "drawn": 0, "lost": 25, "printed": [98.7, 99.3]}, "", "99.0 (98.7–99.3)"),
        ({"kept": [20, 17, 9], "of": 100}, "", "15.3 (1.2–29.5)"),
        ({"kept": [69095, 69094, 69082], "of": 69138, "digits": 2}, "", "99.93 (99.91–99.96)"),
        ({"gaps": [0.5]}, "points", "50.0"),
        ({"gaps": [-0.1, 0.1]}, "points", "0.0 (−100 to 100)"),
        ({"won": 135, "drawn": 0, "lost": 65}, "elo", "127 (76–178)"),
        ({"won": 4, "drawn": 0, "lost": 0}, "elo", "∞ (7–∞)"),
        ({"mean": 3.14, "low": -2.8, "high": None}, "plain", "3.1"),
        ({"mean": -1.25, "low": -2.0, "high": 0.5}, "plain", "−1.3 (−2.0 to 0.5)"),
    ],
)
def test_cells_are_made_from_counts(value, view, text):
    assert cell(value, view) == text


def test_a_table_shows_its_columns():
    rows = [{"name": "`a`", "games": {"won": 1, "drawn": 0, "lost": 0}}, {"name": "b"}]
    table = Table("T", [["who", "name"], ["won, drawn, lost", "games", "counts"]], rows)
    assert [*table.cells()] == [["`a`", "1, 0, 0"], ["b", ""]]
    assert table.markdown().splitlines()[0] == "| who | won, drawn, lost |"


def test_elo_of_a_win_rate():
    assert elo(0.5) == 0 and elo(10 / 11) == pytest.approx(400) and elo(1) == math.inf
