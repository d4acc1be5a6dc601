"""Compiles programs, runs them in turns, and takes medians."""

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices, device_key
from train.runtime.host import fetch

CHECKSUM = "checksum"
_LANES, _BYTE = 64, 255


class ProgramStats(NamedTuple):
    """Figures of a compilation."""

    compile_seconds: float  # tracing and lowering included
    peak_bytes: int  # of one device at once, by the program's own memory analysis


class CompiledProgram(NamedTuple):
    """A compiled program; `call` takes the arguments of the function that was compiled."""

    call: Any
    stats: ProgramStats


class Benchmark(NamedTuple):
    """A benchmark."""

    name: str
    batch: int
    run: Callable[[int], dict[str, float]]
    """Does the given number of units of work and waits for them. Returns the amount done by name of
    what is counted, and under CHECKSUM a number that depends on all results."""
    stats: ProgramStats | None


class BenchRow(NamedTuple):
    """The measurements of a benchmark."""

    part: str  # of the suite
    name: str
    batch: int
    length: int  # units a run
    seconds: tuple[float, ...]  # of each run
    rates: dict[str, float]  # medians, a second
    checksum: int
    stats: ProgramStats | None


def compile_traced(
    trace: Callable[[], Traced], compile: Callable[[Traced], Any] = lambda x: x.lower().compile()
) -> CompiledProgram:
    """Trace and compile a program, with the figures of both."""
    began = time.perf_counter()
    traced = trace()
    compiled = compile(traced)
    seconds = time.perf_counter() - began
    memory = compiled.memory_analysis()
    needed = memory.argument_size_in_bytes + memory.output_size_in_bytes
    needed += memory.temp_size_in_bytes - memory.alias_size_in_bytes
    return CompiledProgram(compiled, ProgramStats(seconds, needed))


Turn = Callable[[Any, Any, jax.Array], tuple[Any, dict[str, jax.Array]]]
"""(arrays that all boards share, the boards, key) -> the boards after a turn and sums over them by
name, uint32[]."""


def compile_loop(turn: Turn, shared: Any, boards: Any, devices: Devices) -> CompiledProgram:
    """Compile a loop of turns, each device on its own boards: (shared, boards, key, turns int32[])
    -> boards and sums over all turns and devices; consumes the boards.

    Args:
      shared, boards: of the turns, or their shapes.
    """

    def loop(shared: Any, boards: Any, key: jax.Array, length: jax.Array):
        key = device_key(key)

        def body(index: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            boards, sums = turn(shared, carry[0], jax.random.fold_in(key, index))
            return boards, jax.tree.map(jnp.add, carry[1], sums)

        shapes = jax.eval_shape(turn, shared, boards, key)[1]
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        boards, sums = jax.lax.fori_loop(0, length, body, (boards, zeros))
        return boards, jax.lax.psum(sums, AXIS)

    specs = (EVERYWHERE, BY_BOARD, EVERYWHERE, EVERYWHERE)
    program = devices.per_device(loop, specs, (BY_BOARD, EVERYWHERE))
    key = devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE)
    jitted = jax.jit(program, donate_argnums=1)
    return compile_traced(lambda: jitted.trace(shared, boards, key, np.int32(1)))


Amounts = Callable[[int, dict[str, Any]], dict[str, float]]
"""(units of work, sums over them) -> what a run of `Benchmark` returns."""


def make_loop_bench(
    name: str,
    batch: int,
    turn: Turn,
    shared: Any,
    boards: Any,
    devices: Devices,
    amounts: Amounts,
) -> Benchmark:
    """A benchmark whose unit is a turn; a run is one call of `compile_loop`."""
    shared = jax.device_put(shared, devices.sharding(EVERYWHERE))
    boards = jax.device_put(boards, devices.sharding(BY_BOARD))
    program = compile_loop(turn, shared, boards, devices)
    held, calls = [boards], itertools.count(1)

    def run(length: int) -> dict[str, float]:
        key = jax.device_put(jax.random.key(next(calls)), devices.sharding(EVERYWHERE))
        held[0], sums = program.call(shared, held[0], key, np.int32(length))
        return amounts(length, jax.tree.map(int, fetch(sums)))

    return Benchmark(name, batch, run, program.stats)


def make_call_bench(
    name: str,
    batch: int,
    call: Callable[[Any, int], tuple[Any, dict[str, Any]]],
    state: Any,
    stats: ProgramStats,
    amounts: Amounts,
) -> Benchmark:
    """A benchmark whose unit is a call: (state, number of the call from 1 on) -> state and sums by
    name."""
    held, calls = [state], itertools.count(1)

    def run(length: int) -> dict[str, float]:
        pending = []
        for _ in range(length):
            held[0], sums = call(held[0], next(calls))
            pending.append(sums)
        jax.block_until_ready(held[0])
        sums = jax.tree.map(lambda *each: float(np.sum(each, dtype=float)), *fetch(pending))
        return amounts(length, sums)

    return Benchmark(name, batch, run, stats)


def take_turns(
    benches: Sequence[Benchmark], *, seconds: float, repeats: int, part: str = ""
) -> list[BenchRow]:
    """Measure all, run by run in turn, so that a drift of the machine's speed affects all alike.

    Args:
      seconds: least length of a run, about; warm-up is not counted.
      repeats: runs of each; their median counts.
      part: of the rows.
    """
    lengths = [_length_for(bench, seconds) for bench in benches]
    runs: list[list[tuple[dict[str, float], float]]] = [[] for _ in benches]
    for _ in range(repeats):
        for bench, length, done in zip(benches, lengths, runs, strict=True):
            began = time.perf_counter()
            amounts = bench.run(length)
            done.append((amounts, time.perf_counter() - began))
    rows = []
    for bench, length, done in zip(benches, lengths, runs, strict=True):
        seconds_of = tuple(took for _, took in done)
        checksum = int(sum(amounts[CHECKSUM] for amounts, _ in done)) % 2**32
        rates = {
            name: statistics.median(amounts[name] / took for amounts, took in done)
            for name in done[0][0]
            if name != CHECKSUM
        }
        rows.append(
            BenchRow(
                part, bench.name, bench.batch, length, seconds_of, rates, checksum, bench.stats
            )
        )
    return rows


def _length_for(bench: Benchmark, seconds: float) -> int:
    """Units of work that take about that number of seconds; warms up the benchmark."""
    bench.run(1)
    length = 1
    while True:
        began = time.perf_counter()
        bench.run(length)
        took = time.perf_counter() - began
        if took >= seconds:
            return length
        length = min(8 * length, max(length + 1, round(1.1 * length * seconds / took)))


def count_set(array: jax.Array) -> jax.Array:
    """uint32: number of entries that are not zero; XLA must compute all of them.

    Long arrays are folded in bytes first: XLA on CPU adds slices many entries at once, but sums a
    mask entry by entry. The folds are at most 255 at a time, so that programs for large batches
    stay small.
    """
    flat = (array if array.dtype == bool else array != 0).reshape(-1)
    total = jnp.uint32(0)
    while flat.shape[0] > _LANES:
        lanes = max(_LANES, flat.shape[0] // _BYTE)
        folds = min(flat.shape[0] // lanes, _BYTE)
        parts = [flat[lanes * fold : lanes * (fold + 1)].astype(jnp.uint8) for fold in range(folds)]
        total += sum(parts[1:], parts[0]).sum(dtype=jnp.uint32)
        flat = flat[lanes * folds :]
    return total + flat.sum(dtype=jnp.uint32)
