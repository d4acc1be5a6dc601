"""The thread that searches what sessions ask: requests join and leave a batch between its chunks.

A session's tree lies in a row of the pool. It is searched on where the session has moved on from
where it stood; the row that was not searched for the longest time is given to a new session.
"""

import contextlib
import dataclasses
import functools
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax
import numpy as np

from train.engine.options import EngineOptions
from train.engine.programs import PATH_PLIES, Programs
from train.players.basic import Player
from train.search.config import considered_actions
from train.search.report import SearchReport, draw_place, report_finished_game
from train.search.sequential_halving import halving_dues
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

_GATHERING = 0.001
"""Seconds that an idle searcher waits for more after a first task, so that what is asked at the
same time begins together."""
_SHARE_OF_NEW = 0.3
"""Share of the last chunk in what is known of the seconds of a simulation."""
_GROWTH = 4
"""The most by which a budget of time grows when simulations take less time than they used to."""


class EvaluationRequest(NamedTuple):
    """A question about one position of a session, and what its search needs to know."""

    session: int  # number of the session, never used again
    rules: Rules
    state: State  # one board, NumPy arrays
    result: tuple[float, ...] | None  # of a finished game
    slots: tuple[int, ...]  # of the session's plies
    legal: int  # number of moves
    simulations: int | None
    seconds: float | None
    temperature: float

    @property
    def mover(self) -> int:
        """The player to move."""
        return int(self.state.position.player)


class _Row(NamedTuple):
    """The latest request for a row of the pool, at whose position the tree's root stands."""

    request: EvaluationRequest
    searched: int  # number of the search, for the oldest


@dataclasses.dataclass(eq=False)
class _Search:
    """A request that is being searched."""

    request: EvaluationRequest
    future: "Future[SearchReport]"
    row: int
    budget: int
    most: int  # simulations, to which a budget of time may grow
    considered: int  # actions, by `most`: they stay where the budget grows
    done: int = 0
    began: float = dataclasses.field(default_factory=time.perf_counter)

    @property
    def dues(self) -> tuple[int, ...]:
        """For each simulation, the visits that a slot of the root has had when it is due."""
        return _halving(self.considered, self.budget)

    def is_late(self, ahead: float) -> bool:
        """Whether its time will be over in this many seconds."""
        limit = self.request.seconds
        return limit is not None and time.perf_counter() - self.began + ahead > limit

    def plan_anew(self, seconds: float) -> None:
        """Let a search by time end when its time does, where a simulation takes this many seconds.

        A budget can change as long as another one would have visited the same slots so far: in the
        first round of the halving.
        """
        if self.request.seconds is None:
            return
        left = self.request.seconds - (time.perf_counter() - self.began)
        budget = min(self.done + int(left / max(seconds, 1e-9)), self.most)
        new = _halving(self.considered, budget)
        if budget > self.done and new[: self.done] == self.dues[: self.done]:
            self.budget = budget


class Searcher:
    """Answers requests; `submit`, `forget` and `shut_down` may be called from any thread.

    Attributes:
      largest_batch: the most requests that were searched together so far.
    """

    def __init__(self, programs: Programs, player: Player, options: EngineOptions) -> None:
        """Wait until the programs of the smallest batches are compiled, and run each of them."""
        self._options, self._player, self._programs = options, player, programs
        programs.wait()
        self._draw = np.random.default_rng(options.seed)
        self._pool: Any = self._programs.new_pool()
        self._rows: list[_Row | None] = [None] * options.trees
        self._waiting: list[tuple[EvaluationRequest, Future[SearchReport]]] = []
        self._active: list[_Search] = []
        self._count = 0
        self.largest_batch = 0
        self._seconds = self._measure()
        self._inbox: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="searcher", daemon=True)
        self._thread.start()

    def submit(self, request: EvaluationRequest) -> "Future[SearchReport]":
        """Ask; the answer comes through the future."""
        future: Future[SearchReport] = Future()
        self._inbox.put((request, future))
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
        for _, future in [*self._waiting, *((s.request, s.future) for s in self._active)]:
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
                    None if row and row.request.session == item else row for row in self._rows
                ]
            elif item is not None:
                self._waiting.append(item)
        return None not in items

    def _begin_searches(self) -> None:
        """Move waiting requests into the free rows of the batch."""
        self._active = [search for search in self._active if not search.future.cancelled()]
        room = self._programs.sizes[-1] - len(self._active)
        busy = {search.request.session for search in self._active}
        begun: list[_Search] = []
        paths: list[Sequence[int] | None] = []
        left = []
        for request, future in self._waiting:
            if future.cancelled():
                continue
            if request.result is not None:
                report = report_finished_game(request.state, request.result)
                self._answer(future, request, report)
            elif request.session in busy or len(begun) == room:
                left.append((request, future))
            else:
                busy.add(request.session)
                row, path = self._row_for(request, {s.row for s in [*self._active, *begun]})
                paths.append(path)
                budget, most = self._budget_of(request, len(self._active) + len(begun) + 1)
                considered = min(request.legal, considered_actions(self._player.search, most))
                begun.append(_Search(request, future, row, budget, most, considered))
        self._waiting = left
        if not begun:
            return
        self._active += begun
        self._pool = self._programs.resume(
            self._pool,
            [search.row for search in begun],
            paths,
            [search.most for search in begun],
            [search.request.state for search in begun],
        )
        self.largest_batch = max(self.largest_batch, len(self._active))

    def _row_for(
        self, request: EvaluationRequest, busy: set[int]
    ) -> tuple[int, Sequence[int] | None]:
        """The row for a session's tree, none of the busy ones, and the path from the root that the
        tree has now."""
        self._count += 1
        ages, path = {}, None
        for place, row in enumerate(self._rows):
            if row and row.request.session == request.session:
                ages, path = {place: 0}, self._path(row.request, request)
                break
            if place not in busy:
                ages[place] = row.searched if row else 0
        place = min(ages, key=ages.__getitem__)
        self._rows[place] = _Row(request, self._count)
        return place, path

    def _path(self, before: EvaluationRequest, request: EvaluationRequest) -> Sequence[int] | None:
        """The plies since a tree's root; None where the tree is of no use."""
        first = len(before.slots)
        path = request.slots[first:]
        is_after = request.slots[:first] == before.slots and len(path) <= PATH_PLIES
        # With more players all others play against the one at the root: a tree is that player's.
        is_own = request.rules.players == 2 or before.mover == request.mover
        return path if is_after and is_own and self._options.keeps_trees else None

    def _budget_of(self, request: EvaluationRequest, batch: int) -> tuple[int, int]:
        """Simulations of a request in a batch, and those to which they may grow."""
        if request.simulations is not None:
            return request.simulations, request.simulations
        assert request.seconds is not None
        # Half of a tree, so that the other half can be kept.
        half, seconds = self._options.nodes // 2, self._seconds[self._size_for(batch)]
        budget = max(1, min(int(request.seconds / max(seconds, 1e-9)), half))
        return budget, min(_GROWTH * budget, half)

    def _search_on(self) -> None:
        """Search the batch on by a chunk, and answer those whose budget is used up."""
        growing = [search for search in self._active if search.done < search.budget]
        if growing:
            steps = min(self._options.chunk, *(search.budget - search.done for search in growing))
            due = np.array([search.dues[search.done :][:steps] for search in growing])
            # Until the chunk is done, nothing can join it.
            seconds = self._timed_growth([search.row for search in growing], due)
            size = self._size_for(len(growing))
            self._seconds[size] += _SHARE_OF_NEW * (seconds - self._seconds[size])
            for search in growing:
                search.done += steps
                search.plan_anew(seconds)
        ahead = self._seconds[self._size_for(len(self._active))] * self._options.chunk
        over = [s for s in self._active if s.done >= s.budget or s.is_late(ahead)]
        if over:
            # Until they are answered, an error would be theirs as well.
            reports = self._programs.report(self._pool, [search.row for search in over])
            for place, search in enumerate(over):
                self._answer(search.future, search.request, reports[place], search.done)
        self._active = [search for search in self._active if search not in over]

    def _size_for(self, batch: int) -> int:
        return next(size for size in self._programs.sizes if size >= batch)

    def _answer(
        self,
        future: "Future[SearchReport]",
        request: EvaluationRequest,
        report: SearchReport,
        simulations: int = 0,
    ) -> None:
        """Answer a request by a report; with a temperature its action is drawn."""
        action = report.action
        if request.temperature > 0 and request.result is None:
            place = draw_place(report.policy, request.temperature, self._draw.random())
            action = report.actions[place]
        answer = dataclasses.replace(
            report,
            action=action,
            player=self._player.name,
            rules=request.rules,
            simulations=simulations,
            calibration=self._player.calibration,
        )
        if future.set_running_or_notify_cancel():
            future.set_result(answer)

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
