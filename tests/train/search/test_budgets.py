"""A search that is told its budget finds what a search of that budget alone finds."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import hashed_game
from tests.support.learner.searching import DUEL, even_evaluator, repeat
from train.functions import Function
from train.search.config import SearchConfig
from train.search.gumbel import make_gumbel
from train.search.puct import make_puct
from train.search.search import make_search
from train.search.tree import Budget
from wallgo_jax.game.state import State, initial_state

BUDGETS = Budget(24, True), Budget(9, False)


@pytest.mark.parametrize(
    ("make", "config", "boards"),
    [
        (make_gumbel, hashed_game.GUMBEL, hashed_game.GUMBEL_BOARDS),
        (make_puct, hashed_game.PUCT, hashed_game.PUCT_BOARDS),
    ],
    ids=["gumbel", "puct"],
)
def test_each_budget_finds_what_it_finds_alone(make, config, boards):
    """`test_search` asks such a search of real games."""
    search, slots = hashed_game.compiled(make(config, BUDGETS)), []
    for index, (simulations, explores) in enumerate(BUDGETS):
        root = hashed_game.roots(boards)._replace(budget=np.int32(index))
        found = search(jax.random.key(hashed_game.SEED), root)
        alone = dataclasses.replace(config, simulations=simulations)
        expected = hashed_game.chosen(alone, explores, boards)
        np.testing.assert_array_equal(found.slot, expected.slot)
        for one, other in ((found.policy, expected.policy), (found.value, expected.value)):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
        slots.append(found.slot.tolist())
    assert slots[0] != slots[1]


def test_elsewhere_each_budget_is_a_search_of_its_own():
    """A search that Python passes: it plays the last legal slot, and its value is its budget."""

    def own(ask: Any, states: State, key: jax.Array, *, simulations: int, explores: bool) -> Any:
        legal = ask(states).logits == 0
        slot = legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)
        value = jnp.full(len(slot), simulations + 0.5 * explores)
        return slot, jax.nn.one_hot(slot, legal.shape[1]), value

    config = SearchConfig(custom=Function("own", own))
    search = jax.jit(make_search(even_evaluator, config, budgets=BUDGETS))
    states = repeat(initial_state(DUEL), 2)
    for index, value in enumerate((24.5, 9.0)):
        found = jax.device_get(search((), states, jax.random.key(0), jnp.int32(index)))
        assert found.value.tolist() == [value] * 2
        assert found.slot.tolist() == [8] * 2
        np.testing.assert_allclose(found.surprise, np.log(9), rtol=1e-5)
        assert ((found.prior == 0).sum(axis=1) == 9).all()
