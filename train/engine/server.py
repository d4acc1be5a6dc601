"""Serves the protocol on standard input and output, one JSON object a line."""

import asyncio
import contextlib
import functools
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator

from train.engine.protocol import MAX_MESSAGE, Protocol, Response, failure

_MOST_OPEN = 4096
"""Requests that are read before the first of them is answered."""
_BLOCK = 65_536

_LOG = logging.getLogger(__name__)


def read_lines(read: Callable[[], bytes], *, longest: int = MAX_MESSAGE) -> Iterator[bytes | None]:
    """Yield the lines of a stream that are not empty, and None for each that is too long, of which
    nothing is kept; `read` returns the next block, an empty one at the end."""
    rest, is_too_long, block = b"", False, b"any"
    while block:
        block = read()
        # The end of the stream ends its last line.
        *whole, rest = (rest + (block or b"\n")).split(b"\n")
        for line in whole:
            if is_too_long or len(line) > longest:
                yield None
            elif line.strip():
                yield line
            is_too_long = False
        is_too_long |= len(rest) > longest
        rest = b"" if is_too_long else rest


async def serve(protocol: Protocol, *, read_from: int, write_to: int) -> None:
    """Answer what comes from a file descriptor until it ends, or SIGTERM comes.

    At the end of input, or where it cannot be read on, all that was asked is answered; at a SIGTERM
    nothing more is, nor where nobody reads the output any more. Then all sessions end. A response
    that a full disk does not take is lost, which is logged, and the sessions go on.

    Args:
      protocol: answers.
      read_from: descriptor of a pipe, a terminal or a file.
      write_to: descriptor that gets the responses, each at once.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | EOFError | None]()
    responses = _Responses(write_to)
    room = threading.Semaphore(_MOST_OPEN)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            try:
                # Not by a file object: its lock would be held when the process ends.
                for line in read_lines(functools.partial(os.read, read_from, _BLOCK)):
                    room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                _LOG.error("the input cannot be read: %s", error.strerror)
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, EOFError())

    async def answer(line: bytes | None) -> None:
        try:
            too_long = failure(f"line: longer than {MAX_MESSAGE} bytes")
            responses.send(too_long if line is None else await protocol.answer(line))
        finally:
            room.release()

    async def answer_all() -> None:
        async with asyncio.TaskGroup() as group:
            while not isinstance(line := await lines.get(), EOFError):
                group.create_task(answer(line))

    # A thread, since a loop can wait for pipes alone. It may stay in `read` when the process ends.
    threading.Thread(target=read, name="reader", daemon=True).start()
    serving = asyncio.create_task(answer_all())
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        # A loop outside the main thread, or on Windows, takes no signals.
        loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    try:
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()
    except* BrokenPipeError:
        pass  # Nobody reads on.
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        protocol.close()


class _Responses:
    """Writes responses to a file descriptor, a line each."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._is_cut = descriptor, False

    def send(self, response: Response) -> None:
        """Write a response, behind the end of one that was cut."""
        data = f"{json.dumps(response, allow_nan=False)}\n".encode()
        data = b"\n" + data if self._is_cut else data
        whole = len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            self._is_cut = False
        except BrokenPipeError:
            raise
        except OSError as error:
            self._is_cut |= len(data) < whole
            _LOG.error("a response cannot be written: %s", error.strerror)
