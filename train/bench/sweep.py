"""Measures a part of the suite at growing batches, up to the end of memory, and finds the knee of
its speed, past which more boards add little."""

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from train.bench.harness.timing import Row
from train.runtime.errors import UsageError
from train.runtime.memory import out_of_memory_message

CPU_BATCHES = (256, 1024)
GAME_BATCHES = (1024, 4096, 16_384, 65_536, 262_144)
NETWORK_BATCHES = (512, 2048, 8192, 16_384)
"""Batches of an accelerator: of the game, and of all parts that evaluate a network."""
PLOT = "plot"
PLOT_BATCHES = tuple(4**power for power in range(9))  # 1 to 65,536
KNEE = 0.8
"""The knee is the smallest batch that reaches this share of the best speed."""
RISING = 0.16
"""Slope, in powers of the batch, from which the last step still rises: four times the boards gain a
quarter of speed."""
SPEEDS = {"env": "plies", "search": "simulations", "selfplay": "evaluations", "learn": "positions"}
"""What the speed of each part counts."""


class Swept(NamedTuple):
    """A part's measurements, up to the largest batch that fits."""

    rows: tuple[Row, ...]
    note: str  # why it stopped; empty where all batches fit


def default_batches(part: str, platform: str) -> tuple[int, ...]:
    """The batches at which a part, or PLOT, is measured on a platform of JAX unless others are
    named."""
    if part == PLOT:
        return PLOT_BATCHES if platform == "cpu" else (*PLOT_BATCHES, 4 * PLOT_BATCHES[-1])
    if platform == "cpu":
        return CPU_BATCHES
    return GAME_BATCHES if part == "env" else NETWORK_BATCHES


def sweep(
    part: str, batches: Sequence[int], measure: Callable[[int], Sequence[Row]], *, unit: str = ""
) -> Swept:
    """Measure a part at each batch, from the smallest on, until memory ends.

    Args:
      part: its name, for the note.
      batches: in any order.
      measure: batch -> its rows.
      unit: what a batch counts.

    Raises:
      UsageError: as `measure` does at the smallest batch; at others it ends the sweep.
      MemoryError, RuntimeError: likewise.
    """
    rows: list[Row] = []
    for batch in sorted(set(batches)):
        try:
            rows.extend(measure(batch))
        except (UsageError, RuntimeError, MemoryError) as error:
            reason = str(error) if isinstance(error, UsageError) else out_of_memory_message(error)
            if not rows or reason is None:
                raise
            reason = reason.partition(";")[0]
        else:
            continue
        # The error held the arrays of the batch that did not fit.
        gc.collect()
        of = f" {unit}" if unit else ""
        return Swept(tuple(rows), f"{part}: stopped before {batch:,}{of}: {reason}")
    return Swept(tuple(rows), "")


def knee_at(speeds: Mapping[int, float]) -> int | None:
    """The smallest batch that reaches KNEE of the best speed; None while the speed still rises.

    Args:
      speeds: by batch.
    """
    ordered = sorted(speeds.items())
    if len(ordered) < 2 or _slope(*ordered[-2:]) > RISING:
        return None
    best = max(speeds.values())
    return next(batch for batch, speed in ordered if speed >= KNEE * best)


def _slope(before: tuple[int, float], after: tuple[int, float]) -> float:
    return math.log(after[1] / before[1]) / math.log(after[0] / before[0])


def knee_text(speeds: Mapping[int, float], *, unit: str = "boards") -> str:
    """Where the knee is, in words."""
    knee = knee_at(speeds)
    if knee is None:
        return f"no knee: the speed still rises at {max(speeds):,} {unit}"
    return f"knee at {knee:,} {unit}, the fewest with {KNEE:.0%} of the best speed"


def knee_lines(rows: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """A line for each program that was measured at three batches or more.

    Args:
      rows: each with its part.
    """
    speeds: dict[tuple[str, str], dict[int, float]] = {}
    for part, row in rows:
        unit = SPEEDS.get(part, "")
        if unit in row.rates:
            speeds.setdefault((part, row.name), {})[row.batch] = row.rates[unit]
    for (part, name), found in speeds.items():
        if len(found) >= 3:
            yield f"{name}: {knee_text(found, unit=unit_of(part))}"


def unit_of(part: str) -> str:
    """What a batch of a part counts."""
    return "samples" if part == "learn" else "boards"
