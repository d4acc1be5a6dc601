"""Ctrl-C, SIGTERM and SIGHUP: a request that long work answers, or an end at once.

Python runs a signal's handler only when the main thread leaves the compiler or a device program,
which may take minutes. A thread that the signal itself wakes tells the user meanwhile, and ends the
process where nothing would be lost.
"""

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

EXIT_INTERRUPTED = 130
PATIENCE = 5.0  # seconds that the main thread gets to end by itself before the process ends
TOGETHER = 1.0
"""Signals within this many seconds are one request: a terminal that closes sends two or three
SIGHUPs, `timeout` sends two SIGTERMs, and the end of a login session sends both kinds."""
_HASTE = 0.5  # seconds by which the handler may have been faster than the thread
_SOON = 0.05  # seconds until an interrupt that was dropped is sent again
_STDOUT, _STDERR = 1, 2
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_SIGHUP = getattr(signal, "SIGHUP", None)
_SHOW_CURSOR = "\x1b[?25h"


class _Requests:
    """Counts requests to stop; signals that come together are one request."""

    def __init__(self) -> None:
        self.number, self._newest = 0, -TOGETHER

    def add(self, signum: int) -> bool:
        """Note a signal; returns whether it is a request of its own.

        A SIGHUP after another signal never is: a closed terminal does not ask to drop work.
        """
        now = time.monotonic()
        is_own = not self.number or (signum != _SIGHUP and now - self._newest > TOGETHER)
        if is_own:
            self.number, self._newest = self.number + 1, now
        return is_own


class StopRequest:
    """Whether a signal asked to stop.

    Args:
      answer: what the user is told once `keeps_work` was called.
      show: takes that text and returns whether it shows it; else it is printed.
    """

    def __init__(self, answer: str, show: Callable[[str], bool]) -> None:
        self._answer, self._show = answer, show
        self._has_work = False
        self._came = _Requests()  # as the thread counts them; several may reach the handler as one
        self._handled = _Requests()
        self._handled_at = -1.0

    def __call__(self) -> bool:
        """Whether a signal came."""
        return self._handled.number > 0

    def keeps_work(self) -> None:
        """From now on a first request waits until the work is saved. Before that, and at a second
        request, everything ends at once."""
        self._has_work = True

    def _note(self, signum: int, frame: Any) -> None:
        """The handler, in the main thread."""
        is_own = self._handled.add(signum)
        self._handled_at = time.monotonic()
        if signum == _SIGHUP:
            # The terminal is gone; more of them come until the process has ended.
            signal.signal(signum, signal.SIG_IGN)
            _leave_terminal()
        is_again = self._came.number > 1 or (is_own and self._handled.number > 1)
        if is_again or not self._has_work:
            raise KeyboardInterrupt

    def _watch(self, woken: socket.socket, is_over: threading.Event) -> None:
        """The thread: each byte is a signal that came."""
        while not is_over.is_set():
            try:
                numbers = woken.recv(64)
            except OSError:
                return
            came_at = time.monotonic() - _HASTE
            own = [self._came.add(number) for number in numbers if number in _SIGNALS]
            if is_over.is_set() or not any(own):
                continue
            if self._has_work and self._came.number == 1:
                self._tell_answer()
            elif not is_over.wait(PATIENCE) and self._handled_at < came_at:
                _end_process()

    def _tell_answer(self) -> None:
        text = f"stopping: {self._answer} (Ctrl-C again to drop it)"
        if not self._show(text):
            _tell(f"{text}\n")


@contextlib.contextmanager
def deferring() -> Iterator[Callable[[], bool]]:
    """Let a first Ctrl-C wait for the end of the block; yields whether it came.

    A second one raises KeyboardInterrupt. The process is never ended, so this serves where a host,
    such as a notebook's kernel, goes on. Outside the main thread nothing is installed.
    """
    came = 0

    def note(signum: int, frame: Any) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came > 0
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


@contextlib.contextmanager
def interrupts(
    answer: str, *, show: Callable[[str], bool] = lambda text: False, has_work: bool = False
) -> Iterator[StopRequest]:
    """Yield a request that Ctrl-C, SIGTERM or SIGHUP sets.

    A signal before there is work to keep raises KeyboardInterrupt in the main thread, and so does a
    second Ctrl-C or SIGTERM more than `TOGETHER` seconds later. Where the main thread does not come
    back from a compiler or a device within `PATIENCE` seconds, these end the process with
    `EXIT_INTERRUPTED`. A SIGHUP that was ignored (`nohup`) stays so, and further ones are ignored
    after one came. Outside the main thread nothing is installed.

    Args:
      answer: tells the user what still happens after a first signal.
      show: takes that text, in another thread, and returns whether it shows it; else it is printed.
      has_work: there is work to keep from the beginning.
    """
    request = StopRequest(answer, show)
    if has_work:
        request.keeps_work()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    is_over = threading.Event()
    watcher = threading.Thread(target=request._watch, args=(woken, is_over), daemon=True)
    before = {name: signal.getsignal(name) for name in _SIGNALS}
    caught = [name for name in _SIGNALS if name == signal.SIGINT or before[name] != signal.SIG_IGN]
    for name in caught:
        signal.signal(name, request._note)
    old_wakeup = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        with _sending_again():
            yield request
    finally:
        is_over.set()
        signal.set_wakeup_fd(old_wakeup)
        for name in caught:
            if signal.getsignal(name) != signal.SIG_IGN:
                signal.signal(name, before[name])
        wake.close()  # wakes the thread
        watcher.join()
        woken.close()


@contextlib.contextmanager
def _sending_again() -> Iterator[None]:
    """Send an interrupt again that Python dropped: one that was raised in a finalizer or in a
    callback of the garbage collector, from where no exception comes out."""
    before = sys.unraisablehook

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        # Later, for a signal that comes in this very hook would be dropped, too.
        again = threading.Timer(_SOON, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def leave(code: int) -> NoReturn:
    """End the process without Python's exit, which would wait for a device or a compiler that may
    work on for minutes, and would tell the error of a device's program that failed again."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _tell(text: str) -> None:
    # Not print: the signal may have come in the middle of one. No terminal may be left to read it.
    with contextlib.suppress(OSError):
        os.write(_STDOUT, text.encode())


def _end_process() -> None:
    """End the process although its main thread is busy; the kernel frees what it holds."""
    cursor = _SHOW_CURSOR if os.isatty(_STDOUT) else ""
    _tell(f"{cursor}\n" if cursor else "")
    with contextlib.suppress(OSError):
        os.write(_STDERR, b"stopped\n")
    os._exit(EXIT_INTERRUPTED)


def _leave_terminal() -> None:
    """Send further output nowhere where it went to a terminal: that is gone after a SIGHUP."""
    for number in (_STDOUT, _STDERR):
        with contextlib.suppress(OSError):
            if os.isatty(number) or _is_hung_up(number):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, number)
                os.close(nowhere)


def _is_hung_up(number: int) -> bool:
    """Whether a terminal behind a descriptor is gone, which `isatty` then denies."""
    try:
        os.ttyname(number)
    except OSError as error:
        return error.errno == errno.EIO
    return False
