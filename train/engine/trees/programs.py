"""The programs of an engine, all compiled at the start for batches of a few sizes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from train.engine.trees.details import Details, make_describe
from train.engine.trees.guide import Guide
from train.engine.trees.options import EngineOptions
from train.engine.trees.pool import Found, Pool, make_grow, make_pool, make_report, make_resume
from train.engine.trees.subtree import END
from train.runtime.host import fetch
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state

PATH_PLIES = 8
"""Plies by which a session may have moved on since its last search for its tree to be kept."""
_MOST_AT_ONCE = 16
"""Trees of one call at the most, of the calls that an answer needs once. To resume copies each
tree, and programs for few trees are all that has to be compiled."""
_COMPILING = 8
"""Programs that are compiled at the same time."""


class Programs:
    """Searches the trees of a pool by batches. Every batch is padded to a compiled size.

    Attributes:
      start: the first position of the rules, one board.
    """

    def __init__(self, guide: Guide, rules: Rules, options: EngineOptions) -> None:
        """Begin to compile, in other threads; `wait` ends it."""
        self._options = options
        self._variables = jax.device_put(guide.variables)
        self.start = fetch(initial_state(rules))
        over = self.start.position._replace(terminated=np.bool_(True))
        self._finished = self.start._replace(position=over)
        sizes = options.batch_sizes
        self._few = tuple(n for n in sizes if n <= _MOST_AT_ONCE) or sizes[:1]
        self._programs: dict[tuple[str, int], Any] = {}
        self._begun: dict[tuple[str, int], Future[Any]] = {}
        threads = ThreadPoolExecutor(_COMPILING, "compiler")
        self._begin(guide, threads)
        threads.shutdown(wait=False)

    def wait(self) -> None:
        """Wait until everything is compiled."""
        self._programs |= {key: program.result() for key, program in self._begun.items()}
        self._begun.clear()

    def _begin(self, guide: Guide, threads: ThreadPoolExecutor) -> None:
        """Lower the programs here, and let the threads compile them. The largest come first."""

        def begin(name: str, size: int, program: Any, *arguments: Any) -> None:
            lowered = program.lower(*arguments)
            self._begun[name, size] = threads.submit(lowered.compile)

        options = self._options
        make = jax.jit(lambda state: make_pool(state, trees=options.trees, nodes=options.nodes))
        pool = jax.eval_shape(make, self._finished)
        resume = jax.jit(make_resume(guide), donate_argnums=1)
        grow = jax.jit(make_grow(guide), donate_argnums=1)
        report, describe = jax.jit(make_report(guide)), jax.jit(make_describe(guide))
        like, variables = jax.ShapeDtypeStruct, self._variables
        for size in reversed(options.batch_sizes):
            rows, due = like((size,), np.int32), like((size, options.chunk), np.int32)
            begin("grow", size, grow, variables, pool, rows, due, like((), np.int32))
        for size in self._few:
            rows, path = like((size,), np.int32), like((size, PATH_PLIES), np.int32)
            states = jax.tree.map(
                lambda x, size=size: like((size, *np.shape(x)), x.dtype), self._finished
            )
            flags = like((size,), np.bool_)
            begin("resume", size, resume, variables, pool, rows, flags, path, rows, states)
            begin("describe", size, describe, variables, pool, rows)
            begin("report", size, report, pool, rows)
        begin("make", 0, make, self._finished)

    @property
    def padding(self) -> int:
        """The number of the tree that fills batches up."""
        return self._options.trees

    def new_pool(self) -> Pool:
        """A pool without searches."""
        return self._programs["make", 0](self._finished)

    def resume(
        self,
        pool: Pool,
        rows: Sequence[int],
        paths: Sequence[Sequence[int] | None],
        rooms: Sequence[int],
        states: Sequence[State],
    ) -> Pool:
        """Bring trees to states. The pool is consumed.

        Args:
          pool: of all trees.
          rows: the trees.
          paths: slots from each tree's root to its state, at most PATH_PLIES; None to begin anew.
          rooms: nodes that each tree is to have room for.
          states: one board each.
        """
        for part in self._parts(len(rows)):
            pool = self._resume_some(pool, rows[part], paths[part], rooms[part], states[part])
        return pool

    def _resume_some(self, pool: Pool, rows: Any, paths: Any, rooms: Any, states: Any) -> Pool:
        size = self._padded(len(rows), self._few)
        is_known, path = np.zeros(size, bool), np.full((size, PATH_PLIES), END, np.int32)
        for place, slots in enumerate(paths):
            is_known[place] = slots is not None
            path[place, : len(slots or ())] = slots or ()
        room = np.zeros(size, np.int32)
        room[: len(rooms)] = rooms
        filled = [*states, *[self._finished] * (size - len(rows))]
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
        return self._programs["resume", size](
            self._variables, pool, self._rows(rows, size), is_known, path, room, stacked
        )

    def grow(self, pool: Pool, rows: Sequence[int], due: np.ndarray) -> Pool:
        """Some simulations of trees, at most a chunk. The pool is consumed.

        Args:
          pool: of all trees.
          rows: the trees.
          due: int32[len(rows), steps], visits of the slots that are due, for each simulation.
        """
        steps = due.shape[1]
        size = self._padded(len(rows), self._options.batch_sizes)
        filled = np.zeros((size, self._options.chunk), np.int32)
        filled[: len(rows), :steps] = due
        # Of the tree that fills up there is one slot, and each simulation visits it.
        grow = self._programs["grow", size]
        return grow(self._variables, pool, self._rows(rows, size), filled, np.int32(steps))

    def report(self, pool: Pool, rows: Sequence[int]) -> Found:
        """What was found at the roots of trees, NumPy arrays [len(rows), ...]."""
        return self._fetched(rows, lambda size, own: self._programs["report", size](pool, own))

    def describe(self, pool: Pool, rows: Sequence[int]) -> Details:
        """The details of trees, NumPy arrays [len(rows), ...]."""

        def describe(size: int, own: np.ndarray) -> Details:
            return self._programs["describe", size](self._variables, pool, own)

        return self._fetched(rows, describe)

    def _fetched(self, rows: Sequence[int], ask: Callable[[int, np.ndarray], Any]) -> Any:
        """What a program tells of trees, NumPy arrays [len(rows), ...]."""
        told = []
        for part in self._parts(len(rows)):
            size = self._padded(len(rows[part]), self._few)
            told.append(ask(size, self._rows(rows[part], size)))
        joined = jax.tree.map(lambda *some: np.concatenate(some), *fetch(told))
        return jax.tree.map(lambda x: x[: len(rows)], joined)

    def _parts(self, count: int) -> Iterator[slice]:
        """Parts of so many trees for one call each; all but the last are full."""
        most = self._few[-1]
        return (slice(first, first + most) for first in range(0, count, most))

    def _rows(self, rows: Sequence[int], size: int) -> np.ndarray:
        return np.array([*rows, *[self.padding] * (size - len(rows))], np.int32)

    def _padded(self, count: int, sizes: Sequence[int]) -> int:
        return next(size for size in sizes if size >= count)
