"""The widget that shows a game in a notebook. The page's modules play it and ask for searches;
Python reads the game, and plays moves of its own, by the copy that both keep."""

import asyncio
import functools
import threading
from collections.abc import Coroutine
from typing import Any, NamedTuple

import anywidget
import traitlets

from train.engine.protocol import read_start
from train.engine.searcher import GamePosition
from train.runtime.errors import UsageError
from train.ui import assets
from train.ui.connection import Connection
from train.ui.machine import LEVELS, PERSON, Machine
from train.ui.reviewing import Reviewer, game_of
from wallgo_jax import render
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all boards, in a thread: a notebook's own loop stands still while a cell runs."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="wallgo-boards", daemon=True).start()
    return loop


def _wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


class _BoardLine(NamedTuple):
    """The game of a copy: rules, and the position at its end."""

    rules: Rules
    tip: GamePosition
    seats: list[str]
    is_over: bool

    @property
    def is_machines_turn(self) -> bool:
        return not self.is_over and self.seats[self.tip.player] != PERSON


class PlayWidget(anywidget.AnyWidget):
    """A board to play on; `train.play` makes one.

    Calls wait until a person is to move or the game is over. They raise a UsageError where the game
    does not allow them, or the machine cannot go on.

    Attributes:
      copy: the game with its variations, as the page keeps it. `revision` counts what Python wrote:
        what the board changed before it knew of that is dropped.
      choices: levels and machines, as the page reads them.
    """

    _esm = assets.module("widget.js")
    _css = assets.widget_style()
    copy = traitlets.Dict().tag(sync=True)
    choices = traitlets.Dict().tag(sync=True)

    def __init__(self, rules: Rules, machine: Machine, seats: list[str]) -> None:
        """Begin a game, and show it.

        Args:
          rules: of the game.
          machine: plays and searches.
          seats: for each colour, PERSON or the machine's level.
        """
        begun = {"rules": write_rules(rules), "seats": seats, "plies": [], "tip": 0, "current": 0}
        super().__init__(choices=assets.choices_of(machine, rules), copy=begun | {"revision": 0})
        self._machine, self._is_closed = machine, False
        self._own: dict[str, Any] = self.copy

        async def connect() -> Connection:
            return Connection(machine, Reviewer(machine), lambda message: self.send(message))

        self._connection: Connection = _wait_for(connect())
        self.observe(self._on_copy, "copy")
        self.on_msg(lambda widget, content, buffers: self._receive(content["text"]))

    @property
    def game(self) -> Game:
        """The game so far, as `train.review_game` takes it."""
        line = self._line()
        return game_of(line.rules, line.tip)

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or by resigning."""
        return self._line().is_over

    def play(self, move: str | int) -> None:
        """Play a move for the person, in any notation or as a public action."""
        self._settle()
        self._move(move)
        self._settle()

    def take_back(self) -> None:
        """Take back to the person's last move."""
        self._settle()
        line, gone = self._line(), {self._own["tip"]}
        tip = line.tip
        while tip.before is not None and line.seats[tip.before.player] != PERSON:
            tip = tip.before
        if tip.before is None and self._own.get("forfeit") is None:
            raise UsageError("there is no move of yours to take back")
        steps = len(line.tip.actions) - len((tip.before or tip).actions)
        place, plies = self._own["tip"], self._own["plies"]
        for _ in range(steps):
            gone = {place}
            place = plies[place - 1][0]
        if steps:
            self._drop(gone, place)
        self._write(forfeit=None)
        self._settle()

    def resign(self) -> None:
        """Give the game up."""
        line = self._line()
        people = [player for player, seat in enumerate(line.seats) if seat == PERSON]
        if line.is_over or not people:
            raise UsageError("there is no game that a person could resign")
        player = line.tip.player if line.tip.player in people else people[0]
        self._write(forfeit=[player, "resigned"])

    def close(self) -> None:
        """End the game and take the board away; nothing is searched for it any more."""
        self._is_closed = True
        # Nothing waits: where a board is collected as garbage, this may be the loop's own thread.
        _loop().call_soon_threadsafe(self._connection.close)
        super().close()

    def _receive(self, text: str) -> None:
        _loop().call_soon_threadsafe(self._connection.receive, text)

    def _on_copy(self, change: Any) -> None:
        """Take what the board has changed, unless Python has written since."""
        if change.new.get("revision") == self._own["revision"]:
            self._own = change.new
        elif change.new is not self._own:
            self.copy = self._own

    def _write(self, **fields: Any) -> None:
        self._own = self._own | fields | {"revision": self._own["revision"] + 1}
        self.copy = self._own

    def _line(self) -> _BoardLine:
        """The game of the copy; its plies are played again."""
        if self._is_closed:
            raise UsageError("play: the board is closed; train.play() opens another")
        given, actions, place = self._own, [], self._own["tip"]
        while place:
            place, action = given["plies"][place - 1]
            actions.append(action)
        diagram = given.get("position")
        rules, position = read_start(None if diagram else given["rules"], diagram)
        for action in reversed(actions):
            position = position.play(action)
        is_over = position.result is not None or given.get("forfeit") is not None
        return _BoardLine(rules, position, given["seats"], is_over)

    def _move(self, move: str | int) -> None:
        line = self._line()
        if line.is_over:
            raise UsageError("the game is over")
        ply = [self._own["tip"], line.tip.play(move).actions[-1]]
        plies = self._own["plies"]
        plies = plies if ply in plies else [*plies, ply]
        place = plies.index(ply) + 1
        self._write(plies=plies, tip=place, current=place)

    def _drop(self, gone: set[int], tip: int) -> None:
        """Take positions and all that follows from them out of the copy."""
        kept, places = [], {0: 0}
        for place, (before, action) in enumerate(self._own["plies"], start=1):
            if place not in gone and before in places:
                kept.append([places[before], action])
                places[place] = len(kept)
        self._write(plies=kept, tip=places[tip], current=places[tip])

    def _settle(self) -> None:
        """Let the machine move while it is to move."""
        while (line := self._line()).is_machines_turn:
            self._move(_wait_for(self._search(line)))

    async def _search(self, line: _BoardLine) -> int:
        level = LEVELS[line.seats[line.tip.player]]
        sessions = await self._machine.prepare(line.rules, lambda done, total: None)
        name = sessions.open(line.rules, position=line.tip)
        answer = sessions.ask(name, simulations=level.simulations, temperature=level.temperature)
        sessions.close(name)  # It is answered all the same.
        return int((await asyncio.wrap_future(answer)).action)

    def __repr__(self) -> str:
        return f"<train.play, {len(self.game.actions)} plies>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and a picture for where no widget can be shown."""
        bundle = super()._repr_mimebundle_(**options)
        try:
            picture = render.png(render.svg(self._line().tip.state), scale=1.0)
        except ImportError:
            return bundle
        data, more = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "image/png": picture}, more
