"""Runs that take turns, and their medians."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from train.bench.harness.program import ProgramStats

CHECKSUM = "checksum"
_MODULUS = 2**32


class Bench(NamedTuple):
    """Something to be measured."""

    name: str
    batch: int
    run: Callable[[int], dict[str, float]]
    """Do so many units of work and wait for them. Returns how much was done, by what is counted,
    and under CHECKSUM a number that depends on all that was worked out."""
    stats: ProgramStats | None


class Row(NamedTuple):
    """What was measured."""

    name: str
    batch: int
    length: int  # units a run
    seconds: tuple[float, ...]  # of each run
    rates: dict[str, float]  # medians, a second
    checksum: int
    stats: ProgramStats | None


def take_turns(benches: Sequence[Bench], *, seconds: float, repeats: int) -> list[Row]:
    """Measure all, run by run in turn, so that a drift of the machine's speed meets all of them.

    Args:
      seconds: that a run lasts at least about; what warms up is not counted.
      repeats: runs of each, of which the median is taken.
    """
    lengths = [_lasting(bench, seconds) for bench in benches]
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


def _lasting(bench: Bench, seconds: float) -> int:
    """Units that last about so long; the bench has run on return."""
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
