"""Compiles in a thread of its own what a command calls later, while the command goes on.

XLA's compiler uses one core for most of its time. Only a process that runs a command does this: a
thread that compiles when Python exits may end the process, which `leave` avoids.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")
_COMPILERS = 2

_is_allowed = False
_threads: list[threading.Thread] = []


def allow_compiling_ahead() -> None:
    """From now on this process compiles ahead; it ends by `runtime.interrupts.leave` where
    `is_compiling_ahead`."""
    global _is_allowed
    _is_allowed = True


def is_compiling_ahead() -> bool:
    """Whether something is still being compiled."""
    return any(thread.is_alive() for thread in _threads)


def compile_ahead(jobs: Iterable[Callable[[], Any]]) -> None:
    """Do jobs one after the other in another thread, where this process compiles ahead and a CPU
    computes: to choose programs of a GPU, XLA times them, which other work would disturb.

    What fails is left out: it fails again where it is called.
    """
    if not _is_useful():
        return

    def work() -> None:
        with contextlib.suppress(Exception):
            for job in jobs:
                job()

    thread = threading.Thread(target=work, name="compiler", daemon=True)
    _threads.append(thread)
    thread.start()


def compile_together(jobs: Sequence[Callable[[], _T]]) -> list[_T]:
    """Do jobs, at once where `compile_ahead` would do them, else one after the other; returns what
    they return."""
    if not _is_useful():
        return [job() for job in jobs]
    with ThreadPoolExecutor(_COMPILERS) as pool:
        return list(pool.map(lambda job: job(), jobs))


def _is_useful() -> bool:
    if not _is_allowed:
        return False
    import jax

    return jax.default_backend() == "cpu" and jax.process_count() == 1
