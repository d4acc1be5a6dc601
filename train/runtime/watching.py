"""Watches a process of a distributed run from a parent of its own.

JAX ends a process from C++ once another one of the run has gone, so no line of that process can be
the last one. The parent computes nothing and does not load JAX.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from train.runtime.errors import ProcessLostError
from train.runtime.interrupts import EXIT_INTERRUPTED, SIGNALS

_WATCHER = "WALLGO_JAX_WATCHER"
"""Variable that numbers the socket of a process to its parent; it is watched where that is set."""
_REASONS = {
    "SIGABRT": "JAX does so where another process has ended or is out of reach",
    "SIGKILL": "the system does so where memory is short",
}

CAN_WATCH = os.name == "posix"
"""Whether this system lets a parent pass on a socket and signals."""
_MOST_BYTES = 65536  # of last words

_to_parent: socket.socket | None = None


def is_watched() -> bool:
    """Whether a parent watches this process, which has called `end_with_watcher`."""
    return _to_parent is not None


def watch(how_to_go_on: Callable[[], str]) -> int:
    """Run the command of this process again in a child, with all signals that ask to stop passed
    on, and return its exit code once it has ended. The child ends where this process does.

    Args:
      how_to_go_on: says after a loss what is left and what to type; may load JAX.

    Raises:
      ProcessLostError: of the child's `last_words`, or of a signal that has ended it and that this
        process did not pass on.
    """
    passed_on: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(signum: int, frame: Any) -> None:
        passed_on.append(signum)
        if child is not None:
            child.send_signal(signum)

    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, pass_on)
    own_end, its_end = socket.socketpair()
    child = subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:]],
        env=os.environ | {_WATCHER: str(its_end.fileno())},
        pass_fds=[its_end.fileno()],
    )
    its_end.close()
    for number in passed_on.copy():  # they came before there was a child
        child.send_signal(number)
    code = child.wait()
    with own_end:
        words = own_end.recv(_MOST_BYTES).decode()
    if words:
        raise ProcessLostError(words)
    if code >= 0:
        return code
    if -code in passed_on:
        return EXIT_INTERRUPTED
    name = signal.Signals(-code).name
    because = f" ({_REASONS[name]})" if name in _REASONS else ""
    raise ProcessLostError(f"distributed: {name} ended this process{because}; {how_to_go_on()}")


def end_with_watcher() -> None:
    """Have this process end as soon as the parent has that watches it, if one does."""
    global _to_parent
    number = os.environ.pop(_WATCHER, None)
    if number is None:
        return
    parent = _to_parent = socket.socket(fileno=int(number))

    def wait() -> None:
        parent.recv(1)  # The parent sends nothing: this returns when it has ended.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="watcher", daemon=True).start()


def last_words(text: str) -> bool:
    """Have the parent end with a ProcessLostError of a text, after all that JAX still prints here;
    returns whether a parent watches this process."""
    if _to_parent is not None:
        _to_parent.sendall(text.encode()[:_MOST_BYTES])
    return _to_parent is not None
