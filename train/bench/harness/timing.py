"""Runs benchmarks in turns and takes medians."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train.bench.harness.program import ProgramStats

CHECKSUM = "checksum"
_MODULUS = 2**32


class Bench(NamedTuple):
    """A benchmark."""

    name: str
    batch: int
    run: Callable[[int], dict[str, float]]
    """Does the given number of units of work and waits for them. Returns the amount done by name of
    what is counted, and under CHECKSUM a number that depends on all results."""
    stats: ProgramStats | None


class Row(NamedTuple):
    """The measurements of a benchmark."""

    name: str
    batch: int
    length: int  # units a run
    seconds: tuple[float, ...]  # of each run
    rates: dict[str, float]  # medians, a second
    checksum: int
    stats: ProgramStats | None


def take_turns(benches: Sequence[Bench], *, seconds: float, repeats: int) -> list[Row]:
    """Measure all, run by run in turn, so that a drift of the machine's speed affects all alike.

    Args:
      seconds: least length of a run, about; warm-up is not counted.
      repeats: runs of each; their median counts.
    """
    lengths = [_length_for(bench, seconds) for bench in benches]
    times: list[list[float]] = [[] for _ in benches]
    counts: list[list[dict[str, float]]] = [[] for _ in benches]
    for _ in range(repeats):
        for index, bench in enumerate(benches):
            began = time.perf_counter()
            counts[index].append(bench.run(lengths[index]))
            times[index].append(time.perf_counter() - began)
    return [
        Row(
            name=bench.name,
            batch=bench.batch,
            length=lengths[index],
            seconds=tuple(times[index]),
            rates=_rates(times[index], counts[index]),
            checksum=int(sum(count[CHECKSUM] for count in counts[index])) % _MODULUS,
            stats=bench.stats,
        )
        for index, bench in enumerate(benches)
    ]


def _length_for(bench: Bench, seconds: float) -> int:
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


def _rates(times: Sequence[float], counts: Sequence[dict[str, float]]) -> dict[str, float]:
    return {
        name: statistics.median(
            count[name] / took for count, took in zip(counts, times, strict=True)
        )
        for name in counts[0]
        if name != CHECKSUM
    }
