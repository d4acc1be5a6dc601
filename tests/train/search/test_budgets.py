"""A search that is told its budget finds what a search of that budget alone finds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.searching import DUEL, random_evaluator, random_states
from train.search.config import SearchConfig
from train.search.engine import Budget
from train.search.search import make_budgeted_search, make_search

GUMBEL = SearchConfig(max_considered_actions=4)
PUCT = SearchConfig(kind="puct", temperature_plies=6)


@pytest.mark.parametrize(
    ("rules", "config"),
    [
        (DUEL, GUMBEL),
        pytest.param(DUEL, PUCT, marks=pytest.mark.slow),
        pytest.param(DUEL, dataclasses.replace(PUCT, engine="mctx"), marks=pytest.mark.slow),
    ],
    ids=["gumbel", "puct", "mctx"],
)
def test_each_budget_finds_what_it_finds_alone(rules, config):
    budgets = Budget(12, True), Budget(5, False)
    search = jax.jit(make_budgeted_search(random_evaluator, config, budgets))
    states, key = random_states(rules, 4, 1, 12), jax.random.key(3)
    slots = []
    for index, (simulations, explores) in enumerate(budgets):
        found = search((), states, key, jnp.int32(index))
        alone = dataclasses.replace(config, simulations=simulations)
        expected = jax.jit(make_search(random_evaluator, alone, explores=explores))
        expected = expected((), states, key)
        np.testing.assert_array_equal(found.slot, expected.slot)
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
        slots.append(found.slot.tolist())
    assert slots[0] != slots[1]
