"""A search that models its opponent: visits and values of a slow search that follows a policy."""

import math
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.searching import FOUR_STONES, play, random_evaluator, random_states
from train.network import MASKED, NetworkConfig, cast_weights
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation, Opposed
from train.search.search import Boosted, cast_own_weights, make_search

PUCT = SearchConfig(simulations=24, kind="puct", first_play="mctx", c_init=1.5)


def rival(variables: Any, states: Any, analysis: Any = None) -> Evaluation:
    """An opponent that likes what `random_evaluator` likes least, and whose values are wild."""
    assert variables == "rival"
    found = random_evaluator((), states)
    logits = jnp.where(found.logits > MASKED, -2.0 * found.logits, MASKED)
    return Evaluation(logits, 100.0 * found.value)


@jax.jit
def evaluate(states: Any) -> tuple[Evaluation, Evaluation]:
    return random_evaluator((), states), rival("rival", states)


class SlowNode:
    """A position with the sum of what the root's player got below it, in plain numbers."""

    def __init__(self, state: Any, reward: float, root: int) -> None:
        own, theirs = evaluate(jax.tree.map(lambda x: x[None], state))
        self.state, self.root = state, root
        self.is_theirs = int(state.position.player) != root
        self.is_over = bool(state.position.terminated)
        logits = np.asarray((theirs if self.is_theirs else own).logits[0], float)
        chances = np.exp(np.where(logits > MASKED, logits - logits.max(), -np.inf))
        self.prior = chances / chances.sum()
        value = float(own.value[0, root - int(state.position.player)])
        self.first = reward if self.is_over else value
        self.total, self.visits = 0.0, 0
        self.children: dict[int, SlowNode] = {}

    def visit(self) -> float:
        """One simulation below this node; returns what the root's player gets."""
        found = self.first
        if self.visits and not self.is_over:
            slot = self.next_slot()
            if slot not in self.children:
                after, rewards = jax.device_get(play(self.state, np.int32(slot)))
                self.children[slot] = SlowNode(after, float(rewards[self.root]), self.root)
            found = self.children[slot].visit()
        self.total, self.visits = self.total + found, self.visits + 1
        return found

    def next_slot(self) -> int:
        """At the opponent's nodes the slot whose visits lag furthest behind its policy, else
        PUCT's."""
        counts = {slot: child.visits for slot, child in self.children.items()}
        legal = np.flatnonzero(self.prior > 0).tolist()
        if self.is_theirs:
            return max(legal, key=lambda s: self.prior[s] - counts.get(s, 0) / self.visits)
        seen = {slot: child.total / child.visits for slot, child in self.children.items()}
        own = self.total / self.visits
        low, high = min([own, *seen.values()]), max([own, *seen.values()])
        weight = math.sqrt(self.visits) * (
            PUCT.c_init + math.log((self.visits + PUCT.c_base + 1) / PUCT.c_base)
        )

        def score(slot: int) -> float:
            value = (seen.get(slot, low) - low) / max(high - low, 1e-8)
            return value + weight * self.prior[slot] / (counts.get(slot, 0) + 1)

        return max(legal, key=score)


def test_visits_and_values_are_those_of_a_slow_search():
    """Both players are to move at some root, and the same side twice running below it."""
    states = jax.tree.map(lambda x: x[1:7], random_states(FOUR_STONES, 4, 1, 12))
    states = jax.tree.map(lambda x: x[~states.position.terminated], states)
    search = make_search(random_evaluator, PUCT, explores=False, model=rival)
    run = jax.jit(lambda states, key: search(Opposed((), "rival"), states, key))
    found = jax.device_get(run(states, jax.random.key(3)))
    assert len(set(states.position.player.tolist())) == 2
    for board in range(len(found.slot)):
        state = jax.tree.map(lambda x, board=board: x[board], states)
        root = SlowNode(state, 0.0, int(state.position.player))
        for _ in range(1 + PUCT.simulations):
            root.visit()
        counts = np.zeros_like(found.policy[board])
        for slot, child in root.children.items():
            counts[slot] = child.visits / PUCT.simulations
        np.testing.assert_allclose(found.policy[board], counts, atol=1e-6)
        np.testing.assert_allclose(found.value[board], root.total / root.visits, atol=1e-5)


@pytest.mark.parametrize("options", [{"engine": "mctx"}, {"custom": "mine"}])
def test_other_searches_model_nobody(options):
    with pytest.raises(ValueError, match="needs the search of the engine 'native'"):
        make_search(random_evaluator, SearchConfig(**options), explores=False, model=rival)


def test_weights_are_cast_for_the_own_network_alone():
    network = NetworkConfig(blocks="R", width=8, dtype="bfloat16")
    variables, boosts = tiny.random_weights(network), np.zeros(4, np.float32)
    found = cast_own_weights(Opposed(Boosted(variables, boosts), variables), network)
    chex.assert_trees_all_equal(found.own.variables, cast_weights(variables, network))
    assert found.own.variables.params["stem"]["conv"]["kernel"].dtype == jnp.bfloat16
    assert found.own.boosts is boosts
    assert found.opponent is variables
