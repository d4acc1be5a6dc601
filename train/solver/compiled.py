"""The searches of `train.solver.claims` and `alphabeta` compiled by numba, where it is installed.

The functions are the same. Positions take part as 64-bit integers, so boards are at most 7x7.
"""

import functools
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from train.solver import contest, symmetry

MAX_SIZE = 7
_OWN = ("popcount", "settled_turns", "geometry_of", "make_turns")
"""Functions that numba does not compile as they stand."""


def is_available(size: int) -> bool:
    """Whether boards of a size can be searched by compiled code."""
    return size <= MAX_SIZE and importlib.util.find_spec("numba") is not None


def compile_recursive(
    make: Callable[[Any], Callable[..., Any]], helpers: Sequence[Callable[..., Any]]
) -> Callable[..., Any]:
    """A function that calls itself, from what makes it of a decorator, and what else it calls."""
    numba = _register()
    for function in helpers:
        numba.extending.register_jitable(function)
    return make(numba.njit)


def make_dict() -> Any:
    """An empty dict of integers that compiled code reads."""
    from numba import int64, typed

    return typed.Dict.empty(int64, int64)


@functools.cache
def _register() -> Any:
    """numba, with what it needs to know to compile the functions here."""
    import numba
    from numba import extending

    for module in (contest, symmetry):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and name not in _OWN:
                extending.register_jitable(function)

    @extending.overload(contest.popcount)
    def popcount(cells):  # pyright: ignore[reportUnusedFunction]
        def count(cells):
            cells = cells - ((cells >> 1) & 0x5555555555555555)
            cells = (cells & 0x3333333333333333) + ((cells >> 2) & 0x3333333333333333)
            cells = (cells + (cells >> 4)) & 0x0F0F0F0F0F0F0F0F
            return (cells * 0x0101010101010101) >> 56

        return count

    @extending.overload(contest.settled_turns)
    def settled_turns(down, right, stones, size):  # pyright: ignore[reportUnusedFunction]
        def find(down, right, stones, size):
            return contest.sure_turns(down, right, stones, size)

        return find

    return numba
