"""A jitted function that is compiled before its first call, so that compiling is timed alone."""

import functools
from collections.abc import Callable
from typing import Any

from jax.stages import Compiled, Traced, Wrapped

from train.runtime.memory import program_bytes


class CompiledFunction:
    """A jitted function with one compiled program, whose shapes never change."""

    def __init__(self, jitted: Wrapped, like: Callable[[], tuple[Any, ...]]) -> None:
        """Compile nothing yet.

        Args:
          jitted: the function.
          like: makes arguments to compile for, arrays or shapes with shardings.
        """
        self._jitted, self._like = jitted, like

    def trace(self) -> Traced:
        """Trace the function, as `jax.jit` does; the devices need not be there."""
        return self._jitted.trace(*self._like())

    @functools.cached_property
    def compiled(self) -> Compiled:
        """The program, which the first use compiles."""
        return self.trace().lower().compile()

    @property
    def bytes(self) -> int:
        """Bytes that the program takes on one device in addition to its arguments."""
        return program_bytes(self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)
