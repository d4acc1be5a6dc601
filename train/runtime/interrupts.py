"""Ctrl-C and SIGTERM as a flag that a long run checks."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

_STDOUT = 1
_STOPPING = "stopping: this iteration is finished and saved first (Ctrl-C again to drop it)"


@contextlib.contextmanager
def interrupts(show: Callable[[str], bool] = lambda text: False) -> Iterator[Callable[[], bool]]:
    """Yield whether Ctrl-C or SIGTERM came, as a function; a second Ctrl-C stops at once.

    Args:
      show: takes the text that says so and returns whether it shows it; else it is printed.
    """
    seen: list[int] = []

    def note(signum: int, frame: Any) -> None:
        if seen and signum == signal.SIGINT:
            raise KeyboardInterrupt
        seen.append(signum)
        if not show(_STOPPING):
            # Not print: the signal may have come in the middle of one.
            os.write(_STDOUT, f"{_STOPPING}\n".encode())

    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(seen)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
