"""Follows long work, in Python and on the command line: its bar, its lines, and what stops it.

Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 (which cluster scripts send) ask long work to finish its part
and save, or end it at once.
"""

import contextlib
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from train.runtime.display import Display

EXIT_INTERRUPTED = 130
TOGETHER = 1.0
"""Signals within this many seconds are one request: a terminal that closes sends two or three
SIGHUPs, and `timeout` sends two SIGTERMs."""
_STDOUT, _STDERR = 1, 2
# Windows has neither of the two.
_HANGUP = getattr(signal, "SIGHUP", None)
_FOR_USERS = getattr(signal, "SIGUSR1", None)
SIGNALS = (signal.SIGINT, signal.SIGTERM, *filter(None, [_HANGUP, _FOR_USERS]))
"""Those that ask to stop."""


class StopRequest:
    """Whether a signal asked to stop; the arguments are those of `interrupts`."""

    def __init__(self, answer: str, show: Callable[[str], bool], has_work: bool = False) -> None:
        self._answer, self._show, self._has_work = answer, show, has_work
        self._came_at: float | None = None

    def __call__(self) -> bool:
        """Whether a signal came."""
        return self._came_at is not None

    def keeps_work(self) -> None:
        """From now on a first signal waits until the work is saved; before that it raises
        KeyboardInterrupt, as a second one always does."""
        self._has_work = True

    def note(self, signum: int, frame: Any) -> None:
        """Answer a signal; this is its handler."""
        now, before = time.monotonic(), self._came_at
        self._came_at = now if before is None else before
        if signum == _HANGUP:
            # The terminal is gone; more of them come until the process has ended.
            signal.signal(signum, signal.SIG_IGN)
            # Output that went to the terminal goes nowhere from here on.
            for number in (_STDOUT, _STDERR):
                with contextlib.suppress(OSError):
                    if stat.S_ISCHR(os.fstat(number).st_mode):
                        nowhere = os.open(os.devnull, os.O_WRONLY)
                        os.dup2(nowhere, number)
                        os.close(nowhere)
        if before is None and self._has_work:
            text = f"stopping: {self._answer} (Ctrl-C again to drop it)"
            if not self._show(text):
                # Not print: the signal may have come in the middle of one.
                with contextlib.suppress(OSError):
                    os.write(_STDOUT, f"{text}\n".encode())
        elif before is None or (signum != _HANGUP and now - before > TOGETHER):
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupts(
    answer: str, *, show: Callable[[str], bool] = lambda text: False, has_work: bool = False
) -> Iterator[StopRequest]:
    """Yield a request that Ctrl-C, SIGTERM, SIGHUP or SIGUSR1 sets.

    A signal before there is work to keep raises KeyboardInterrupt, and so does a second one, but
    for SIGHUP, more than `TOGETHER` seconds later. Python raises it, and calls `show`, once the
    main thread has left the compiler or a device program. A SIGHUP that was ignored (`nohup`) stays
    so, and so does the caller's own handler of SIGUSR1. Outside the main thread nothing is
    installed.

    Args:
      answer: tells the user what still happens after a first signal.
      show: takes that text and returns whether it shows it; else it is printed.
      has_work: there is work to keep from the beginning.
    """
    request = StopRequest(answer, show, has_work)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: each for number, each in handlers.items() if _is_free(number, each)}
    for number in before:
        signal.signal(number, request.note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, handler or signal.SIG_DFL)


def _is_free(number: signal.Signals, handler: Any) -> bool:
    """Whether a signal with this handler may get another one for a while."""
    if number == _HANGUP:
        return handler != signal.SIG_IGN
    is_own = isinstance(getattr(handler, "__self__", None), StopRequest)
    return number != _FOR_USERS or is_own or handler == signal.SIG_DFL


def leave(code: int) -> NoReturn:
    """End the process without Python's exit, which would wait for a device or a compiler that may
    work on for minutes, and would tell the error of a device's program that failed again."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


Shown = bool | Display
"""Whether a bar is shown; or a command's console, where a signal ends the work with what is done
and the result says so."""


class Follower:
    """Follows the work of a call.

    Attributes:
      display: the console, which is quiet where nothing is shown.
      should_stop: whether a signal came that the work answers; its `keeps_work` says that from now
        on there is something to keep.
      task: the bar of the work, if it has one.
    """

    def __init__(self, display: Display, should_stop: StopRequest, task: Any) -> None:
        self.display, self.should_stop, self.task = display, should_stop, task

    def __call__(self, done: int) -> None:
        """Show how many parts are done, which are kept from the first one on."""
        if done > 0:
            self.should_stop.keeps_work()
        self.task(done)


@contextlib.contextmanager
def follow(
    shown: Shown, title: str = "", total: int = 0, unit: str = "games", *, answer: str = ""
) -> Iterator[Follower]:
    """Follow work, with a bar if it has a title.

    Args:
      shown: a bar, nothing, or a command's console.
      title: of the bar.
      total: parts of the work.
      unit: of the parts.
      answer: what a command tells who interrupts it, such as what is kept.
    """
    display = shown if isinstance(shown, Display) else Display(is_quiet=not shown)
    with display, contextlib.ExitStack() as stack:
        task = stack.enter_context(display.task(title, total, unit)) if title else None
        request = StopRequest(answer, lambda text: False)
        if isinstance(shown, Display):
            request = stack.enter_context(interrupts(answer, show=display.note))
        try:
            yield Follower(display, request, task)
        except KeyboardInterrupt as stop:
            if stop.args or not (answer and isinstance(shown, Display)):
                raise
            raise KeyboardInterrupt(
                "nothing of this is kept; the same command starts it anew"
            ) from None
