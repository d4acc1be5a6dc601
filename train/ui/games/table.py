"""A game that people and machines play at one board; the referee decides what is allowed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence

from train.ui.games.clocks import Clocks
from train.ui.games.game_tree import GameTree, Node, path_to
from train.ui.games.levels import GLANCE_SIMULATIONS, HINT_SIMULATIONS, LEVELS
from train.ui.games.puzzle_task import SHOWN, SOLVED, PuzzleTask
from train.ui.games.review_status import ReviewStatus
from train.ui.games.seats import Seat
from train.ui.games.thinking import Thinker
from train.ui.games.thoughts import Thought, choose
from wallgo_jax.notation import COLOURS, parse_action
from wallgo_jax.view.illegality import illegality

PLAY, ANALYSE = "play", "analyse"
PACE_SECONDS = 0.3
"""Least time of a machine's move, so that people see it."""
_NO_TIME = "the time is over: analyse, or start a new game"
_LOG = logging.getLogger(__name__)


class Table:
    """One game: in play the seats take turns; in analysis any ply can be tried anywhere.

    Attributes:
      tree: the game and its variations.
      seats: who plays each colour.
      mode: PLAY or ANALYSE.
      tip: the end of the line that is played.
      clocks: None without clocks.
      forfeit: why a player has lost off the board, as (player, reason), or None.
      shows_evaluation: whether each position is evaluated.
      hint: number of the position that a hint was asked for, or None.
      is_thinking: whether a search goes on for this table.
      complaint: why the machine cannot go on until something changes, or empty.
      task: the puzzle that is set here, or None.
      review: how far the latest review of the game is, or None.
    """

    def __init__(
        self,
        tree: GameTree,
        seats: Sequence[Seat],
        thinker: Thinker,
        *,
        clocks: Clocks | None = None,
        mode: str = PLAY,
        seed: int | None = None,
    ) -> None:
        """Set up a game at the current position of a tree.

        Args:
          tree: the game so far.
          seats: one for each player.
          thinker: searches for the machine, hints and evaluations.
          clocks: None for no limit of time.
          mode: PLAY or ANALYSE.
          seed: of the machine's draws; None for a new one each time.
        """
        self.tree, self.seats, self.mode, self.clocks = tree, tuple(seats), mode, clocks
        self.tip = tree.current
        self.forfeit: tuple[int, str] | None = None
        self.shows_evaluation = False
        self.hint: int | None = None
        self.is_thinking, self.complaint = False, ""
        self.task: PuzzleTask | None = None
        self.review: ReviewStatus | None = None
        self._thinker, self._source = thinker, random.Random(seed)
        self._listeners: list[Callable[[], None]] = []
        self._worker: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    # Listeners.

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks at the table; machines wait until somebody does."""
        return bool(self._listeners)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function after each change from now on."""
        self._listeners.append(listener)
        self._set_clocks()
        self._go_on()

    def leave(self, listener: Callable[[], None]) -> None:
        """Stop calling a function."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self) -> None:
        """End the table: nothing is searched or timed for it any more."""
        self._listeners.clear()
        for waiting in (self._worker, self._alarm):
            if waiting is not None:
                waiting.cancel()
        self._thinker.forget(self.tree.root)

    @property
    def is_preparing(self) -> bool:
        """Whether a search waits for programs that are being compiled."""
        return self.is_thinking and not self._thinker.is_ready(self.tree.rules)

    # What people do.

    @property
    def is_over(self) -> bool:
        """Whether the line that is played has ended, on the board or off it."""
        return self.forfeit is not None or self.tip.snapshot.is_over

    @property
    def may_play(self) -> bool:
        """Whether a person may play in the current position."""
        node = self.tree.current
        if node.snapshot.is_over:
            return False
        if self.mode == ANALYSE:
            return True
        seat = self.seats[node.snapshot.player]
        return node is self.tip and not self.is_over and not seat.is_machine

    def play(self, move: str) -> None:
        """Play a person's move, in any notation, in the current position.

        Raises:
          ValueError: it is unreadable or not allowed, and why.
        """
        if not self.may_play:
            raise ValueError(self._why_not_play())
        snapshot = self.tree.current.snapshot
        action, player = parse_action(move, grid=snapshot.grid)
        if player is not None and player != snapshot.player:
            raise ValueError(f"{COLOURS[snapshot.player]} is to move, not {COLOURS[player]}")
        if self.is_posed:
            self._try(action)
        else:
            self._move(action)
        self._changed()

    @property
    def is_posed(self) -> bool:
        """Whether a puzzle waits for its solution: nothing is evaluated, and wrong moves are not
        played."""
        return self.task is not None and self.task.is_open

    def show_solution(self) -> None:
        """Give a puzzle up: its solution is played.

        Raises:
          ValueError: no puzzle waits for one.
        """
        if not self.is_posed:
            raise ValueError("there is no puzzle to solve")
        self._solve(SHOWN)
        self._changed()

    def set_review(self, status: ReviewStatus) -> None:
        """Note how far a review of the game is."""
        self.review = status
        self._tell()

    def take_back(self) -> None:
        """Take back to where a person last chose; in analysis, one ply.

        Raises:
          ValueError: there is nothing to take back, or no time to play on.
        """
        if self.mode == PLAY and self._is_time_over:
            raise ValueError(_NO_TIME)
        node = self.tree.current if self.mode == ANALYSE else self.tip
        while node.parent is not None:
            is_own = node.mover is not None and not self.seats[node.mover].is_machine
            if is_own or self.mode == ANALYSE or all(seat.is_machine for seat in self.seats):
                break
            node = node.parent
        keeps_tip = self.mode == ANALYSE and node not in path_to(self.tip)
        if node.parent is None and (self.mode == ANALYSE or self.forfeit is None):
            raise ValueError("there is no move of yours to take back")
        if node.parent is not None:
            self.tree.remove(node.number)
            self.tip = self.tip if keeps_tip else node.parent
            self.tree.current = node.parent
        if not keeps_tip and not self._is_time_over:
            self.forfeit = None
        self._changed()

    @property
    def _is_time_over(self) -> bool:
        """Whether the game was lost on time, so that nobody can play on."""
        clocks, forfeit = self.clocks, self.forfeit
        return clocks is not None and forfeit is not None and clocks.left(forfeit[0]) <= 0

    def go(self, number: int) -> None:
        """Look at another position."""
        self.tree.go(number)
        self._changed()

    def remove(self, number: int) -> None:
        """Take a variation out of the tree.

        Raises:
          ValueError: it is the line that is played, or the start.
        """
        node = self.tree.node(number)
        if self.mode == PLAY and node in path_to(self.tip):
            raise ValueError("these moves are the game; take them back, or analyse first")
        parent = node.parent
        if parent is not None and node in path_to(self.tip):
            self.tip = parent
        self.tree.remove(number)
        self._changed()

    def set_mode(self, mode: str) -> None:
        """Turn to analysis, or play on from the current position.

        Raises:
          ValueError: there is no such mode, or no time to play on.
        """
        if mode not in (PLAY, ANALYSE):
            raise ValueError(f"mode: {mode!r} is not {PLAY} or {ANALYSE}")
        if mode == PLAY and self.mode == ANALYSE:
            if self.tree.current is not self.tip:
                if self._is_time_over:
                    raise ValueError(_NO_TIME)
                self.forfeit = None
            self.tip = self.tree.current
            self.tree.promote(self.tip.number)
            self.tree.names = None
        self.mode = mode
        self._changed()

    def set_seats(self, seats: Sequence[Seat]) -> None:
        """Change who plays each colour."""
        self.seats = tuple(seats)
        self._changed()

    def resign(self) -> None:
        """Give the game up for the player to move, or the only person.

        Raises:
          ValueError: the game is over, or no person plays.
        """
        people = [player for player, seat in enumerate(self.seats) if not seat.is_machine]
        if self.is_over or not people or self.mode == ANALYSE:
            raise ValueError("there is no game that a person could resign")
        mover = self.tip.snapshot.player
        self.forfeit = (mover if mover in people else people[0], "resigned")
        self._changed()

    def ask_hint(self) -> None:
        """Search the current position for a hint.

        Raises:
          ValueError: the game is over there.
        """
        if self.tree.current.snapshot.is_over:
            raise ValueError("the game is over: there is no move to hint at")
        self.hint = self.tree.current.number
        self._changed()

    def show_evaluation(self, is_shown: bool) -> None:
        """Evaluate each position from now on, or stop."""
        self.shows_evaluation = is_shown
        self._changed()

    # How the game goes on.

    def _why_not_play(self) -> str:
        if self.tree.current.snapshot.is_over or self.is_over:
            return "the game is over"
        if self.tree.current is not self.tip:
            return "this is an earlier position: go to the last move, or analyse"
        return f"{COLOURS[self.tree.current.snapshot.player]} is played by the machine"

    def _try(self, action: int) -> None:
        """Try a move as the solution of the puzzle; a wrong one is noted, not played."""
        task, snapshot = self.task, self.tree.current.snapshot
        assert task is not None
        if action not in snapshot.legal:
            raise ValueError(illegality(snapshot, action))
        if action == task.solution:
            self._solve(SOLVED)
        else:
            task.note(action)

    def _solve(self, state: str) -> None:
        """Play the line of the puzzle's solution, and look at the position after its first move."""
        assert self.task is not None
        self.task.state, self.mode = state, ANALYSE
        self.tree.current = self.tip
        for action in self.task.line:
            if self.tree.current.snapshot.is_over or action not in self.tree.current.snapshot.legal:
                break
            self.tree.play(action)
        self.tree.current, self.tip = self.tip.children[0], self.tree.current

    def _move(self, action: int) -> None:
        mover = self.tree.current.snapshot.player
        node = self.tree.play(action)
        if self.mode == PLAY:
            self.tip = node
            if self.clocks is not None and self.clocks.running is not None:
                self.clocks.add_increment(mover)

    def _changed(self) -> None:
        """Go on after something that a person did; the machine may be able to, again."""
        self.complaint = ""
        self._update()

    def _update(self) -> None:
        self._set_clocks()
        self._tell()
        self._go_on()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()

    def _set_clocks(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        clocks = self.clocks
        if clocks is None:
            return
        # Nobody's time runs before the first move.
        if self.mode == ANALYSE or self.is_over or self.tip.parent is None:
            clocks.stop()
            return
        mover = self.tip.snapshot.player
        clocks.start(mover)
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(clocks.left(mover) + 0.01, self._check_time)

    def _check_time(self) -> None:
        flagged = self.clocks.flagged if self.clocks is not None else None
        if flagged is not None and not self.is_over:
            self.forfeit = (flagged, "ran out of time")
        self._update()

    def _go_on(self) -> None:
        if self._worker is None and self.is_watched and self._next_search() is not None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Search as long as there is something to search."""
        try:
            while self.is_watched and (job := self._next_search()) is not None:
                node, simulations, is_move = job
                self.is_thinking = is_move or self.hint == node.number
                self._tell()
                await self._search(node, simulations, is_move=is_move)
        except ValueError as error:
            self.complaint = " ".join(str(error).split())
        except Exception:
            _LOG.exception("the machine failed")
            self.complaint = "the machine failed; the console says why"
        finally:
            self._worker, self.is_thinking = None, False
            with contextlib.suppress(RuntimeError):  # The loop is closed at the end of the server.
                self._update()

    def _next_search(self) -> tuple[Node, int, bool] | None:
        """The position to search next, with how many simulations, and whether to move there."""
        if self.complaint or self.is_posed:
            return None
        tip, node = self.tip, self.tree.current
        if self.mode == PLAY and not self.is_over:
            seat = self.seats[tip.snapshot.player]
            if seat.is_machine:
                return tip, LEVELS[seat.level].simulations, True
        if node.snapshot.is_over:
            return None
        done = 0 if node.thought is None else node.thought.simulations
        if self.hint == node.number and done < HINT_SIMULATIONS:
            return node, HINT_SIMULATIONS, False
        if self.shows_evaluation and done < GLANCE_SIMULATIONS:
            return node, GLANCE_SIMULATIONS, False
        return None

    async def _search(self, node: Node, simulations: int, *, is_move: bool) -> None:
        pause = asyncio.sleep(PACE_SECONDS if is_move else 0)
        thinking = self._thinker.think(self.tree.rules, node, simulations, is_move=is_move)
        thought, _ = await asyncio.gather(thinking, pause)
        self._keep(node, thought)
        if is_move and self._is_machines_turn(node):
            seat = self.seats[node.snapshot.player]
            looked_at, self.tree.current = self.tree.current, node
            try:
                self._move(choose(thought, LEVELS[seat.level], self._source))
            finally:
                if looked_at is not node:
                    self.tree.current = looked_at
        self._update()

    def _is_machines_turn(self, node: Node) -> bool:
        """Whether the machine may still move there: people may have changed everything since."""
        seat = self.seats[node.snapshot.player]
        return self.mode == PLAY and node is self.tip and not self.is_over and seat.is_machine

    def _keep(self, node: Node, thought: Thought) -> None:
        if node.thought is None or node.thought.simulations <= thought.simulations:
            node.thought = thought
