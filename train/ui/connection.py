"""A connection to a game server: a page that is open, or a widget in a notebook."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from train.engine.protocol import error_line
from train.ui import saving, wire
from train.ui.game_server import Beginning, GameServer, Message
from train.ui.game_session import GameSession

_NOT_IN_PUZZLES = ("takeback", "mode", "resign", "hint", "review")
_LOG = logging.getLogger(__name__)


class Connection:
    """A sender of messages, and the game that it looks at.

    Attributes:
      session: None before the first message that sets one up.
    """

    def __init__(
        self, server: GameServer, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        """Connect; `send` takes the answers."""
        self.session: GameSession | None = None
        self._server, self._send, self._name = server, send, ""
        self._is_stale = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    async def greet(self) -> None:
        """Send the choices of a new game, and from now on each change of the game."""
        await self._send(wire.welcome(self._server))
        self._sender = asyncio.ensure_future(self._send_changes())

    def leave(self) -> None:
        """Look at no game any more."""
        self._look_at("", None)
        if self._sender is not None:
            self._sender.cancel()

    async def answer(self, message: str | Mapping[str, Any]) -> None:
        """Answer a message, JSON text or its fields, or send what is wrong with it."""
        read = Message.model_validate_json if isinstance(message, str) else Message.model_validate
        try:
            await self.do(read(message))  # type: ignore[arg-type]
        except ValueError as error:
            await self.send_error(error)
        except Exception:
            _LOG.exception("a message could not be answered")
            await self.send_error("the server could not do this; its console says why")

    async def do(self, message: Message) -> None:
        """Do what a message asks for.

        Raises:
          ValueError: the game does not allow it, and why.
        """
        kind, session = message.type, self.session
        if kind in get_args(Beginning):
            self._look_at(*await self._server.begin(message))
        elif kind == "check":
            view = await asyncio.to_thread(wire.check_position, message.position or "")
            await self._send(view)
        elif kind == "rules":
            await self._send(wire.rules_view(message.rules, self._server.machine))
        elif session is None:
            raise ValueError("no game is open; send open or new first")
        elif session.is_posed and kind in _NOT_IN_PUZZLES:
            raise ValueError(
                "this is a puzzle: find the move that wins, or show the solution first"
            )
        elif kind == "save":
            ending, text = saving.write_game(session)
            await self._send({"type": "saved", "name": f"wallgo.{ending}", "text": text})
        elif kind == "review":
            self._server.reviewer.start(session)
        else:
            _ACTIONS[kind](session, message)

    async def send_error(self, reason: object) -> None:
        """Send what is wrong."""
        with contextlib.suppress(ConnectionError):
            await self._send({"type": "error", "error": error_line(reason)})

    def _look_at(self, name: str, session: GameSession | None) -> None:
        if self.session is not None:
            self.session.leave(self._is_stale.set)
        self.session, self._name = session, name
        if session is not None:
            session.listen(self._is_stale.set)
            self._is_stale.set()

    async def _send_changes(self) -> None:
        """Send the game whenever it has changed; changes that come faster are sent as one."""
        with contextlib.suppress(ConnectionError):
            while True:
                await self._is_stale.wait()
                self._is_stale.clear()
                if self.session is not None:
                    await self._send(wire.game_view(self.session, self._name))


def _play(session: GameSession, message: Message) -> None:
    if message.node != session.tree.current.number:
        raise ValueError("node: the position has changed; look again")
    session.play(message.move)


_ACTIONS: dict[str, Callable[[GameSession, Message], None]] = {
    "play": _play,
    "takeback": lambda session, message: session.take_back(),
    "go": lambda session, message: session.go(message.node),
    "remove": lambda session, message: session.remove(message.node),
    "mode": lambda session, message: session.set_mode(message.mode),
    "resign": lambda session, message: session.resign(),
    "hint": lambda session, message: session.ask_hint(),
    "solution": lambda session, message: session.show_solution(),
    "show": lambda session, message: session.show_evaluation(message.evaluation),
}
"""Messages about the game that is looked at."""
