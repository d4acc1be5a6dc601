"""The widget that shows a game in a notebook: a server in a thread, drawn by the page's modules."""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import anywidget
import traitlets

from train.runtime.errors import UsageError, usage_errors
from train.ui import assets
from train.ui.connection import Connection
from train.ui.game_server import GameServer, Message
from train.ui.game_session import GameSession
from train.ui.machine import LEVELS, Machine
from train.ui.reviewing import game_of, reviewed_line
from wallgo_jax import render
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


class PlayWidget(anywidget.AnyWidget):
    """A board to play on; `train.play` makes one.

    Calls wait until a person is to move or the game is over. They raise a UsageError where the game
    does not allow them, or the machine cannot go on.

    Attributes:
      view: the shown game, as the page gets it.
      levels: names of the machine's levels.
    """

    _esm = assets.module("widget.js")
    _css = assets.widget_style()
    view = traitlets.Dict().tag(sync=True)
    levels = traitlets.List(list(LEVELS)).tag(sync=True)

    def __init__(self, rules: Rules, machine: Machine, seats: tuple[str, ...]) -> None:
        """Begin a game with seats as in `GameSession`, and show it."""
        super().__init__()
        self._server = GameServer(machine, rules)

        async def begin() -> Connection:
            connection = Connection(self._server, self._show)
            await connection.greet()
            await connection.do(Message(type="new", seats=seats))
            return connection

        self._connection: Connection = _wait_for(begin())
        self.on_msg(lambda widget, content, buffers: self._receive(content))

    async def _show(self, message: dict[str, Any]) -> None:
        if message["type"] == "game":
            self.view = message
        elif message["type"] == "error":
            self.send(message)

    def _receive(self, message: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(self._connection.answer(message), _loop())

    @property
    def _session(self) -> GameSession:
        if self._connection.session is None:
            raise UsageError("play: the board is closed; train.play() opens another")
        return self._connection.session

    @property
    def game(self) -> Game:
        """The game so far, as `train.review_game` takes it."""
        return game_of(self._session.tree.rules, reviewed_line(self._session))

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or by resigning."""
        return self._session.is_over

    def play(self, move: str | int) -> None:
        """Play a move for the person, in any notation or as a public action."""
        _wait_for(self._settle())
        self._act(lambda session: session.play(move))

    def take_back(self) -> None:
        """Take back to the person's last move."""
        self._act(lambda session: session.take_back())

    def resign(self) -> None:
        """Give the game up."""
        self._act(lambda session: session.resign())

    def close(self) -> None:
        """End the game and take the board away; nothing is searched for it any more."""
        # Nothing waits: where a board is collected as garbage, this may be the loop's own thread.
        for end in (self._connection.leave, self._server.close):
            _loop().call_soon_threadsafe(end)
        super().close()

    def _act(self, action: Callable[[GameSession], None]) -> None:
        async def act() -> None:
            with usage_errors():
                action(self._session)
            await self._settle()

        _wait_for(act())

    async def _settle(self) -> None:
        """Wait until the machine is not to move."""
        session = self._session
        await session.wait_while(lambda: session.is_machines_turn)
        if session.error:
            raise UsageError(session.error)

    def __repr__(self) -> str:
        return f"<train.play, {len(self.game.actions)} plies>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and a picture for where no widget can be shown."""
        bundle = super()._repr_mimebundle_(**options)
        try:
            picture = render.png(render.svg(self._session.tip.state), scale=1.0)
        except ImportError:
            return bundle
        data, more = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "image/png": picture}, more
