"""A game that people and machines play at one board; the referee decides what is allowed."""

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train.review.puzzle_file import Puzzle
from train.runtime.errors import one_line
from train.ui.game_tree import Clocks, GameTree, Node, path_to
from train.ui.machine import GLANCE, HINT, LEVELS, PERSON, Level, Machine
from wallgo_jax.notation import COLOURS
from wallgo_jax.view.illegality import illegality

PLAY, ANALYSE = "play", "analyse"
OPEN, SOLVED, SHOWN = "open", "solved", "shown"
"""States of a puzzle."""
PACE_SECONDS = 0.3
"""Least time of a machine's move, so that people see it."""
_NO_TIME = "the time is over: analyse, or start a new game"
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class PuzzleTask:
    """A puzzle in the hands of a person."""

    key: str  # of the puzzle in `puzzles_by_key`
    puzzle: Puzzle  # position and solution
    mover: int  # the player to move
    state: str = OPEN  # OPEN until it is SOLVED or its solution is SHOWN
    tried: list[int] = dataclasses.field(default_factory=list)
    """Wrong moves as public actions, the last one last."""


class ReviewStatus(NamedTuple):
    """The progress of a review."""

    tip: int  # number of the last position of the line that is reviewed
    began: float = 0.0  # time in seconds, as `time.monotonic` gives it
    positions: int = 0  # that are searched
    share: float = 0.0  # of the search that is done, 0 to 1
    name: str = ""  # of the finished review on the server, or empty
    accuracy: tuple[int | None, ...] = ()
    """Of each player in per cent, None where a player made no move; empty until it is finished."""
    error: str = ""  # why there is no review, or empty

    @property
    def is_running(self) -> bool:
        """Whether it is neither finished nor failed."""
        return not self.name and not self.error


@dataclasses.dataclass(eq=False)
class GameSession:
    """One game: in play the seats take turns; in analysis any ply can be tried anywhere.

    The actions of people raise a ValueError, one line, where the game does not allow them.
    """

    tree: GameTree  # the game and its variations; the game begins at its current position
    seats: Sequence[str]  # PERSON or the machine's level, for each colour
    machine: Machine  # searches for its moves, hints and evaluations
    clocks: Clocks | None = None  # None for no limit of time
    mode: str = PLAY  # PLAY or ANALYSE
    task: PuzzleTask | None = None  # the puzzle that is set here, or None
    tip: Node = dataclasses.field(init=False)  # the end of the line that is played
    forfeit: tuple[int, str] | None = None  # a loss off the board as (player, reason), or None
    shows_evaluation: bool = False  # whether each position is evaluated
    hint: int | None = None  # number of the position that a hint was asked for, or None
    error: str = ""  # why the machine cannot go on until something changes, or empty
    search: tuple[Level, float] | None = None
    """The level of the search that somebody waits for and when it began, as `time.monotonic` gives
    it; None while nobody waits."""
    review: ReviewStatus | None = None  # progress of the latest review, or None
    _listeners: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    _worker: asyncio.Task[None] | None = None
    _alarm: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.tip = self.tree.current

    # Listeners.

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks at the game; machines wait until somebody does."""
        return bool(self._listeners)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function after each change from now on."""
        self._listeners.append(listener)
        self.machine.listeners.add(self._notify)
        self._set_clocks()
        self._go_on()

    def leave(self, listener: Callable[[], None]) -> None:
        """Stop calling a function."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def wait_while(self, is_waiting: Callable[[], bool]) -> None:
        """Wait for the change after which something no longer holds, or the machine fails."""
        changed = asyncio.Event()
        self.listen(changed.set)
        try:
            while is_waiting() and not self.error:
                changed.clear()
                await changed.wait()
        finally:
            self.leave(changed.set)

    def close(self) -> None:
        """End the game: nothing is searched or timed for it any more."""
        self._listeners.clear()
        self.machine.listeners.discard(self._notify)
        for waiting in (self._worker, self._alarm):
            if waiting is not None:
                waiting.cancel()

    # The state of the game.

    @property
    def is_over(self) -> bool:
        """Whether the line that is played has ended, on the board or off it."""
        return self.forfeit is not None or self.tip.snapshot.is_over

    @property
    def is_machines_turn(self) -> bool:
        """Whether the machine moves next, without being asked."""
        is_machine = self.seats[self.tip.snapshot.player] != PERSON
        return self.mode == PLAY and not self.is_over and is_machine

    @property
    def may_play(self) -> bool:
        """Whether a person may play in the current position."""
        if self.mode == ANALYSE:
            return not self.tree.current.snapshot.is_over
        return self.tree.current is self.tip and not self.is_over and not self.is_machines_turn

    @property
    def is_posed(self) -> bool:
        """Whether a puzzle waits for its solution: nothing is evaluated, and wrong moves are not
        played."""
        return self.task is not None and self.task.state == OPEN

    @property
    def _is_time_over(self) -> bool:
        """Whether the game was lost on time, so that nobody can play on."""
        clocks, forfeit = self.clocks, self.forfeit
        return clocks is not None and forfeit is not None and clocks.left(forfeit[0]) <= 0

    # Actions of people.

    def play(self, move: str | int) -> None:
        """Play a person's move, in any notation or a public action, in the current position."""
        snapshot = self.tree.current.snapshot
        if not self.may_play:
            raise ValueError(self._why_not_play())
        action = self.tree.current.position.read(move)
        if self.task is None or not self.is_posed:
            self._move(self.tree.current, action)
        elif action not in snapshot.legal:
            raise ValueError(illegality(snapshot, action))
        elif action == self.task.puzzle.solution:
            self._solve(self.task, SOLVED)
        else:
            self.task.tried = [each for each in self.task.tried if each != action] + [action]
        self._changed()

    def show_solution(self) -> None:
        """Give a puzzle up: its solution is played."""
        if self.task is None or not self.is_posed:
            raise ValueError("there is no puzzle to solve")
        self._solve(self.task, SHOWN)
        self._changed()

    def take_back(self) -> None:
        """Take back to where a person last chose; in analysis, one ply."""
        is_play = self.mode == PLAY
        if is_play and self._is_time_over:
            raise ValueError(_NO_TIME)
        node = self.tip if is_play else self.tree.current
        has_person = is_play and PERSON in self.seats
        while has_person and node.mover is not None and self.seats[node.mover] != PERSON:
            assert node.parent is not None, "a node with a mover has a parent"
            node = node.parent
        if node.parent is None and not (is_play and self.forfeit is not None):
            raise ValueError("there is no move of yours to take back")
        is_of_game = is_play or node in path_to(self.tip)
        if node.parent is not None:
            self.tree.remove(node)
            self.tree.current = node.parent
            self.tip = node.parent if is_of_game else self.tip
        if is_of_game and not self._is_time_over:
            self.forfeit = None
        self._changed()

    def go(self, number: int | None) -> None:
        """Look at another position."""
        self.tree.current = self.tree.node(number)
        self._changed()

    def remove(self, number: int | None) -> None:
        """Take a variation out of the tree."""
        node = self.tree.node(number)
        is_of_game = node in path_to(self.tip)
        if self.mode == PLAY and is_of_game:
            raise ValueError("these moves are the game; take them back, or analyse first")
        self.tree.remove(node)
        if is_of_game and node.parent is not None:
            self.tip = node.parent
        self._changed()

    def set_mode(self, mode: str) -> None:
        """Turn to analysis, or play on from the current position."""
        if mode == PLAY and self.mode == ANALYSE:
            if self.tree.current is not self.tip:
                if self._is_time_over:
                    raise ValueError(_NO_TIME)
                self.forfeit = None
            self.tip = self.tree.current
            self.tree.promote(self.tip)
            self.tree.names = None
        self.mode = mode
        self._changed()

    def resign(self) -> None:
        """Give the game up for the player to move, or the only person."""
        people = [player for player, seat in enumerate(self.seats) if seat == PERSON]
        if self.is_over or not people or self.mode == ANALYSE:
            raise ValueError("there is no game that a person could resign")
        mover = self.tip.snapshot.player
        self.forfeit = (mover if mover in people else people[0], "resigned")
        self._changed()

    def ask_hint(self) -> None:
        """Search the current position for a hint."""
        if self.tree.current.snapshot.is_over:
            raise ValueError("the game is over: there is no move to hint at")
        self.hint = self.tree.current.number
        self._changed()

    def show_evaluation(self, is_shown: bool) -> None:
        """Evaluate each position from now on, or stop."""
        self.shows_evaluation = is_shown
        self._changed()

    def set_review(self, status: ReviewStatus) -> None:
        """Note the progress of a review of the game."""
        self.review = status
        self._notify()

    # The course of the game.

    def _why_not_play(self) -> str:
        if self.tree.current.snapshot.is_over or self.is_over:
            return "the game is over"
        if self.tree.current is not self.tip:
            return "this is an earlier position: go to the last move, or analyse"
        return f"{COLOURS[self.tree.current.snapshot.player]} is played by the machine"

    def _solve(self, task: PuzzleTask, state: str) -> None:
        """Play the line of the puzzle's solution, and look at the position after its first move."""
        task.state, self.mode = state, ANALYSE
        self.tree.current = self.tip
        for action in task.puzzle.line:
            if action not in self.tree.current.snapshot.legal:
                break
            self.tree.play(action)
        self.tree.current, self.tip = self.tip.children[0], self.tree.current

    def _move(self, before: Node, action: int) -> None:
        node, clocks = self.tree.add(before, action), self.clocks
        if self.tree.current is before:
            self.tree.current = node
        if self.mode == PLAY:
            self.tip = node
            if clocks is not None and clocks.running is not None:
                clocks.seconds[before.snapshot.player] += clocks.settings.increment

    def _changed(self) -> None:
        """Go on after an action of a person; the machine may be able to, again."""
        self.error = ""
        self._update()

    def _update(self) -> None:
        if self.hint != self.tree.current.number:
            self.hint = None  # A position that is looked at again has no hint until it is asked.
        self._set_clocks()
        self._notify()
        self._go_on()

    def _notify(self) -> None:
        for listener in list(self._listeners):
            listener()

    def _set_clocks(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self.clocks is None:
            return
        # Nobody's time runs before the first move.
        if self.mode == ANALYSE or self.is_over or self.tip.parent is None:
            self.clocks.stop()
            return
        mover, loop = self.tip.snapshot.player, asyncio.get_running_loop()
        self.clocks.start(mover)
        self._alarm = loop.call_later(self.clocks.left(mover) + 0.01, self._check_time)

    def _check_time(self) -> None:
        clocks = self.clocks
        if clocks is not None and clocks.running is not None and not clocks.left(clocks.running):
            self.forfeit = (clocks.running, "ran out of time")
        self._update()

    def _go_on(self) -> None:
        if self._worker is None and self.is_watched and self._next_search() is not None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Search while there is something to search."""
        try:
            while self.is_watched and (search := self._next_search()) is not None:
                node, level, is_move = search
                is_awaited = is_move or self.hint == node.number
                self.search = (level, time.monotonic()) if is_awaited else None
                self.machine.prepare(self.tree.rules)
                self._notify()
                await self._search(node, level, is_move=is_move)
        except ValueError as error:
            self.error = one_line(error)
        except Exception:
            _LOG.exception("the machine failed")
            self.error = "the machine failed; the console says why"
        finally:
            self._worker = self.search = None
            with contextlib.suppress(RuntimeError):  # The loop is closed at the end of the server.
                self._update()

    def _next_search(self) -> tuple[Node, Level, bool] | None:
        """The position to search next, at which level, and whether to move there."""
        node = self.tree.current
        if self.error or self.is_posed:
            return None
        if self.is_machines_turn:
            return self.tip, LEVELS[self.seats[self.tip.snapshot.player]], True
        if node.snapshot.is_over:
            return None
        done = 0 if node.report is None else node.report.simulations
        if self.hint == node.number and done < HINT.simulations:
            return node, HINT, False
        if self.shows_evaluation and done < GLANCE.simulations:
            return node, GLANCE, False
        return None

    async def _search(self, node: Node, level: Level, *, is_move: bool) -> None:
        pause = asyncio.sleep(PACE_SECONDS if is_move else 0)
        search = self.machine.search(self.tree.rules, node, level)
        report, _ = await asyncio.gather(search, pause)
        node.note(report)
        # People may have changed everything since.
        if is_move and node is self.tip and self.is_machines_turn:
            self._move(node, int(report.action))
        self._update()
