"""A jitted function that is compiled before its first call, so that compiling is timed alone."""

import time
from typing import Any

from jax.stages import Compiled, Traced, Wrapped

from train.runtime.memory import program_bytes


class Ahead:
    """A jitted function with one compiled program, whose shapes never change.

    A call before `compile` compiles for its own arguments.
    """

    def __init__(self, jitted: Wrapped) -> None:
        self._jitted = jitted
        self._compiled: Compiled | None = None

    def compile(self, *like: Any) -> float:
        """Compile for arguments like these, arrays or shapes with shardings.

        Returns:
          Seconds that the compiler took; 0 where the program is there already.
        """
        if self._compiled is not None:
            return 0.0
        started = time.perf_counter()
        self._compiled = self._jitted.lower(*like).compile()
        return time.perf_counter() - started

    @property
    def bytes(self) -> int:
        """Bytes that the compiled program takes on one device in addition to its arguments."""
        assert self._compiled is not None
        return program_bytes(self._compiled)

    def trace(self, *arguments: Any) -> Traced:
        """Trace the function, as `jax.jit` does."""
        return self._jitted.trace(*arguments)

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is None:
            self.compile(*arguments)
        assert self._compiled is not None
        return self._compiled(*arguments)
