"""Searches what sessions ask, in a thread of its own.

A first version: each question is searched anew and alone, and its program is compiled when it is
first asked.
"""

import dataclasses
import functools
import queue
import threading
from concurrent.futures import Future
from typing import NamedTuple

import jax
import numpy as np

from train.engine.answers import Evaluation, win_chance
from train.engine.guide import Guide
from train.engine.options import EngineOptions
from train.runtime.host import fetch
from train.search.search import make_search
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import CANONICAL_SIDES, format_action


class Task(NamedTuple):
    """A question about one position."""

    session: str
    state: State
    slots: tuple[int, ...]
    ply: int
    legal: int
    rewards: tuple[float, ...] | None
    simulations: int | None
    seconds: float | None
    details: bool
    temperature: float


class Searcher:
    """Answers tasks."""

    def __init__(self, guide: Guide, rules: Rules, options: EngineOptions) -> None:
        self._guide, self._options = guide, options
        self._queue: queue.Queue[tuple[Task, Future[Evaluation]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> "Future[Evaluation]":
        future: Future[Evaluation] = Future()
        self._queue.put((task, future))
        return future

    def forget(self, session: str) -> None:
        """Drop a session's tree."""

    def shut_down(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            task, future = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._answer(task))
                except Exception as error:
                    future.set_exception(error)

    def _answer(self, task: Task) -> Evaluation:
        players = len(task.state.position.stones)
        mover = int(task.state.position.player)
        if task.rewards is not None:
            score = task.rewards if players > 2 else task.rewards[0]
            chance = win_chance(task.rewards[mover], players)
            return Evaluation(
                task.session, task.ply, mover, None, None, score, chance, 0, 0, (), ()
            )
        simulations = max(1, task.simulations or self._options.simulations)
        states = jax.tree.map(lambda x: np.asarray(x)[None], task.state)
        search = _search(self._guide.evaluate, self._guide.search, simulations)
        found = fetch(search(self._guide.variables, states, jax.random.key(0)))
        slot = int(found.slot[0])
        action = int(fetch(actions.action_of_slot(task.state, np.int32(slot))))
        value = float(found.value[0])
        own = value if mover == 0 else -value
        return Evaluation(
            session=task.session,
            ply=task.ply,
            player=mover,
            best_move=format_action(action, grid=task.state.grid, sides=CANONICAL_SIDES),
            action=action,
            evaluation=own if players == 2 else tuple([0.0] * players),
            win_chance=win_chance(value, players),
            simulations=simulations,
            visits=simulations + 1,
            candidates=() if task.details else None,
            policy=() if task.details else None,
        )


@functools.cache
def _search(evaluate, config, simulations):
    config = dataclasses.replace(config, simulations=simulations, first_simulations=0)
    return jax.jit(make_search(evaluate, config, explores=False))
