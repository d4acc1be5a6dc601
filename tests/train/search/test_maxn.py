"""A max^n tree against a slow search with a vector of returns at each node."""

import math
from typing import Any

import jax
import numpy as np

from tests.support.learner.searching import TRIO, game_of, play, random_evaluator, stack
from train.network import MASKED
from train.search.config import SearchConfig
from train.search.search import make_search

CONFIG = SearchConfig(simulations=24, kind="puct", first_play="mctx", opponents="maxn", c_init=1.5)

evaluate = jax.jit(lambda states: random_evaluator((), states))


class SlowNode:
    """A position with the sum of what each player got below it, in plain numbers."""

    def __init__(self, state: Any, rewards: np.ndarray) -> None:
        found = evaluate(jax.tree.map(lambda x: x[None], state))
        self.state, self.mover = state, int(state.position.player)
        self.is_over = bool(state.position.terminated)
        logits = np.asarray(found.logits[0], float)
        chances = np.exp(np.where(logits > MASKED, logits - logits.max(), -np.inf))
        self.prior = chances / chances.sum()
        # The values begin with the player to move.
        self.returns = rewards if self.is_over else np.roll(found.value[0], self.mover)
        self.total, self.visits = np.zeros(3), 0
        self.children: dict[int, SlowNode] = {}

    def visit(self) -> np.ndarray:
        """One simulation below this node; returns what each player gets."""
        returns = self.returns
        if self.visits and not self.is_over:
            slot = self.best_slot()
            if slot not in self.children:
                self.children[slot] = SlowNode(*jax.device_get(play(self.state, np.int32(slot))))
            returns = self.children[slot].visit()
        self.total, self.visits = self.total + returns, self.visits + 1
        return returns

    def best_slot(self) -> int:
        """PUCT with the mover's own values, spread over those that the node knows."""
        own = self.total[self.mover] / self.visits
        seen = {s: c.total[self.mover] / c.visits for s, c in self.children.items()}
        low, high = min([own, *seen.values()]), max([own, *seen.values()])
        weight = math.sqrt(self.visits) * (
            CONFIG.c_init + math.log((self.visits + CONFIG.c_base + 1) / CONFIG.c_base)
        )

        def score(slot: int) -> float:
            count = self.children[slot].visits if slot in self.children else 0
            value = (seen.get(slot, low) - low) / max(high - low, 1e-8)
            return value + weight * self.prior[slot] / (count + 1)

        return max(np.flatnonzero(self.prior > 0).tolist(), key=score)


def test_visits_and_values_are_those_of_a_slow_search():
    states = jax.device_get(stack(game_of(TRIO, 7)[4:]))
    is_on = ~states.position.terminated
    states = jax.tree.map(lambda x: x[is_on], states)
    search = make_search(random_evaluator, CONFIG, explores=False)
    found = jax.device_get(jax.jit(search)((), states, jax.random.key(3)))
    movers = set()
    for board in range(len(found.slot)):
        state = jax.tree.map(lambda x, board=board: x[board], states)
        root = SlowNode(state, np.zeros(3))
        for _ in range(1 + CONFIG.simulations):
            root.visit()
        counts = np.zeros_like(found.policy[board])
        for slot, child in root.children.items():
            counts[slot] = child.visits / CONFIG.simulations
        np.testing.assert_allclose(found.policy[board], counts, atol=1e-6)
        value = root.total[root.mover] / root.visits
        np.testing.assert_allclose(found.value[board], value, atol=1e-5)
        movers.add(root.mover)
    assert movers == {0, 1, 2}
