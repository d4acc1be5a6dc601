"""Serves the protocol on standard input and output, one JSON object a line."""

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator

from train.engine.protocol import MAX_MESSAGE, Protocol, Response, failure

_MOST_OPEN = 4096
"""Requests that are read before the first of them is answered."""
_BLOCK = 65_536
_LOOK_EVERY = 1.0
"""Seconds between looks at whether anybody still reads the output."""

_LOG = logging.getLogger(__name__)

Send = Callable[[Response], None]


class LineSplitter:
    """Splits a stream of bytes into lines; of a line that is too long nothing is kept."""

    def __init__(self, longest: int = MAX_MESSAGE) -> None:
        self._longest, self._rest, self._is_too_long = longest, b"", False

    def add(self, block: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a block completes, and None for each that was too long; empty ones
        are left out."""
        *whole, rest = (self._rest + block).split(b"\n")
        for line in whole:
            if self._is_too_long or len(line) > self._longest:
                yield None
            elif line.strip():
                yield line
            self._is_too_long = False
        self._is_too_long |= len(rest) > self._longest
        self._rest = b"" if self._is_too_long else rest

    def end(self) -> Iterator[bytes | None]:
        """Yield the last line, if it has no line end."""
        yield from self.add(b"\n") if self._rest or self._is_too_long else ()


async def serve(
    protocol: Protocol, *, read_from: int, send: Send, write_to: int | None = None
) -> None:
    """Answer what comes from a file descriptor until it ends, or SIGTERM comes.

    At the end of input, or where it cannot be read on, all that was asked is answered; at a SIGTERM
    nothing more is, nor where nobody reads the output any more. Then all sessions end.

    Args:
      protocol: answers.
      read_from: descriptor of a pipe, a terminal or a file.
      send: writes a response; a BrokenPipeError ends the serving.
      write_to: descriptor that `send` writes to; None where it is not known.
    """
    ended = asyncio.Event()
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | EOFError | None]()
    room = threading.Semaphore(_MOST_OPEN)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            try:
                for line in _lines_of(read_from):
                    room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                _LOG.error("the input cannot be read: %s", error.strerror)
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, EOFError())

    async def answer(line: bytes | None) -> None:
        try:
            if line is None:
                send(failure(f"line: longer than {MAX_MESSAGE} bytes"))
            else:
                send(await protocol.answer(line))
        finally:
            room.release()

    # A thread, since a loop can wait for pipes alone. It may stay in `read` when the process ends.
    threading.Thread(target=read, name="reader", daemon=True).start()
    stopped = asyncio.Event()
    serving = asyncio.create_task(_serve_lines(lines, answer, ended))
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        # A loop outside the main thread, or on Windows, takes no signals.
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
    waiting = asyncio.create_task(stopped.wait())
    leaving = asyncio.create_task(_wait_for_no_reader(ended, write_to))
    try:
        await asyncio.wait({serving, waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
    except* BrokenPipeError:
        pass  # Nobody reads on.
    finally:
        serving.cancel()
        waiting.cancel()
        leaving.cancel()
        await asyncio.gather(serving, waiting, leaving, return_exceptions=True)
        protocol.close()


async def _serve_lines(
    lines: "asyncio.Queue[bytes | EOFError | None]", answer: Callable, ended: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as group:
        while not isinstance(line := await lines.get(), EOFError):
            group.create_task(answer(line))
        ended.set()


async def _wait_for_no_reader(ended: asyncio.Event, descriptor: int | None) -> None:
    """Return once the input has ended and nobody reads the output: there is no one to answer."""
    await ended.wait()
    if descriptor is None or not hasattr(select, "poll"):
        await asyncio.Event().wait()
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # Errors and hang-ups are always told.
    while not poll.poll(0):
        await asyncio.sleep(_LOOK_EVERY)


def _lines_of(descriptor: int) -> Iterator[bytes | None]:
    """Lines as they come, None for one that is too long."""
    splitter = LineSplitter()
    # Not by a file object: its lock would be held when the process ends.
    while block := os.read(descriptor, _BLOCK):
        yield from splitter.add(block)
    yield from splitter.end()


def make_send(descriptor: int) -> Send:
    """Writes responses to a file descriptor, each at once."""

    def send(response: Response) -> None:
        data = f"{json.dumps(response, allow_nan=False)}\n".encode()
        while data:
            data = data[os.write(descriptor, data) :]

    return send
