"""The searches of `train.solver.claims` and `alphabeta` compiled by numba, where it is installed.

The functions are the same; a graph's columns are arrays, and a hash table finds its contests.
Contests take part as 64-bit integers, so boards are at most 7x7.
"""

import functools
import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from train.solver import claims, contest, symmetry
from train.solver.claims import Graph
from train.solver.contest import Contest

MAX_SIZE = 7
_EMPTY = -1
_SOURCES = ("contest.py", "claims.py", "compiled.py")
_FIELDS = len(Contest._fields)
_OWN = ("popcount", "contest_at", "new_place", "geometry_of", "make_graph", "make_stack", "search")
"""Functions that numba does not compile as they stand, or that call no other."""


def is_available(size: int) -> bool:
    """Whether boards of a size can be searched by compiled code."""
    return size <= MAX_SIZE and importlib.util.find_spec("numba") is not None


def make_graph(capacity: int) -> Graph:
    """An empty graph as arrays, with room for this many nodes and edges."""
    slots = 1 << (2 * capacity).bit_length()

    def column(dtype: type) -> np.ndarray:
        return np.empty(capacity, dtype)

    return Graph(
        places=np.full(slots, _EMPTY, np.int32),
        contests=np.empty((capacity, _FIELDS), np.int64),
        low=column(np.int16),
        high=column(np.int16),
        expected=column(np.int16),
        proof=column(np.int64),
        disproof=column(np.int64),
        target=column(np.int64),
        start=column(np.int32),
        count=column(np.int32),
        parent=column(np.int32),
        edges=column(np.int32),
        used=np.zeros(2, np.int64),
    )


def make_stack() -> tuple[np.ndarray, ...]:
    """A stack for `search`."""
    return tuple(np.zeros(claims.MAX_PLIES, np.int64) for _ in range(3))


@functools.cache
def compile_search() -> tuple[Callable[..., None], Callable[..., int]]:
    """`search` and `node_of`, compiled; takes some seconds the first time on a machine."""
    numba = _register()
    return compile_cached(numba, claims.search), compile_cached(numba, claims.node_of)


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

    for module in (contest, claims, symmetry):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and name not in _OWN:
                extending.register_jitable(function)
    _overload_storage(extending)
    return numba


def compile_cached(numba: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, or take what an earlier process compiled from the same sources.

    numba's own cache looks at the function's file alone, so the folder is named by all sources.
    """
    sources = [Path(__file__).with_name(name) for name in _SOURCES]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(sources[0].parent / "__pycache__" / digest)
    try:
        return numba.njit(cache=True)(function)
    finally:
        numba.config.CACHE_DIR = before


def _overload_storage(extending: Any) -> None:
    """Tell numba how arrays store what the interpreter keeps in lists and a dict."""

    @extending.overload(contest.popcount)
    def popcount(cells):  # pyright: ignore[reportUnusedFunction]
        def count(cells):
            cells = cells - ((cells >> 1) & 0x5555555555555555)
            cells = (cells & 0x3333333333333333) + ((cells >> 2) & 0x3333333333333333)
            cells = (cells + (cells >> 4)) & 0x0F0F0F0F0F0F0F0F
            return (cells * 0x0101010101010101) >> 56

        return count

    @extending.overload(claims.contest_at)
    def contest_at(graph, node):  # pyright: ignore[reportUnusedFunction]
        def read(graph, node):
            row = graph.contests[node]
            return Contest(
                row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9]
            )

        return read

    @extending.overload(claims.new_place)
    def new_place(graph, contest):  # pyright: ignore[reportUnusedFunction]
        def find(graph, contest):
            mixed = np.uint64(0)
            for field in contest:
                mixed = (mixed ^ np.uint64(field)) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
            last = len(graph.places) - 1
            place = np.int64(mixed & np.uint64(last))
            while graph.places[place] >= 0:
                node = np.int64(graph.places[place])
                row = graph.contests[node]
                same = True
                for index in range(len(row)):
                    if row[index] != contest[index]:
                        same = False
                        break
                if same:
                    return node
                place = (place + 1) & last
            node = graph.used[0]
            graph.places[place] = node
            for index in range(graph.contests.shape[1]):
                graph.contests[node, index] = contest[index]
            graph.used[0] = node + 1
            return node

        return find
