"""How many steps an iteration takes."""

import pytest

from tests.support.learner import tiny
from train.loop.train_step import FinishedPlies, steps_due


@pytest.mark.parametrize(
    ("every", "least", "expected"),
    [(0, 0, 0), (5, 0, 0), (1, 1, 1), (31, 10, 1), (64, 30, 4), (128, 60, 8), (900, 400, 8)],
)
def test_few_finished_plies_make_few_steps(every, least, expected):
    """Eight steps for the 128 plies of an iteration; none while a device has no finished game."""
    config = tiny.config("--selfplay.boards=16", "--learner.steps=8")
    assert steps_due(config, FinishedPlies(every, least)) == expected
