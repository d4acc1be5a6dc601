"""Compiles a program and records how: seconds, equations, memory."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from train.network.parts import sum_equations

_CACHE_HIT = "/jax/compilation_cache/cache_hits"


class ProgramStats(NamedTuple):
    """Figures of a compilation."""

    compile_seconds: float  # tracing and lowering included
    is_cached: bool  # whether XLA's part came from the persistent cache
    equations: int
    peak_bytes: int  # of one device at once, by the program's own memory analysis


class Program(NamedTuple):
    """A compiled program; `call` takes the arguments of the function that was compiled."""

    call: Any
    stats: ProgramStats


def compile_program(
    function: Any, arguments: Sequence[Any], *, donate: Sequence[int] = ()
) -> Program:
    """Compile a function, or one that is jitted already, for arguments or their shapes.

    Args:
      donate: indices of arguments whose buffers the program may reuse; ignored for a function that
        is jitted already.
    """
    jitted = function if hasattr(function, "trace") else jax.jit(function, donate_argnums=donate)

    def compile_it() -> tuple[Any, Any]:
        traced = jitted.trace(*arguments)
        return traced, traced.lower().compile()

    (_, compiled), stats = timed(compile_it)
    return Program(compiled, stats)


def timed(compile_it: Callable[[], tuple[Any, Any]]) -> tuple[tuple[Any, Any], ProgramStats]:
    """Call a function that traces and compiles; returns its result and the figures."""
    hits = _HitCount()
    jax.monitoring.register_event_listener(hits)
    try:
        began = time.perf_counter()
        result = compile_it()
        seconds = time.perf_counter() - began
    finally:
        jax.monitoring.unregister_event_listener(hits)
    traced, compiled = result
    memory = compiled.memory_analysis()
    needed = (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes
    )
    return result, ProgramStats(seconds, hits.count > 0, count_equations(traced.jaxpr), needed)


def count_equations(jaxpr: Any) -> int:
    """Equations of a jaxpr, those of its loop bodies, branches and calls included."""
    return sum_equations(jaxpr, lambda equation: 1)


class _HitCount:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: str, **_: Any) -> None:
        self.count += event == _CACHE_HIT
