"""The one door to the machine: asks a search about a position without holding up the server."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import jax
import numpy as np

from train.play.levels import opponent_for
from train.play.thoughts import Idea, Thought
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_evaluator
from train.registry import load_network
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.evaluator import evaluator_for
from train.search.search import Search, make_search
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State


class Thinker(Protocol):
    """Searches positions."""

    async def think(self, rules: Rules, state: State, simulations: int) -> Thought:
        """Search a position in which the game goes on."""
        ...


class SearchThinker:
    """Searches one position after the other in a thread of its own."""

    def __init__(self) -> None:
        """Start the thread; it ends with the process."""
        self._pool = ThreadPoolExecutor(1, "search")

    async def think(self, rules: Rules, state: State, simulations: int) -> Thought:
        """Search a position in which the game goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _think, rules, state, simulations)


def _think(rules: Rules, state: State, simulations: int) -> Thought:
    search, variables = _search_of(rules, simulations)
    batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    found = fetch(search(variables, batch, jax.random.key(0)))
    legal = np.flatnonzero(found.policy[0] > 0)
    public = {int(slot): int(fetch(_to_action(state, slot))) for slot in legal}
    policy = sorted(
        ((public[int(slot)], float(found.policy[0, slot])) for slot in legal), key=lambda p: -p[1]
    )
    loss = -1.0 / (rules.players - 1)
    chance = min(max((float(found.value[0]) - loss) / (1 - loss), 0.0), 1.0)
    mover = int(state.position.player)
    others = (1 - chance) / (rules.players - 1)
    chances = tuple(chance if player == mover else others for player in range(rules.players))
    ideas = tuple(Idea(action, chance, share, (action,)) for action, share in policy[:5])
    chosen = public.get(int(found.slot[0]), policy[0][0])
    return Thought(chosen, chances, ideas, tuple(policy), None, simulations)


_to_action = jax.jit(actions.action_of_slot)


@functools.cache
def _search_of(rules: Rules, simulations: int) -> tuple[Search, Any]:
    name = opponent_for(rules).name
    if name.startswith("pretrained:"):
        trained = load_network(name)
        config = dataclasses.replace(trained.config.search, simulations=simulations)
        evaluate, variables = evaluator_for(trained.config.network, rules), trained.variables
    else:
        evaluate, variables = make_heuristic_evaluator(HeuristicsConfig().wjx), ()
        config = SearchConfig(simulations=simulations)
    return jax.jit(make_search(evaluate, config, explores=False)), variables
