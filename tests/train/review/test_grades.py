"""Moves are graded by the win chance that they lose."""

import pytest

from train.review.game_review import grade_move, side_accuracy


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (0.60, 0.60, "good"),
        (0.60, 0.75, "good"),
        (0.60, 0.5501, "good"),
        (0.60, 0.54, "inaccuracy"),
        (0.60, 0.4999, "mistake"),
        (0.60, 0.4001, "mistake"),
        (0.60, 0.39, "blunder"),
        (1.00, 0.00, "blunder"),
    ],
)
def test_names_by_loss(before, after, name):
    grade = grade_move(before, after, is_best=False, is_forced=False)
    assert grade.name == name
    assert grade.loss == pytest.approx(max(before - after, 0))


def test_the_best_move_and_the_only_move_lose_nothing():
    best = grade_move(0.9, 0.2, is_best=True, is_forced=False)
    only = grade_move(0.9, 0.2, is_best=True, is_forced=True)
    assert (best.name, best.loss, best.accuracy) == ("best", 0.0, pytest.approx(100, abs=1e-3))
    assert only.name == "forced"
    assert side_accuracy([only]) is None


def test_accuracy_is_that_of_the_published_curve():
    # Lichess: 103.1668 exp(-0.04354 d) - 3.1669, d in percentage points.
    lost = grade_move(0.5, 0.4, is_best=False, is_forced=False)
    assert lost.accuracy == pytest.approx(63.58, abs=0.01)
    best = grade_move(0.5, 0.5, is_best=True, is_forced=False)
    assert side_accuracy([lost, best]) == pytest.approx((63.58 + 100) / 2, abs=0.01)
    assert grade_move(1.0, 0.0, is_best=False, is_forced=False).accuracy == 0
