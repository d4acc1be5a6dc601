"""Measures the core's plies a second by batch, and finds the knee, past which more boards add
little speed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from train.bench.harness import play, timing
from train.bench.parts import games
from train.bench.suite import devices_for
from train.loop.run_directory import make_directory
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules

BATCHES = tuple(4**power for power in range(9))  # 1 to 65,536
KNEE = 0.8
"""The knee is the smallest batch that reaches this share of the best speed."""


class Point(NamedTuple):
    """Speed at a batch."""

    batch: int
    plies: float  # a second


def sweep(
    rules: Rules,
    *,
    batches: Sequence[int] = BATCHES,
    seconds: float,
    repeats: int,
    on_progress: Callable[[str], None] = lambda text: None,
) -> list[Point]:
    """Measure random play of the core at each batch."""
    game, benches = games.core_game(rules, on_bits=True), []
    for batch in batches:
        on_progress(f"scaling, batch {batch}: compiling")
        benches.append(play.make_bench(game, batch, devices_for(batch)))
    on_progress("scaling: measuring")
    rows = timing.take_turns(benches, seconds=seconds, repeats=repeats)
    return [Point(row.batch, row.rates["plies"]) for row in rows]


def knee_of(points: Sequence[Point]) -> Point:
    """The smallest batch that reaches KNEE of the best speed."""
    best = max(point.plies for point in points)
    return min(point for point in points if point.plies >= KNEE * best)


def draw(path: Path, points: Sequence[Point], *, title: str) -> None:
    """Write the plot as a picture; the path's suffix names its format.

    Raises:
      UsageError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    make_directory(path.parent)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes, knee = figure.subplots(), knee_of(points)
    batches, speeds = zip(*points, strict=True)
    axes.loglog(batches, speeds, marker="o")
    axes.axvline(knee.batch, linestyle="--", linewidth=1, color="grey")
    axes.annotate(
        f"{KNEE:.0%} of the best at {knee.batch:,}",
        (knee.batch, min(speeds)),
        textcoords="offset points",
        xytext=(-6, 0),
        horizontalalignment="right",
    )
    axes.set(xlabel="boards at once", ylabel="plies a second", title=title)
    axes.grid(which="major", linewidth=0.5, alpha=0.5)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be written: {error}") from None
