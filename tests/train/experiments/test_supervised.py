"""Networks trained on the solver's answers: targets are those of the tables; all goes through."""

from typing import Any, cast

import jax
import numpy as np

from tests.support.learner import tiny
from train.data.best_slots import spread_out
from train.experiments import lab, supervised
from train.solver.exact_player import tables_of
from train.solver.tablebase import optimal_slots, value_of


def test_targets_are_the_answers_of_the_tables(tmp_path):
    work = lab.Lab("supervised", supervised.Scale(out=tmp_path, min_walls=2))
    solved, tables = supervised._solve(work, tiny.RULES, 40, seed=1), tables_of(tiny.RULES)
    states = jax.tree.map(np.asarray, solved.states)
    best = jax.vmap(lambda state: optimal_slots(tables, state))(states)
    value = jax.vmap(lambda state: value_of(tables, state))(states)
    np.testing.assert_array_equal(solved.best, best)
    np.testing.assert_array_equal(solved.value, value)
    assert (solved.walls >= 2).all()
    samples = supervised._samples(solved)
    rewards = samples.outcome.rewards[np.arange(40), states.position.player]
    np.testing.assert_array_equal(rewards, value)
    policy = spread_out(samples.policy, best.shape[1])
    np.testing.assert_array_equal(policy > 0, best)
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-2)
    assert not np.any(samples.policy.rest)


def test_figures_count_what_is_kept_and_what_is_misjudged():
    state = supervised.Solved(
        states=cast(Any, None),
        value=np.array([1, 0, 0, -1]),
        best=np.array([[1, 0], [1, 1], [0, 1], [1, 1]], bool),
        can_err=np.array([1, 0, 1, 0], bool),
        walls=np.array([4, 5, 7, 9]),
        key=np.arange(4),
    )
    figures = supervised.counts_of(
        state, np.array([0, 0, 0, 1]), np.array([0.5, 0.3, -0.4, -1.0]), np.array([1, 0, 1, 0])
    )
    shares = {name: (each["kept"], each["of"]) for name, each in figures.items()}
    assert shares == {
        "% kept": (3, 4),
        "where one can err": (1, 2),
        "won": (1, 1),
        "drawn": (1, 2),
        "4 walls": (1, 1),
        "5 to 6": (1, 1),
        "7 to 8": (0, 1),
        "from 9": (1, 1),
        "search loses": (1, 4),
        "misjudged": (1, 4),
        "draws misjudged": (1, 2),
    }
