"""Measures the core's speed by number of boards, and draws it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.bench.harness import play, timing
from train.bench.parts import games
from train.bench.suite import devices_for
from train.bench.sweep import PLOT, default_batches, knee_at, knee_text
from train.metrics.plot_style import COLOURS, DASHED, GREY, INK, new_plot, save_figure
from wallgo_jax.game.rules import Rules


class Point(NamedTuple):
    """Speed at a batch."""

    batch: int
    plies: float  # a second
    games: float  # a second, plies over the mean length of all games measured; 0 if none ended


def sweep(
    rules: Rules,
    *,
    batches: Sequence[int] = (),
    seconds: float,
    repeats: int,
    on_progress: Callable[[str], None] = lambda text: None,
) -> list[Point]:
    """Measure random play of the core at each batch, or at those of the device."""
    game, benches = games.core_game(rules, on_bits=True), []
    for batch in sorted(set(batches or default_batches(PLOT, jax.default_backend()))):
        on_progress(f"scaling, batch {batch}: compiling")
        benches.append(play.make_bench(game, batch, devices_for(batch)))
    on_progress("scaling: measuring")
    rows = timing.take_turns(benches, seconds=seconds, repeats=repeats)
    plies, games_played = (sum(row.rates[of] for row in rows) for of in ("plies", "games"))
    share = games_played / plies
    return [Point(row.batch, row.rates["plies"], share * row.rates["plies"]) for row in rows]


def plies_by_batch(points: Sequence[Point]) -> dict[int, float]:
    """Plies a second by batch."""
    return {point.batch: point.plies for point in points}


def draw(path: Path, points: Sequence[Point], *, title: str) -> None:
    """Write the plot as a picture; the path's suffix names its format.

    Raises:
      UsageError: the file cannot be written.
    """
    from matplotlib.ticker import NullLocator

    points = sorted(points)
    knee = knee_at(plies_by_batch(points))
    has_games = min(point.games for point in points) > 0
    figure, axes = new_plot(
        title=title,
        x_label="boards at once (batch)",
        y_label="games a second" if has_games else "plies a second",
    )
    batches = [point.batch for point in points]
    speeds = [point.games if has_games else point.plies for point in points]
    axes.loglog(batches, speeds, color=COLOURS[0], marker="o", markersize=5, linewidth=1.8)
    axes.set_xticks(batches, [f"{batch:,}" for batch in batches])
    axes.xaxis.set_minor_locator(NullLocator())
    _set_speed_ticks(axes.yaxis)
    if has_games:
        plies = points[0].plies / points[0].games
        right = axes.secondary_yaxis("right", functions=(lambda x: x * plies, lambda x: x / plies))
        right.set_ylabel("plies a second", color=INK)
        _set_speed_ticks(right.yaxis)
        right.tick_params(colors=INK)
        right.spines["right"].set_visible(False)
    if knee is not None:
        axes.axvline(knee, linestyle=DASHED, linewidth=1, color=GREY, zorder=1)
    save_figure(figure, path, caption=knee_text(plies_by_batch(points)))


def _set_speed_ticks(axis: Any) -> None:
    """Ticks at 1, 2 and 5 of each power of ten, such as 20 k."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(EngFormatter())
