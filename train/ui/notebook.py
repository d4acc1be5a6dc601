"""A game in a notebook or a script: a hall of its own, whose machine thinks in a thread."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from train.engine.trees.search_player import check_rules, make_level_player
from train.runtime.errors import UsageError
from train.ui import wire
from train.ui.games import saving
from train.ui.games.levels import DEFAULT_LEVEL, LEVELS
from train.ui.games.seats import MACHINE, PERSON
from train.ui.games.table import PLAY, Table
from train.ui.games.thinking import EngineThinker, Thinker
from train.ui.guest import Guest
from train.ui.hall import Hall
from train.ui.reviewing import game_of, reviewed_line
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import COLOURS, format_action
from wallgo_jax.view.game_replay import Game

if TYPE_CHECKING:
    from train.ui.widget import PlayWidget

_DEFAULT_RULES = PRESETS["wallzero-4stone"]


def play(
    rules: Rules | Mapping[str, Any] | str | None = None,
    *,
    player: str = "",
    level: str = DEFAULT_LEVEL,
    colour: str = "Red",
) -> PlayWidget:
    """Show a board to play on in a notebook, against the machine.

    The board also takes moves from Python: `board.play("C3")`.

    Args:
      rules: by default those that the player has learned, else `wallzero-4stone`.
      player: the machine: a player that searches, by name, without simulations; by default the one
        that comes with the rules.
      level: of the machine, such as `club`.
      colour: yours.

    Raises:
      UsageError: the rules, player, level or colour is not allowed, or anywidget is missing.
    """
    if importlib.util.find_spec("anywidget") is None:
        raise UsageError("play needs anywidget: pip install 'wallgo-jax[notebooks]'")
    from train.ui.widget import PlayWidget

    guide = make_level_player(player) if player else None
    if rules is None:
        known = guide.learned[0] if guide and guide.learned else _DEFAULT_RULES
    else:
        known = _read_rules(rules)
    if guide is not None:
        check_rules(guide, known)
    return PlayWidget(Match(known, thinker_for(player), player=player, level=level, colour=colour))


def _read_rules(rules: Rules | Mapping[str, Any] | str) -> Rules:
    if isinstance(rules, Rules):
        return rules
    try:
        return saving.read_rules(dict(rules) if isinstance(rules, Mapping) else rules)
    except ValueError as error:
        raise UsageError(str(error)) from None


@functools.cache
def thinker_for(player: str) -> Thinker:
    """The machine of a name; boards share it, so that it is compiled once."""
    return EngineThinker(player)


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all boards, in a thread: a notebook's own loop stands still while a cell runs."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="wallgo-boards", daemon=True).start()
    return loop


def _wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


class Match:
    """A person's game against the machine, by messages or by calls.

    Attributes:
      machine: its name and the names of its levels.
    """

    def __init__(
        self,
        rules: Rules,
        thinker: Thinker,
        *,
        player: str = "",
        level: str = DEFAULT_LEVEL,
        colour: str = "Red",
    ) -> None:
        """Prepare without a table; the arguments are those of `play`.

        Raises:
          UsageError: the level or the colour is not allowed.
        """
        colours = COLOURS[: rules.players]
        if level not in LEVELS:
            raise UsageError(f"play: level {level!r} is not one of {', '.join(LEVELS)}")
        if colour.capitalize() not in colours:
            raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
        own = colours.index(colour.capitalize())
        self._seats = [
            {"kind": PERSON} if seat == own else {"kind": MACHINE, "level": level}
            for seat in range(rules.players)
        ]
        self._hall = Hall(thinker, rules, player=player)
        self._tell: Callable[[dict[str, Any]], None] = lambda message: None
        self._guest = Guest(self._hall, self._send)
        offered = wire.welcome(rules, player=player)["presets"]
        found = next(each for each in offered if each["fields"] == saving.rules_fields(rules))
        self.machine = {"name": found["machine"]["name"], "levels": list(LEVELS)}

    def start(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Set the board up; `tell` gets every table and complaint, in another thread."""
        self._tell = tell
        _wait_for(self._start())

    async def _start(self) -> None:
        await self._guest.greet()
        await self._guest.do({"type": "new", "seats": self._seats})

    async def _send(self, message: dict[str, Any]) -> None:
        self._tell(message)

    def receive(self, message: Mapping[str, Any]) -> None:
        """Answer a message of the page's; what is wrong with it is told."""
        asyncio.run_coroutine_threadsafe(self._guest.answer_message(message), _loop())

    @property
    def table(self) -> Table:
        """The table of the game.

        Raises:
          UsageError: the board is closed.
        """
        if self._guest.table is None:
            raise UsageError("play: the board is closed; train.play() opens another")
        return self._guest.table

    @property
    def game(self) -> Game:
        """The game so far, as `train.review_game` takes it."""
        return game_of(self.table.tree.rules, reviewed_line(self.table))

    def play(self, move: str | int) -> None:
        """Play a move, in any notation or as a public action, once a person is to move, and wait as
        `act` does.

        Raises:
          UsageError: it is unreadable or not allowed, and why; or the machine cannot go on.
        """
        _wait_for(self._settle(self.table))
        node = self.table.tree.current
        if not isinstance(move, str):
            try:
                move = format_action(int(move), grid=node.snapshot.grid)
            except (ValueError, TypeError) as error:
                raise UsageError(f"play: {error}") from None
        self.act({"type": "play", "node": node.number, "move": move})

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what a message asks for, and wait until a person is to move or the game is over.

        Raises:
          UsageError: it is not allowed, and why; or the machine cannot go on.
        """
        _ = self.table
        _wait_for(self._act(message))

    async def _act(self, message: Mapping[str, Any]) -> None:
        try:
            await self._guest.do(message)
        except ValueError as error:
            raise error if isinstance(error, UsageError) else UsageError(str(error)) from None
        await self._settle(self.table)

    async def _settle(self, table: Table) -> None:
        """Wait until the machine is not to move."""
        changed = asyncio.Event()
        table.listen(changed.set)
        try:
            while is_machines_turn(table):
                changed.clear()
                await changed.wait()
        finally:
            table.leave(changed.set)
        if table.complaint:
            raise UsageError(table.complaint)

    def close(self) -> None:
        """End the game; nothing is searched for it any more."""
        _wait_for(self._close())

    async def _close(self) -> None:
        self._guest.leave()
        self._hall.close()


def is_machines_turn(table: Table) -> bool:
    """Whether the machine will move without being asked."""
    seat = table.seats[table.tip.snapshot.player]
    return table.mode == PLAY and not table.is_over and seat.is_machine and not table.complaint
