"""Trees of several minds against a slow search: max^n, and an opponent that is modelled."""

import math
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.searching import (
    FOUR_STONES,
    TRIO,
    game_of,
    play,
    random_evaluator,
    random_states,
    stack,
)
from train.network import MASKED, NetworkConfig, cast_weights
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation, WithOpponentVariables
from train.search.search import PriorBoost, SearchResult, cast_own_weights, make_search
from wallgo_jax.game.state import State

PUCT = SearchConfig(simulations=24, kind="puct", first_play="mctx", c_init=1.5)
MAXN = SearchConfig(simulations=24, kind="puct", first_play="mctx", opponents="maxn", c_init=1.5)


def rival(variables: Any, states: Any, analysis: Any = None) -> Evaluation:
    """An opponent that likes what `random_evaluator` likes least, and whose values are wild."""
    assert variables == "rival"
    evaluation = random_evaluator((), states)
    logits = jnp.where(evaluation.logits > MASKED, -2.0 * evaluation.logits, MASKED)
    return Evaluation(logits, 100.0 * evaluation.value)


@jax.jit
def evaluate(states: Any) -> tuple[Evaluation, Evaluation]:
    return random_evaluator((), states), rival("rival", states)


class SlowNode:
    """A position with the sum of what each player got below it, in plain numbers.

    `root` is the player whose opponent is modelled, or None where nobody is.
    """

    def __init__(self, state: Any, rewards: np.ndarray, root: int | None) -> None:
        own, theirs = evaluate(jax.tree.map(lambda x: x[None], state))
        self.state, self.root, self.mover = state, root, int(state.position.player)
        self.is_theirs = root not in (None, self.mover)
        self.is_over = bool(state.position.terminated)
        logits = np.asarray((theirs if self.is_theirs else own).logits[0], float)
        chances = np.exp(np.where(logits > MASKED, logits - logits.max(), -np.inf))
        self.prior = chances / chances.sum()
        # The values begin with the player to move.
        self.returns = rewards if self.is_over else np.roll(own.value[0], self.mover)
        self.total, self.visits = np.zeros(len(self.returns)), 0
        self.children: dict[int, SlowNode] = {}

    def visit(self) -> np.ndarray:
        """One simulation below this node; returns what each player gets."""
        returns = self.returns
        if self.visits and not self.is_over:
            slot = self.next_slot()
            if slot not in self.children:
                after, rewards = jax.device_get(play(self.state, np.int32(slot)))
                self.children[slot] = SlowNode(after, rewards, self.root)
            returns = self.children[slot].visit()
        self.total, self.visits = self.total + returns, self.visits + 1
        return returns

    def next_slot(self) -> int:
        """At the opponent's nodes the slot whose visits lag furthest behind its policy, else PUCT's
        with the mover's own values, spread over those that the node knows."""
        counts = {slot: child.visits for slot, child in self.children.items()}
        legal = np.flatnonzero(self.prior > 0).tolist()
        if self.is_theirs:
            return max(legal, key=lambda s: self.prior[s] - counts.get(s, 0) / self.visits)
        own = self.total[self.mover] / self.visits
        seen = {s: child.total[self.mover] / child.visits for s, child in self.children.items()}
        low, high = min([own, *seen.values()]), max([own, *seen.values()])
        weight = math.sqrt(self.visits) * (
            PUCT.c_init + math.log((self.visits + PUCT.c_base + 1) / PUCT.c_base)
        )

        def score(slot: int) -> float:
            value = (seen.get(slot, low) - low) / max(high - low, 1e-8)
            return value + weight * self.prior[slot] / (counts.get(slot, 0) + 1)

        return max(legal, key=score)


def assert_is_slow_searchs(found: SearchResult, states: State, *, models: bool) -> None:
    """Visits and values are those of a slow search of each board."""
    for board in range(len(found.slot)):
        state = jax.tree.map(lambda x, board=board: x[board], states)
        mover = int(state.position.player)
        root = SlowNode(state, np.zeros(0), mover if models else None)
        for _ in range(1 + PUCT.simulations):
            root.visit()
        counts = np.zeros_like(found.policy[board])
        for slot, child in root.children.items():
            counts[slot] = child.visits / PUCT.simulations
        np.testing.assert_allclose(found.policy[board], counts, atol=1e-6)
        value = root.total[mover] / root.visits
        np.testing.assert_allclose(found.value[board], value, atol=1e-5)


def test_a_model_of_the_opponent_is_followed():
    """Both players are to move at some root, and the same side twice running below it."""
    states = jax.tree.map(lambda x: x[1:7], random_states(FOUR_STONES, 4, 1, 12))
    states = jax.tree.map(lambda x: x[~states.position.terminated], states)
    search = make_search(random_evaluator, PUCT, explores=False, model=rival)
    run = jax.jit(lambda states, key: search(WithOpponentVariables((), "rival"), states, key))
    found = jax.device_get(run(states, jax.random.key(3)))
    assert len(set(states.position.player.tolist())) == 2
    assert_is_slow_searchs(found, states, models=True)


def test_each_of_three_players_maximises_its_own_share():
    states = jax.device_get(stack(game_of(TRIO, 7)[4:]))
    states = jax.tree.map(lambda x: x[~states.position.terminated], states)
    search = make_search(random_evaluator, MAXN, explores=False)
    found = jax.device_get(jax.jit(search)((), states, jax.random.key(3)))
    assert set(states.position.player.tolist()) == {0, 1, 2}
    assert_is_slow_searchs(found, states, models=False)


@pytest.mark.parametrize("options", [{"engine": "mctx"}, {"custom": "mine"}])
def test_other_searches_model_nobody(options):
    with pytest.raises(AssertionError, match="needs the engine"):
        make_search(random_evaluator, SearchConfig(**options), explores=False, model=rival)


def test_weights_are_cast_for_the_own_network_alone():
    network = NetworkConfig(blocks="R", width=8, dtype="bfloat16")
    variables, boosts = tiny.random_weights(network), np.zeros(4, np.float32)
    found = cast_own_weights(
        WithOpponentVariables(PriorBoost(variables, boosts), variables), network
    )
    chex.assert_trees_all_equal(found.own.variables, cast_weights(variables, network))
    assert found.own.variables.params["stem"]["conv"]["kernel"].dtype == jnp.bfloat16
    assert found.own.boosts is boosts
    assert found.opponent is variables
