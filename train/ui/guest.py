"""Somebody who looks at tables: a page that is open, or a widget in a notebook."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from train.ui import hall as hall_lib
from train.ui import wire
from train.ui.games import saving
from train.ui.games.table import Table
from train.ui.hall import Hall

MAX_COMPLAINT = 400
Send = Callable[[dict[str, Any]], Awaitable[None]]
_LOG = logging.getLogger(__name__)


class Guest:
    """Somebody who sends messages to a hall, and the table that they look at.

    Attributes:
      table: None before the first `open` or `new`.
    """

    def __init__(self, hall: Hall, send: Send) -> None:
        """Come in; `send` takes what the guest is told."""
        self.table: Table | None = None
        self._hall, self._send, self._name = hall, send, ""
        self._is_stale = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    async def greet(self) -> None:
        """Tell what there is to choose from, and from now on each change of the table."""
        hall = self._hall
        await self._send(
            wire.welcome(hall.default_rules, hall.puzzles.listing(), player=hall.player)
        )
        self._sender = asyncio.ensure_future(self._send_changes())

    def leave(self) -> None:
        """Look at no table any more."""
        self._sit_down(None, "")
        if self._sender is not None:
            self._sender.cancel()

    async def answer(self, text: str) -> None:
        """Answer a message, JSON text; what is wrong with it is told."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):  # ValueError: also a number of too many digits
            await self.complain("not JSON")
            return
        if not isinstance(message, dict):
            await self.complain("not a JSON object")
            return
        await self.answer_message(message)

    async def answer_message(self, message: Mapping[str, Any]) -> None:
        """Answer a message; what is wrong with it is told."""
        try:
            await self.do(message)
        except ValueError as error:
            await self.complain(str(error))
        except Exception:
            _LOG.exception("a message could not be answered")
            await self.complain("the server could not do this; its console says why")

    async def do(self, message: Mapping[str, Any]) -> None:
        """Do what a message asks for.

        Raises:
          ValueError: the message is unknown, or the table does not allow it, and why.
        """
        kind = message.get("type")
        if kind == "open":
            name, table = await self._hall.enter(message)
            self._sit_down(table, name)
        elif kind == "new":
            name, table = await self._hall.start(message)
            self._sit_down(table, name)
        elif kind == "load":
            name, table = await self._hall.load(message)
            self._sit_down(table, name)
        elif kind == "puzzle":
            name, table = await self._hall.pose(message)
            self._sit_down(table, name)
        elif kind == "check":
            found = await asyncio.to_thread(hall_lib.check_position, message.get("position"))
            await self._send(found)
        elif kind == "rules":
            await self._send(wire.rules_view(message.get("rules"), player=self._hall.player))
        elif self.table is None:
            raise ValueError("no game is open; send open or new first")
        elif kind == "save":
            ending, text = saving.write_game(self.table)
            await self._send({"type": "saved", "name": f"wallgo.{ending}", "text": text})
        elif kind == "review":
            if self.table.is_posed:
                raise ValueError("a puzzle cannot be reviewed before it is solved")
            self._hall.reviewer.start(self.table, theme=str(message.get("theme")))
        else:
            hall_lib.act(self.table, message)

    async def complain(self, reason: str) -> None:
        """Tell what is wrong."""
        with contextlib.suppress(ConnectionError):
            told = reason if len(reason) <= MAX_COMPLAINT else f"{reason[:MAX_COMPLAINT]} …"
            await self._send({"type": "error", "error": told})

    def _sit_down(self, table: Table | None, name: str) -> None:
        if self.table is not None:
            self.table.leave(self._is_stale.set)
        self.table, self._name = table, name
        if table is not None:
            table.listen(self._is_stale.set)
            self._is_stale.set()

    async def _send_changes(self) -> None:
        """Send the table whenever it has changed; changes that come faster are sent as one."""
        with contextlib.suppress(ConnectionError):
            while True:
                await self._is_stale.wait()
                self._is_stale.clear()
                if self.table is not None:
                    await self._send(wire.table_view(self.table, self._name))
