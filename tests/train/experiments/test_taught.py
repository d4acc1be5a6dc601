"""Networks taught by the solver: lessons are the answers of the tables, and all goes through."""

from typing import Any, cast

import jax
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from train.checkpoints.exported import write_model
from train.experiments import taught
from train.experiments.lib.work import Work
from train.experiments.scales import read_scales
from train.network.build import network_for
from train.solver.exact_player import tables_of
from train.solver.tablebase import optimal_slots, value_of

SCALE = {"learned": [60], "steps": 2, "held_out": 40, "min_walls": 2, "simulations": [2]}
SCALE["kinds"] = ["gumbel"]


@pytest.fixture
def player(tmp_path) -> str:
    config = tiny.config()
    write_model(tmp_path / "player", tiny.new_weights(network_for(config.network, 2)), config, {})
    return str(tmp_path / "player")


def test_lessons_are_the_answers_of_the_tables(tmp_path):
    work = Work(read_scales({"taught": SCALE | {"players": ["x"]}}), tmp_path)
    solved, tables = taught._solve(work, tiny.RULES, 40, seed=1), tables_of(tiny.RULES)
    states = jax.tree.map(np.asarray, solved.states)
    best = jax.vmap(lambda state: optimal_slots(tables, state))(states)
    value = jax.vmap(lambda state: value_of(tables, state))(states)
    np.testing.assert_array_equal(solved.best, best)
    np.testing.assert_array_equal(solved.value, value)
    assert (solved.walls >= 2).all()
    lessons = taught._lessons(solved)
    rewards = lessons.outcome.rewards[np.arange(40), states.position.player]
    np.testing.assert_array_equal(rewards, value)
    np.testing.assert_array_equal(lessons.policy > 0, best)
    np.testing.assert_allclose(lessons.policy.sum(axis=1), 1, atol=1e-2)


def test_figures_count_what_is_kept_and_what_is_misjudged():
    state = taught.Solved(
        states=cast(Any, None),
        value=np.array([1, 0, 0, -1]),
        best=np.array([[1, 0], [1, 1], [0, 1], [1, 1]], bool),
        can_err=np.array([1, 0, 1, 0], bool),
        walls=np.array([4, 5, 7, 9]),
        key=np.arange(4),
    )
    figures = taught._figures(
        state, np.array([0, 0, 0, 1]), np.array([0.5, 0.3, -0.4, -1.0]), np.array([1, 0, 1, 0])
    )
    assert figures == {
        "% kept": 0.75,
        "where one can err": 0.5,
        "won": 1.0,
        "drawn": 0.5,
        "4 walls": 1.0,
        "5 to 6": 1.0,
        "7 to 8": 0.0,
        "from 9": 1.0,
        "search loses": 0.25,
        "misjudged": 0.25,
        "draws misjudged": 0.5,
    }


def test_networks_are_taught_and_asked(player, tmp_path):
    scale = {"taught": SCALE | {"players": [player]}}
    first, again = (train.run_study("taught", scale, out=tmp_path / "out") for _ in range(2))
    assert first.tables[0].rows == again.tables[0].rows
    assert [row[1] for row in first.tables[0].rows] == ["none", "gumbel 2"] * 2 + ["none"]
    assert train.make_player(str(tmp_path / "out/taught/network-60-2") + "@2").name
