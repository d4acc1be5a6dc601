"""A connection to the engine of a board: a page that is open, or a widget in a notebook."""

import asyncio
import contextlib
import logging
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from train.engine.protocol import Protocol, Tell, failure
from train.runtime.errors import UsageError
from train.ui.machine import Machine
from train.ui.reviewing import Reviewer, ReviewRequest

_LOG = logging.getLogger(__name__)


class Connection:
    """Answers the requests of one page, whose sessions end with it."""

    def __init__(self, machine: Machine, reviewer: Reviewer, send: Tell) -> None:
        """Connect; `send` takes responses, and what comes before them."""
        self._reviewer, self._send = reviewer, send
        self._protocol = Protocol([], machine.prepare)
        self._tasks: set[asyncio.Task[None]] = set()

    def receive(self, text: str) -> None:
        """Answer a request as soon as it can be, in the order of its session."""
        task = asyncio.get_running_loop().create_task(self._answer(text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End all sessions, and answer nothing more."""
        for task in self._tasks:
            task.cancel()
        self._protocol.close()

    async def _answer(self, text: str) -> None:
        fields: Any = None
        with contextlib.suppress(ValueError):  # The protocol says what is wrong.
            fields = from_json(text)
        if not isinstance(fields, dict) or fields.get("type") != "review_game":
            self._send(await self._protocol.answer(text, self._send))
            return
        name = fields.get("bgsId")
        try:
            request = ReviewRequest.model_validate(fields)
            self._send(await self._reviewer.answer(request, self._send))
        except (UsageError, ValidationError) as error:
            self._send(failure(error, name))
        except Exception:
            _LOG.exception("a game could not be reviewed")
            self._send(failure("no review; the server's console says why", name))
