"""The thread that searches what sessions ask: tasks join and leave a batch between its chunks.

A session's tree lies in a row of the pool. It is searched on where the session has moved on from
where it stood; the row that was not searched for the longest time is given to a new session.
"""

import contextlib
import functools
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax
import numpy as np

from train.engine.answers import Evaluation
from train.engine.telling import Question, tell_finished_game, tell_search
from train.engine.trees.options import EngineOptions
from train.engine.trees.programs import PATH_PLIES, Programs
from train.search.config import SearchConfig, considered_actions
from train.search.sequential_halving import halving_dues

_GATHERING = 0.001
"""Seconds that an idle searcher waits for more after a first task, so that what is asked at the
same time begins together."""
_SHARE_OF_NEW = 0.3
"""Share of the last chunk in what is known of the seconds of a simulation."""
_GROWTH = 4
"""The most by which a budget of time grows when simulations take less time than they used to."""


class Task(NamedTuple):
    """A question, and what a search of its position needs to know."""

    session: int  # number of the session, never used again
    question: Question
    slots: tuple[int, ...]  # of the session's plies
    legal: int  # number of moves
    simulations: int | None
    seconds: float | None


class _Row(NamedTuple):
    """Whose tree lies in a row of the pool, and where its root stands."""

    session: int
    slots: tuple[int, ...]
    player: int
    searched: int  # number of the search, for the oldest


class _Search:
    """A task that is being searched."""

    def __init__(
        self,
        task: Task,
        future: "Future[Evaluation]",
        row: int,
        budget: int,
        most: int,  # simulations, to which a budget of time may grow
        considered: int,  # actions, by `most`: they stay where the budget grows
    ) -> None:
        self.task, self.future, self.row, self.budget = task, future, row, budget
        self.most, self.considered = most, considered
        self.done = 0
        self.began = time.perf_counter()

    def is_late(self, ahead: float) -> bool:
        """Whether its time will be over in so many seconds."""
        limit = self.task.seconds
        return limit is not None and time.perf_counter() - self.began + ahead > limit


class Searcher:
    """Answers tasks; `submit`, `forget` and `shut_down` may be called from any thread.

    Attributes:
      largest_batch: the most tasks that were searched together so far.
    """

    def __init__(self, programs: Programs, config: SearchConfig, options: EngineOptions) -> None:
        """Wait until the programs of the smallest batches are compiled, and run each of them."""
        self._options, self._config, self._programs = options, config, programs
        programs.wait()
        self._draw = np.random.default_rng(options.seed)
        self._pool: Any = self._programs.new_pool()
        self._rows: list[_Row | None] = [None] * options.trees
        self._waiting: list[tuple[Task, Future[Evaluation]]] = []
        self._active: list[_Search] = []
        self._count = 0
        self.largest_batch = 0
        self._seconds = self._measure()
        self._inbox: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="searcher", daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> "Future[Evaluation]":
        """Ask; the answer comes through the future."""
        future: Future[Evaluation] = Future()
        self._inbox.put((task, future))
        return future

    def forget(self, session: int) -> None:
        """Give the row of a session that has ended to others."""
        self._inbox.put(session)

    def shut_down(self) -> None:
        """End the thread; what is not answered is cancelled."""
        self._programs.stop()
        self._inbox.put(None)
        self._thread.join()

    def _measure(self) -> dict[int, float]:
        """Seconds of a simulation by size of the batch: of the smallest by the clock, of others in
        proportion, until they have been searched."""
        size, programs = self._options.batch_sizes[0], self._programs
        due = np.zeros((size, min(self._options.chunk, self._options.nodes - 1)), np.int32)
        rows, states, seconds = list(range(size)), [programs.start] * size, 0.0
        for _ in range(2):  # A program's first run takes longer.
            self._pool = programs.resume(self._pool, rows, [None] * size, [1] * size, states)
            seconds = self._timed_growth(rows, due)
        programs.report(self._pool, rows)
        programs.describe(self._pool, rows)
        return {other: seconds * other / size for other in self._options.batch_sizes}

    def _timed_growth(self, rows: Sequence[int], due: np.ndarray) -> float:
        """Seconds of a simulation of these trees, whose dues int32[len(rows), steps] are given."""
        jax.block_until_ready(self._pool.used)
        began = time.perf_counter()
        self._pool = self._programs.grow(self._pool, rows, due)
        jax.block_until_ready(self._pool.used)
        return (time.perf_counter() - began) / due.shape[1]

    def _work(self) -> None:
        while self._take():
            try:
                self._begin_searches()
                if self._active:
                    self._search_on()
            except Exception as error:
                self._fail(error)
        for _, future in [*self._waiting, *((s.task, s.future) for s in self._active)]:
            future.cancel()

    def _take(self) -> bool:
        """Take what is asked, waiting where there is nothing to do; False at the end."""
        is_idle = not (self._active or self._waiting)
        items = [self._inbox.get()] if is_idle else []
        if is_idle:
            time.sleep(_GATHERING)
        with contextlib.suppress(queue.Empty):
            while True:
                items.append(self._inbox.get_nowait())
        for item in items:
            if isinstance(item, int):
                self._rows = [
                    None if row is not None and row.session == item else row for row in self._rows
                ]
            elif item is not None:
                self._waiting.append(item)
        return None not in items

    def _begin_searches(self) -> None:
        """Let waiting tasks join the batch, as many as it has room for."""
        self._active = [search for search in self._active if not search.future.cancelled()]
        room = self._programs.sizes[-1] - len(self._active)
        busy = {search.task.session for search in self._active}
        begun: list[_Search] = []
        paths: list[Sequence[int] | None] = []
        left = []
        for task, future in self._waiting:
            if future.cancelled():
                continue
            if task.question.rewards is not None:
                _answer(future, tell_finished_game(task.question))
            elif task.session in busy or len(begun) == room:
                left.append((task, future))
            else:
                busy.add(task.session)
                row, path = self._row_for(task, {s.row for s in [*self._active, *begun]})
                paths.append(path)
                seconds = self._seconds[self._size_for(len(self._active) + len(begun) + 1)]
                budget = most = self._budget_of(task, seconds)
                if task.simulations is None:
                    most = min(_GROWTH * budget, self._options.nodes // 2)
                considered = min(task.legal, considered_actions(self._config, most))
                search = _Search(task, future, row, budget, most, considered)
                begun.append(search)
        self._waiting = left
        if not begun:
            return
        self._active += begun
        self._pool = self._programs.resume(
            self._pool,
            [search.row for search in begun],
            paths,
            [search.most for search in begun],
            [search.task.question.state for search in begun],
        )
        self.largest_batch = max(self.largest_batch, len(self._active))

    def _row_for(self, task: Task, busy: set[int]) -> tuple[int, Sequence[int] | None]:
        """The row for a session's tree, none of the busy ones, and the path from the root that the
        tree has now."""
        self._count += 1
        new = _Row(task.session, task.slots, task.question.mover, self._count)
        for place, row in enumerate(self._rows):
            if row is not None and row.session == task.session:
                self._rows[place] = new
                return place, self._path(row, task)
        idle = [place for place in range(len(self._rows)) if place not in busy]

        def age(place: int) -> int:
            row = self._rows[place]
            return 0 if row is None else row.searched

        place = min(idle, key=age)
        self._rows[place] = new
        return place, None

    def _path(self, row: _Row, task: Task) -> Sequence[int] | None:
        """The plies since a tree's root; None where the tree is of no use."""
        path = task.slots[len(row.slots) :]
        is_after = task.slots[: len(row.slots)] == row.slots and len(path) <= PATH_PLIES
        # With more players all others play against the one at the root: a tree is that player's.
        is_own = task.question.players == 2 or row.player == task.question.mover
        return path if is_after and is_own and self._options.keeps_trees else None

    def _budget_of(self, task: Task, seconds: float) -> int:
        """Simulations of a task, where one takes so many seconds."""
        if task.simulations is not None:
            return task.simulations
        assert task.seconds is not None
        # Half of a tree, so that the other half can be kept.
        return max(1, min(int(task.seconds / max(seconds, 1e-9)), self._options.nodes // 2))

    def _plan_anew(self, search: _Search, seconds: float) -> None:
        """Let a search by time end when its time does, where a simulation takes so many seconds.

        A budget can change as long as another one would have visited the same slots so far: in the
        first round of the halving.
        """
        limit = search.task.seconds
        assert limit is not None
        left = limit - (time.perf_counter() - search.began)
        budget = min(search.done + int(left / max(seconds, 1e-9)), search.most)
        new = _halving(search.considered, budget)
        if budget > search.done and new[: search.done] == self._dues(search)[: search.done]:
            search.budget = budget

    def _search_on(self) -> None:
        """Search the batch on by a chunk, and answer those whose budget is used up."""
        left = [search.budget - search.done for search in self._active]
        steps = min(self._options.chunk, *[left_ for left_ in left if left_ > 0] or [0])
        growing = [search for search in self._active if search.done < search.budget]
        if growing and steps:
            due = np.array([self._dues(search)[search.done :][:steps] for search in growing])
            # Until the chunk is done, nothing can join it.
            seconds = self._timed_growth([search.row for search in growing], due)
            size = self._size_for(len(growing))
            self._seconds[size] += _SHARE_OF_NEW * (seconds - self._seconds[size])
            for search in growing:
                search.done += steps
                if search.task.seconds is not None:
                    self._plan_anew(search, seconds)
        ahead = self._seconds[self._size_for(len(self._active))] * self._options.chunk
        over = [s for s in self._active if s.done >= s.budget or s.is_late(ahead)]
        # Until they are answered, an error would be theirs as well.
        self._report(over)
        self._active = [search for search in self._active if search not in over]

    def _size_for(self, batch: int) -> int:
        return next(size for size in self._programs.sizes if size >= batch)

    def _dues(self, search: _Search) -> tuple[int, ...]:
        return _halving(search.considered, search.budget)

    def _report(self, over: Sequence[_Search]) -> None:
        if not over:
            return
        found = self._programs.report(self._pool, [search.row for search in over])
        asked = [search for search in over if search.task.question.details]
        details: dict[int, Any] = {}
        if asked:
            told = self._programs.describe(self._pool, [search.row for search in asked])
            for place, search in enumerate(asked):
                details[search.row] = jax.tree.map(lambda x, place=place: x[place], told)
        for place, search in enumerate(over):
            own = jax.tree.map(lambda x, place=place: x[place], found)
            answer = tell_search(
                search.task.question,
                own,
                details.get(search.row),
                simulations=search.done,
                draw=self._draw,
            )
            _answer(search.future, answer)

    def _fail(self, error: Exception) -> None:
        """Tell all who wait of an error, and begin anew: the pool may be lost."""
        for search in self._active:
            if not search.future.done():
                search.future.set_exception(error)
        self._active, self._rows = [], [None] * self._options.trees
        self._pool = self._programs.new_pool()


@functools.lru_cache(maxsize=4096)
def _halving(considered: int, simulations: int) -> tuple[int, ...]:
    return tuple(halving_dues(considered, simulations))


def _answer(future: "Future[Evaluation]", answer: Evaluation) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(answer)
