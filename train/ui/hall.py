"""All tables of a server, by names that cannot be guessed, and what each message does to them."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from train.ui import wire
from train.ui.games import saving
from train.ui.games.clocks import Clocks, read_clock
from train.ui.games.game_tree import GameTree
from train.ui.games.levels import DEFAULT_LEVEL
from train.ui.games.puzzle_task import OPEN
from train.ui.games.seats import MACHINE, PERSON, Seat, read_seats
from train.ui.games.table import ANALYSE, PLAY, Table
from train.ui.games.thinking import Thinker
from train.ui.puzzles import PuzzleBook
from train.ui.reviewing import Reviewer
from wallgo_jax.formats import diagram
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.snapshot import take_snapshot

MAX_TABLES = 32
_NAME = re.compile(r"[A-Za-z0-9_-]{12}")


class Hall:
    """The tables of a server.

    Attributes:
      default_rules: of the first game of a page.
      player: the machine in all seats; empty for the one that comes with the rules.
      reviewer: reviews the games.
      puzzles: to solve.
    """

    def __init__(
        self,
        thinker: Thinker,
        default_rules: Rules,
        *,
        player: str = "",
        reviewer: Reviewer | None = None,
        puzzles: PuzzleBook | None = None,
    ) -> None:
        """Open a hall without tables."""
        self.default_rules, self.player = default_rules, player
        self.reviewer = reviewer or Reviewer()
        self.puzzles = puzzles or PuzzleBook()
        self._thinker = thinker
        self._tables: dict[str, Table] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def find(self, name: object) -> Table | None:
        """The table of a name, which becomes the last one to be cleared away."""
        if not isinstance(name, str) or name not in self._tables:
            return None
        self._tables[name] = self._tables.pop(name)
        return self._tables[name]

    def add(self, table: Table, name: object = None) -> str:
        """Keep a table; the one that nobody has looked at for longest makes room for it.

        Args:
          table: the table.
          name: the one that it had at a server before, which no table has here; None, or what no
            server gives, for a new one.

        Returns:
          its name.

        Raises:
          ValueError: every table is in use.
        """
        if len(self._tables) >= MAX_TABLES:
            idle = [name for name, other in self._tables.items() if not other.is_watched]
            if not idle:
                raise ValueError(f"all {MAX_TABLES} tables are in use; close a page first")
            self._tables.pop(idle[0]).close()
        self._thinker.prepare(table.tree.rules)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            name = secrets.token_urlsafe(9)
        self._tables[name] = table
        return name

    def close(self) -> None:
        """Close all tables."""
        for table in self._tables.values():
            table.close()
        self._tables.clear()

    async def enter(self, message: Mapping[str, Any]) -> tuple[str, Table]:
        """Find the table of an `open` message; else set it up anew under its name from the page's
        copy; else start a game."""
        name, copy = message.get("table"), message.get("copy")
        found = self.find(name)
        if found is not None:
            return str(name), found
        if not isinstance(copy, dict):
            return await self.start({})
        try:
            table = await asyncio.to_thread(self._restore, copy)
        except (ValueError, TypeError, KeyError):
            return await self.start({})  # The copy is of another version.
        found = self.find(name)  # Another page that shows it may have been faster.
        if found is not None:
            return str(name), found
        return self.add(table, name), table

    async def start(self, message: Mapping[str, Any]) -> tuple[str, Table]:
        """Start the game that a `new` message asks for."""
        table = await self._new(message)
        return self.add(table), table

    async def load(self, message: Mapping[str, Any]) -> tuple[str, Table]:
        """Set up the game that a `load` message holds."""
        text = message.get("text")
        if not isinstance(text, str) or not text.strip():
            raise ValueError("load: needs the text of a game")
        told = message.get("rules")
        rules = self.default_rules if told is None else saving.read_rules(told)
        table = await asyncio.to_thread(saving.read_game, text, self._thinker, rules)
        return self.add(table), table

    async def pose(self, message: Mapping[str, Any]) -> tuple[str, Table]:
        """Set the puzzle that a `puzzle` message asks for."""
        table = await asyncio.to_thread(self.puzzles.table, message.get("puzzle"), self._thinker)
        return self.add(table), table

    def _restore(self, copy: Mapping[str, Any]) -> Table:
        puzzle = copy.get("puzzle")
        if isinstance(puzzle, dict) and puzzle.get("state") == OPEN:
            return self.puzzles.table(puzzle.get("key"), self._thinker)
        return saving.read_copy(copy, self._thinker)

    async def _new(self, message: Mapping[str, Any]) -> Table:
        return await asyncio.to_thread(self._make, message)

    def _make(self, message: Mapping[str, Any]) -> Table:
        position = message.get("position")
        if position is not None:
            state = diagram.parse(str(position))
            tree = GameTree(diagram.rules_of(state), state)
        else:
            rules = message.get("rules")
            tree = GameTree(self.default_rules if rules is None else saving.read_rules(rules))
        players = tree.rules.players
        asked = message.get("seats")
        machines = [Seat(MACHINE, DEFAULT_LEVEL)] * (players - 1)
        seats = (Seat(PERSON), *machines) if asked is None else read_seats(asked, players)
        settings = read_clock(message.get("clock"))
        clocks = None if settings is None else Clocks(settings, players)
        mode = ANALYSE if message.get("mode") == ANALYSE else PLAY
        return Table(tree, seats, self._thinker, clocks=clocks, mode=mode)


def _number(message: Mapping[str, Any]) -> int:
    number = message.get("node")
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"node: {number!r} is not the number of a position")
    return number


def _play(table: Table, message: Mapping[str, Any]) -> None:
    if _number(message) != table.tree.current.number:
        raise ValueError("the position has changed; look again")
    move = message.get("move")
    if not isinstance(move, str) or len(move) > 40:
        raise ValueError("move: not a move; write C3 or B6->B5:up")
    table.play(move)


_OWN_KINDS = ("open", "new", "load", "puzzle", "save", "check", "rules", "review")
"""Messages that the server answers itself."""
_NOT_IN_PUZZLES = ("takeback", "mode", "seats", "resign", "hint")

_ACTIONS: dict[str, Callable[[Table, Mapping[str, Any]], None]] = {
    "play": _play,
    "takeback": lambda table, message: table.take_back(),
    "go": lambda table, message: table.go(_number(message)),
    "remove": lambda table, message: table.remove(_number(message)),
    "mode": lambda table, message: table.set_mode(str(message.get("mode"))),
    "seats": lambda table, message: table.set_seats(
        read_seats(message.get("seats"), table.tree.rules.players)
    ),
    "resign": lambda table, message: table.resign(),
    "hint": lambda table, message: table.ask_hint(),
    "solution": lambda table, message: table.show_solution(),
    "show": lambda table, message: table.show_evaluation(message.get("evaluation") is True),
}


def act(table: Table, message: Mapping[str, Any]) -> None:
    """Do to a table what a message asks for.

    Raises:
      ValueError: the message is unknown, or the table does not allow it, and why.
    """
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _ACTIONS:
        known = ", ".join((*_OWN_KINDS, *_ACTIONS))
        raise ValueError(f"type: {kind!r} is unknown; known: {known}")
    if table.is_posed and kind in _NOT_IN_PUZZLES:
        raise ValueError("this is a puzzle: find the move that wins, or show the solution first")
    _ACTIONS[kind](table, message)


def check_position(text: object) -> dict[str, Any]:
    """Tell the editor whether a diagram is a position to play from.

    Returns:
      the position, or under `error` what is wrong with the diagram.
    """
    try:
        snapshot = take_snapshot(diagram.parse(str(text)))
    except ValueError as error:
        return {"type": "checked", "error": str(error)}
    return {"type": "checked", "error": "", "position": wire.position_view(snapshot)}
