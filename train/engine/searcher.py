"""The thread that searches what sessions ask: searches join and leave a batch between its chunks.

A session's tree lies in a row of the pool. It is searched on where the session has moved on from
where it stood; the row that was not searched for the longest time is given to a new session.
A session is an open game: a position, and the way back to where the game began. The referee plays
its plies, in any notation.
"""

import contextlib
import dataclasses
import functools
import math
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
from train.runtime.errors import UsageError, usage_errors
from train.runtime.host import fetch
from train.search.config import considered_actions
from train.search.report import SearchReport, draw_place, report_finished_game
from train.search.sequential_halving import halving_dues
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_position, make_variant
from wallgo_jax.notation import COLOURS, parse_action
from wallgo_jax.view.game_replay import play_action


class GamePosition(NamedTuple):
    """A position of a game and the way to it. Arrays are NumPy's."""

    state: State
    legal: int  # number of legal moves
    result: tuple[float, ...] | None  # each player's reward once the game is over
    before: "GamePosition | None"  # None where the game begins
    actions: tuple[int, ...]  # public ids of the plies from there
    slots: tuple[int, ...]  # of these plies

    @property
    def ply(self) -> int:
        """Plies played, those before a given position included."""
        return int(self.state.position.ply)

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.position.player)

    def play(self, move: str | int) -> "GamePosition":
        """The position after a move in any notation, or a public action id.

        Raises:
          UsageError: it is unreadable or illegal.
        """
        action = self.read(move)
        with usage_errors("move"):
            state, rewards = play_action(self.state, action)
        slot = _slot_of(self.state, np.int32(action))
        way = (*self.actions, action), (*self.slots, int(slot))
        result = rewards if state.position.terminated else None
        return GamePosition(state, int(_count_legal(state)), result, self, *way)

    def read(self, move: str | int) -> int:
        """The public action of a move in any notation, or of a public action id; legal or not.

        Raises:
          UsageError: it is unreadable, or names another colour than that of the player to move.
        """
        if not isinstance(move, str):
            return int(move)
        with usage_errors("move"):
            action, player = parse_action(move, grid=self.state.grid)
        if player not in (None, self.player) and self.result is None:
            raise UsageError(f"move: {COLOURS[self.player]} is to move, not {COLOURS[player]}")
        return action


@dataclasses.dataclass(eq=False)
class Session:
    """An open game, and the budget of an answer where the session has its own."""

    rules: Rules
    position: GamePosition
    simulations: int | None = None
    seconds: float | None = None


def begin_game(rules: Rules, state: State | None = None) -> GamePosition:
    """Begin a game, or go on from one board of the rules whose game goes on."""
    if state is None:
        variant: Any = make_variant(rules)
        state = State(variant, fetch(_begin(variant)))
    return GamePosition(state, int(fetch(_count_legal(state))), None, None, (), ())


def play_moves(position: GamePosition, moves: Sequence[str | int]) -> GamePosition:
    """The position after moves.

    Raises:
      UsageError: the first of the moves that cannot be played, as `ply N: reason`.
    """
    for move in moves:
        with usage_errors(f"ply {position.ply + 1}"):
            position = position.play(move)
    return position


_begin = jax.jit(initial_position)
_slot_of = jax.jit(actions_lib.slot_of_action)


@jax.jit
def _count_legal(state: State) -> jax.Array:
    return actions_lib.legal_slots(state).sum()


_GATHERING = 0.001
"""Seconds that an idle searcher waits for more after a first task, so that what is asked at the
same time begins together."""
_SHARE_OF_NEW = 0.3
"""Share of the last chunk in what is known of the seconds of a simulation."""
_GROWTH = 4
"""The most by which a budget of time grows when simulations take less time than they used to."""


@dataclasses.dataclass(eq=False)
class Search:
    """A search of one position that was asked for, and how far it is."""

    session: Session  # whose tree is searched
    position: GamePosition  # of the session when it was asked
    simulations: int | None  # None where seconds are the budget
    seconds: float | None  # None where simulations are
    temperature: float  # of the move that is drawn; 0 for the strongest
    future: "Future[SearchReport]" = dataclasses.field(default_factory=Future)
    row: int = 0  # of the pool, where the tree lies
    budget: int = 0  # simulations
    most: int = 0  # simulations, to which a budget of time may grow
    considered: int = 0  # actions, by `most`: they stay where the budget grows
    done: int = 0  # simulations
    asked: float = 0.0  # seconds, as `time.perf_counter` gives them
    ends: float = math.inf  # seconds, of a budget of time

    @property
    def dues(self) -> tuple[int, ...]:
        """For each simulation, the visits that a slot of the root has had when it is due."""
        return _halving(self.considered, self.budget)

    @property
    def seconds_left(self) -> float:
        """Of its share of the time; without end where simulations are the budget."""
        return self.ends - time.perf_counter()

    def plan_anew(self, seconds: float) -> None:
        """Let a search by time end when its time does, where a simulation takes this many seconds.

        A budget can change as long as another one would have visited the same slots so far: in the
        first round of the halving.
        """
        if self.seconds is None:
            return
        budget = min(self.done + int(self.seconds_left / max(seconds, 1e-9)), self.most)
        new = _halving(self.considered, budget)
        if budget > self.done and new[: self.done] == self.dues[: self.done]:
            self.budget = budget


class Searcher:
    """Answers searches; `submit`, `forget` and `shut_down` may be called from any thread.

    Attributes:
      largest_batch: the most positions that were searched together so far.
    """

    def __init__(self, programs: Programs, player: Player, options: EngineOptions) -> None:
        """Wait until the programs of the smallest batches are compiled, and run each of them."""
        self._options, self._player, self._programs = options, player, programs
        programs.wait()
        self._draw = np.random.default_rng(options.seed)
        self._pool: Any = programs.new_pool()
        # The latest search of each row, the oldest first; the tree's root stands at its position.
        self._rows: dict[int, Search | None] = dict.fromkeys(range(options.trees))
        self._waiting: list[Search] = []
        self._active: list[Search] = []
        self.largest_batch = 0
        self._seconds = self._measure()
        self._inbox: queue.Queue[Search | Session | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="searcher", daemon=True)
        self._thread.start()

    def submit(self, search: Search) -> "Future[SearchReport]":
        """Ask; the answer comes through the future."""
        search.asked = time.perf_counter()
        self._inbox.put(search)
        return search.future

    def forget(self, session: Session) -> None:
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
        for search in [*self._waiting, *self._active]:
            search.future.cancel()

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
            if isinstance(item, Search):
                self._waiting.append(item)
            elif item is not None and (row := self._row_of(item)) is not None:
                del self._rows[row]
                self._rows = {row: None, **self._rows}
        return None not in items

    def _row_of(self, session: Session) -> int | None:
        rows = self._rows.items()
        return next((row for row, last in rows if last and last.session is session), None)

    def _begin_searches(self) -> None:
        """Move waiting searches into the free rows of the batch. Where those by time are more than
        it has room for, each gets a share of the time, so that the last is answered in time too."""
        self._active = [search for search in self._active if not search.future.cancelled()]
        room = self._programs.sizes()[-1] - len(self._active)
        timed = sum(search.seconds is not None for search in self._waiting)
        turns = max(math.ceil(timed / max(room, 1)), 1)
        busy = {search.session for search in self._active}
        begun: list[Search] = []
        left: list[Search] = []
        paths: list[Sequence[int] | None] = []
        for search in self._waiting:
            if search.future.cancelled():
                continue
            if search.position.result is not None:
                report = report_finished_game(search.position.state, search.position.result)
                self._answer(search, report)
            elif search.session in busy:
                search.asked = time.perf_counter()  # its own answer before it takes no time of it
                left.append(search)
            elif len(begun) == room:
                left.append(search)
            else:
                busy.add(search.session)
                paths.append(self._place(search, {s.row for s in [*self._active, *begun]}))
                self._set_budget(search, len(self._active) + len(begun) + 1, turns)
                begun.append(search)
        self._waiting = left
        if not begun:
            return
        self._active += begun
        rows, rooms = [each.row for each in begun], [each.most for each in begun]
        states = [each.position.state for each in begun]
        self._pool = self._programs.resume(self._pool, rows, paths, rooms, states)
        self.largest_batch = max(self.largest_batch, len(self._active))

    def _place(self, search: Search, busy: set[int]) -> Sequence[int] | None:
        """Give a search its session's row, else the oldest that is not busy; returns the path from
        the root that the tree has now, None where the tree is of no use."""
        row = self._row_of(search.session)
        search.row = next(row for row in self._rows if row not in busy) if row is None else row
        last = self._rows.pop(search.row)
        self._rows[search.row] = search
        if row is None or last is None or not self._options.keeps_trees:
            return None
        root, position = last.position, search.position
        path = position.slots[len(root.slots) :]
        is_after = position.slots[: len(root.slots)] == root.slots and len(path) <= PATH_PLIES
        # With more players all others play against the one at the root: a tree is that player's.
        is_own = search.session.rules.players == 2 or root.player == position.player
        return path if is_after and is_own else None

    def _set_budget(self, search: Search, batch: int, turns: int) -> None:
        """Set the simulations of a search that begins in a batch, the first of some turns."""
        if search.seconds is None:
            search.budget = search.most = search.simulations or 0
        else:
            # Half of a tree, so that the other half can be kept.
            half = self._options.nodes // 2
            now = time.perf_counter()
            seconds = self._seconds[self._programs.size_for(batch)]
            share = max(search.asked + search.seconds - now, 0.0) / turns
            search.ends = now + share
            search.budget = max(1, min(int(share / max(seconds, 1e-9)), half))
            search.most = min(_GROWTH * search.budget, half)
        considered = considered_actions(self._player.search, search.most)
        search.considered = min(search.position.legal, considered)

    def _search_on(self) -> None:
        """Search the batch on by a chunk, and answer those whose budget is used up."""
        growing = [search for search in self._active if search.done < search.budget]
        size_for = self._programs.size_for
        if growing:
            steps = min(self._options.chunk, *(search.budget - search.done for search in growing))
            due = np.array([search.dues[search.done :][:steps] for search in growing])
            # Until the chunk is done, nothing can join it.
            seconds = self._timed_growth([search.row for search in growing], due)
            size = size_for(len(growing))
            self._seconds[size] += _SHARE_OF_NEW * (seconds - self._seconds[size])
            for search in growing:
                search.done += steps
                search.plan_anew(seconds)
        ahead = self._seconds[size_for(len(self._active))] * self._options.chunk
        over = [s for s in self._active if s.done >= s.budget or s.seconds_left < ahead]
        if over:
            # Until they are answered, an error would be theirs as well.
            reports = self._programs.report(self._pool, [search.row for search in over])
            for place, search in enumerate(over):
                self._answer(search, reports[place])
        self._active = [search for search in self._active if search not in over]

    def _answer(self, search: Search, report: SearchReport) -> None:
        """Answer by a report; with a temperature its action is drawn."""
        if search.temperature > 0 and search.position.result is None:
            place = draw_place(report.policy, search.temperature, self._draw.random())
            report = dataclasses.replace(report, action=report.actions[place])
        answer = report.of_player(self._player, search.session.rules, search.done)
        if search.future.set_running_or_notify_cancel():
            search.future.set_result(answer)

    def _fail(self, error: Exception) -> None:
        """Tell all who wait of an error, and begin anew: the pool may be lost."""
        for search in self._active:
            if not search.future.done():
                search.future.set_exception(error)
        self._active, self._rows = [], dict.fromkeys(range(self._options.trees))
        self._pool = self._programs.new_pool()


@functools.lru_cache(maxsize=4096)
def _halving(considered: int, simulations: int) -> tuple[int, ...]:
    return tuple(halving_dues(considered, simulations))
