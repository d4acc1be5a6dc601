"""Networks trained on the solver's answers: targets are those of the tables; all goes through."""

import json
from typing import Any, cast

import jax
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from train.checkpoints.exported import write_model
from train.experiments import supervised
from train.experiments.lib.scales import read_scales
from train.experiments.lib.work import Work
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


def test_targets_are_the_answers_of_the_tables(tmp_path):
    work = Work(read_scales({"supervised": SCALE | {"players": ["x"]}}), tmp_path)
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
    np.testing.assert_array_equal(samples.policy > 0, best)
    np.testing.assert_allclose(samples.policy.sum(axis=1), 1, atol=1e-2)


def test_figures_count_what_is_kept_and_what_is_misjudged():
    state = supervised.Solved(
        states=cast(Any, None),
        value=np.array([1, 0, 0, -1]),
        best=np.array([[1, 0], [1, 1], [0, 1], [1, 1]], bool),
        can_err=np.array([1, 0, 1, 0], bool),
        walls=np.array([4, 5, 7, 9]),
        key=np.arange(4),
    )
    figures = supervised._figures(
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


def test_networks_are_trained_and_asked(player, tmp_path):
    scale = {"supervised": SCALE | {"players": [player]}}
    first, again = (train.run_study("supervised", scale, out=tmp_path / "out") for _ in range(2))
    assert first.tables[0].rows == again.tables[0].rows
    assert [row[1] for row in first.tables[0].rows] == ["none", "gumbel 2"] * 2 + ["none"]
    assert train.make_player(str(tmp_path / "out/supervised/network-60-2") + "@2").name
    # Pieces are known by what files hold of a search, where what is off is a number.
    pieces = [json.loads(path.read_text()) for path in (tmp_path / "out/pieces").glob("*.json")]
    searches = [x["settings"]["search"] for x in pieces if "search" in x["settings"]]
    assert len(searches) == 5 and not any(None in search.values() for search in searches)
