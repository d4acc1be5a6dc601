"""The programs of an engine, compiled for batches of a few sizes.

Those of the smallest batches come first. While larger ones are compiled in the background, smaller
batches are searched; nothing that is asked compiles anything.
"""

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from train.engine import pool as pool_lib
from train.engine.options import EngineOptions
from train.engine.pool import END, Pool, make_pool, searching_of
from train.players.basic import Player
from train.runtime.host import fetch
from train.runtime.memory import MemoryEstimate, check_fits, device_memory, tree_bytes
from train.search.report import SearchReport
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state

_LOG = logging.getLogger(__name__)
PATH_PLIES = 8
"""Plies by which a session may have moved on since its last search for its tree to be kept."""
_MOST_AT_ONCE = 16
"""Trees of one call at the most, of the calls that an answer needs once. To resume copies each
tree, and programs for few trees are all that has to be compiled."""
_COMPILING = 4
"""Programs of the smallest batches that are compiled at the same time."""


class Programs:
    """Searches the trees of a pool by batches. Every batch is padded to a compiled size.

    Attributes:
      start: the first position of the rules, one board.
    """

    def __init__(
        self,
        player: Player,
        rules: Rules,
        options: EngineOptions,
        on_compiled: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Begin to compile those of the smallest batches, in other threads; the arguments are those
        of `Sessions`.

        Raises:
          UsageError: the trees do not fit in the memory.
        """
        self._options, sizes = options, options.batch_sizes
        self._variables = jax.device_put(player.variables)
        self.start = fetch(initial_state(rules))
        over = self.start.position._replace(terminated=np.bool_(True))
        self._finished = self.start._replace(position=over)
        self._few = tuple(n for n in sizes if n <= _MOST_AT_ONCE) or sizes[:1]
        self._how = searching_of(player)
        make = jax.jit(lambda state: make_pool(state, trees=options.trees, nodes=options.nodes))
        self._pool = jax.eval_shape(make, self._finished)
        memory = device_memory()
        # A session of the largest batch needs a tree: without more, nodes have to be fewer.
        names = ("trees", "nodes") if options.trees > sizes[-1] else ("nodes",)
        keys = tuple(map(argument, names))
        # All trees are on one device, whatever others share its memory.
        estimate = MemoryEstimate("trees", tree_bytes(self._pool), keys)
        check_fits([estimate], memory and memory._replace(devices=1))
        self._programs: dict[tuple[str, int], Future[Any]] = {}
        threads = ThreadPoolExecutor(_COMPILING, "first-compiler")
        self._compile(threads, "make", 0, make, self._finished)
        self._compile_size(threads, sizes[0])
        threads.shutdown(wait=False)
        first = list(self._programs.values())
        for program in first:
            program.add_done_callback(
                lambda _: on_compiled(sum(each.done() for each in first), len(first))
            )

    def compile_rest(self) -> None:
        """Begin to compile those of larger batches, in the background; until that is done, batches
        are smaller."""
        for size in self._options.batch_sizes[1:]:
            if ("grow", size) not in self._programs:
                self._compile_size(_background(), size)

    def wait(self) -> None:
        """Wait until all that has begun is compiled."""
        for program in list(self._programs.values()):
            program.result()

    def stop(self) -> None:
        """Compile nothing more."""
        for program in self._programs.values():
            program.cancel()

    @property
    def is_compiling(self) -> bool:
        """Whether something that has begun is not compiled yet."""
        return not all(program.done() for program in list(self._programs.values()))

    def sizes(self, name: str = "grow") -> list[int]:
        """The sizes for which a program is compiled by now, ascending; batches of those of `grow`
        can be searched."""
        done = [(key, each) for key, each in list(self._programs.items()) if each.done()]
        failed = [key for key, each in done if each.cancelled() or each.exception()]
        return sorted(size for (of, size), _ in done if of == name and (of, size) not in failed)

    def size_for(self, batch: int) -> int:
        """The smallest of `sizes` for a batch."""
        return next(size for size in self.sizes() if size >= batch)

    def _compile_size(self, threads: ThreadPoolExecutor, size: int) -> None:
        """Let threads compile the programs of a size, those that take longest first."""
        like, chunk = jax.ShapeDtypeStruct, self._options.chunk
        rows, due = like((size,), np.int32), like((size, chunk), np.int32)
        steps, trees = like((), np.int32), (self._how, self._variables, self._pool, rows)
        self._compile(threads, "grow", size, pool_lib.grow, *trees, due, steps)
        if size in self._few:
            flags, path = like((size,), np.bool_), like((size, PATH_PLIES), np.int32)
            states = jax.tree.map(lambda x: like((size, *np.shape(x)), x.dtype), self._finished)
            more = flags, path, rows, states
            self._compile(threads, "resume", size, pool_lib.resume, *trees, *more)
            self._compile(threads, "report", size, pool_lib.report, *trees)

    def _compile(
        self, threads: ThreadPoolExecutor, name: str, size: int, program: Any, *arguments: Any
    ) -> None:
        begun = threads.submit(lambda: program.lower(*arguments).compile())
        begun.add_done_callback(functools.partial(_log_failure, size))
        self._programs[name, size] = begun

    def new_pool(self) -> Pool:
        """A pool without searches."""
        return self._programs["make", 0].result()(self._finished)

    def resume(
        self,
        pool: Pool,
        rows: Sequence[int],
        paths: Sequence[Sequence[int] | None],
        rooms: Sequence[int],
        states: Sequence[State],
    ) -> Pool:
        """Bring trees to states, one board each. The pool is consumed.

        Args:
          pool: of all trees.
          rows: the trees.
          paths: slots from each tree's root to its state, at most PATH_PLIES; None to begin anew.
          rooms: nodes that each tree is to have room for.
          states: of the trees.
        """
        for part, size in self._parts("resume", rows):
            is_known, path = np.zeros(size, bool), np.full((size, PATH_PLIES), END, np.int32)
            for place, slots in enumerate(paths[part]):
                is_known[place] = slots is not None
                path[place, : len(slots or ())] = slots or ()
            room, some = np.zeros(size, np.int32), states[part]
            room[: len(some)] = rooms[part]
            filled = [*some, *[self._finished] * (size - len(some))]
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
            more = is_known, path, room, stacked
            pool = self._run("resume", size, pool, rows[part], *more)
        return pool

    def grow(self, pool: Pool, rows: Sequence[int], due: np.ndarray) -> Pool:
        """Some simulations of trees, at most a chunk, by the visits int32[len(rows), steps] of the
        slots that are due. The pool is consumed."""
        size = self.size_for(len(rows))
        filled = np.zeros((size, self._options.chunk), np.int32)
        filled[: len(rows), : due.shape[1]] = due
        # Of the tree that fills up there is one slot, and each simulation visits it.
        return self._run("grow", size, pool, rows, filled, np.int32(due.shape[1]))

    def report(self, pool: Pool, rows: Sequence[int]) -> SearchReport:
        """The reports of trees, NumPy arrays [len(rows), ...]."""
        parts = self._parts("report", rows)
        reports = fetch([self._run("report", size, pool, rows[part]) for part, size in parts])
        # All but the last part are full, so what fills up is behind.
        return jax.tree.map(lambda *some: np.concatenate(some)[: len(rows)], *reports)

    def _run(self, name: str, size: int, pool: Pool, rows: Sequence[int], *arguments: Any) -> Any:
        """Call a program of a size for some trees, filled up by the one that is finished."""
        filled = np.array([*rows, *[self._options.trees] * (size - len(rows))], np.int32)
        return self._programs[name, size].result()(self._variables, pool, filled, *arguments)

    def _parts(self, name: str, rows: Sequence[int]) -> Iterator[tuple[slice, int]]:
        """Parts of some trees for one call each of a program, and its size."""
        sizes = self.sizes(name)
        for first in range(0, len(rows), sizes[-1]):
            count = min(len(rows) - first, sizes[-1])
            yield slice(first, first + count), next(size for size in sizes if size >= count)


@functools.cache
def _background() -> ThreadPoolExecutor:
    """One thread, however many engines there are: others are to be answered meanwhile."""
    return ThreadPoolExecutor(1, "compiler")


def _log_failure(size: int, program: "Future[Any]") -> None:
    if not program.cancelled() and program.exception() is not None:
        _LOG.error("batches of %d cannot be compiled: %s", size, program.exception())
