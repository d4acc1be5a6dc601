"""The programs of an engine, all compiled at the start for batches of a few sizes."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
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
_MOST_RESUMED = 16
"""Trees that are resumed in one call at the most: the call copies each of them."""


class Programs:
    """Searches the trees of a pool by batches. Every batch is padded to a compiled size."""

    def __init__(self, guide: Guide, rules: Rules, options: EngineOptions) -> None:
        self._options, self._rules = options, rules
        self._variables = jax.device_put(guide.variables)
        start = fetch(initial_state(rules))
        self._finished = start._replace(position=start.position._replace(terminated=np.bool_(True)))
        self._make = (
            jax.jit(lambda state: make_pool(state, trees=options.trees, nodes=options.nodes))
            .lower(self._finished)
            .compile()
        )
        sizes = options.batch_sizes
        self._resumed = tuple(n for n in sizes if n <= _MOST_RESUMED) or sizes[:1]
        self._compile(guide)

    def _compile(self, guide: Guide) -> None:
        pool = jax.eval_shape(self._make_like)
        resume = jax.jit(make_resume(guide), donate_argnums=1)
        grow = jax.jit(make_grow(guide), donate_argnums=1)
        report, describe = jax.jit(make_report(guide)), jax.jit(make_describe(guide))
        like = jax.ShapeDtypeStruct
        steps = like((), np.int32)
        self._programs: dict[tuple[str, int], Any] = {}
        for size in self._options.batch_sizes:
            rows = like((size,), np.int32)
            due = like((size, self._options.chunk), np.int32)
            lowered = {
                "grow": grow.lower(self._variables, pool, rows, due, steps),
                "report": report.lower(pool, rows),
                "describe": describe.lower(self._variables, pool, rows),
            }
            if size in self._resumed:
                path = like((size, PATH_PLIES), np.int32)
                flags = like((size,), np.bool_)
                states = jax.tree.map(
                    lambda x, size=size: like((size, *np.shape(x)), x.dtype), self._finished
                )
                lowered["resume"] = resume.lower(
                    self._variables, pool, rows, flags, path, rows, states
                )
            for name, program in lowered.items():
                self._programs[name, size] = program.compile()

    def _make_like(self) -> Pool:
        options = self._options
        return make_pool(
            jax.tree.map(jnp.asarray, self._finished), trees=options.trees, nodes=options.nodes
        )

    @property
    def padding(self) -> int:
        """The number of the tree that fills batches up."""
        return self._options.trees

    def new_pool(self) -> Pool:
        """A pool without searches."""
        return self._make(self._finished)

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
        most = self._resumed[-1]
        for first in range(0, len(rows), most):
            part = slice(first, first + most)
            pool = self._resume_some(pool, rows[part], paths[part], rooms[part], states[part])
        return pool

    def _resume_some(self, pool: Pool, rows: Any, paths: Any, rooms: Any, states: Any) -> Pool:
        size = self._padded(len(rows), self._resumed)
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

    def grow(self, pool: Pool, rows: Sequence[int], due: np.ndarray, steps: int) -> Pool:
        """Some simulations of trees, at most a chunk. The pool is consumed.

        Args:
          pool: of all trees.
          rows: the trees.
          due: int32[len(rows), steps], visits of the slots that are due.
          steps: simulations.
        """
        size = self._padded(len(rows), self._options.batch_sizes)
        filled = np.zeros((size, self._options.chunk), np.int32)
        filled[: len(rows), :steps] = due
        # Of the tree that fills up there is one slot, and each simulation visits it.
        grow = self._programs["grow", size]
        return grow(self._variables, pool, self._rows(rows, size), filled, np.int32(steps))

    def report(self, pool: Pool, rows: Sequence[int]) -> Found:
        """What was found at the roots of trees, NumPy arrays [len(rows), ...]."""
        size = self._padded(len(rows), self._options.batch_sizes)
        found = fetch(self._programs["report", size](pool, self._rows(rows, size)))
        return jax.tree.map(lambda x: x[: len(rows)], found)

    def describe(self, pool: Pool, rows: Sequence[int]) -> Details:
        """The details of trees, NumPy arrays [len(rows), ...]."""
        size = self._padded(len(rows), self._options.batch_sizes)
        describe = self._programs["describe", size]
        details = fetch(describe(self._variables, pool, self._rows(rows, size)))
        return jax.tree.map(lambda x: x[: len(rows)], details)

    def _rows(self, rows: Sequence[int], size: int) -> np.ndarray:
        return np.array([*rows, *[self.padding] * (size - len(rows))], np.int32)

    def _padded(self, count: int, sizes: Sequence[int]) -> int:
        return next(size for size in sizes if size >= count)
