"""How many steps an iteration takes, and the schedule that goes by them."""

import jax
import pytest

from tests.support.learner import tiny
from train.loop.training import run_iteration
from train.programs.replay import FinishedPlies, steps_due


@pytest.mark.parametrize(
    ("every", "least", "expected"),
    [(0, 0, 0), (5, 0, 0), (1, 1, 1), (31, 10, 1), (64, 30, 4), (128, 60, 8), (900, 400, 8)],
)
def test_few_finished_plies_make_few_steps(every, least, expected):
    """Eight steps for the 128 plies of an iteration; none while a device has no finished game."""
    config = tiny.config("--selfplay.boards=16", "--learner.steps=8")
    assert steps_due(config, FinishedPlies(every, least)) == expected


@pytest.mark.slow
def test_the_learning_rate_goes_by_steps_taken():
    """Iterations that take no step or few of them do not move the schedule."""
    config = tiny.config("--learner.steps=8", "--learner.warmup=40", "--learner.optimizer=sgd")
    programs = tiny.shared_programs(config)
    state, taken = programs.init(), 0
    for iteration in range(3):
        state, row = run_iteration(config, programs, state, iteration)
        taken += row["steps"]
        assert int(state.learner.step) == taken
        counts = [
            int(x)
            for path, x in jax.tree_util.tree_leaves_with_path(state.learner.optimizer)
            if "count" in jax.tree_util.keystr(path)
        ]
        assert set(counts) == {taken}
    assert 0 < taken < 3 * 8
