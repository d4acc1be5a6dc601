"""Draws figures with their intervals: a row each, curves with bands, or ratings of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from train.metrics.figure import (
    COLOURS,
    DASHED,
    GREY,
    INK,
    MARKS,
    new_figure,
    new_plot,
    set_style,
    short_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW, _FRAME = 0.34, 1.2  # inches
_NEAR = 300.0
"""Elo points that an anchor may lie off the curves' axis and still have its line."""
_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


class Interval(NamedTuple):
    """A figure of somebody."""

    name: str
    value: float
    low: float  # equal to `value` where there is no interval
    high: float


def intervals_figure(
    rows: Sequence[Interval],
    *,
    title: str,
    x_label: str,
    middle: float | None = None,
    is_share: bool = False,
) -> "Figure":
    """A figure of matplotlib: a dot and a line for each row, the first on top.

    Args:
      rows: at least one.
      title: of the plot.
      x_label: says what the figures are.
      middle: where a dashed line stands; None for none.
      is_share: whether the figures are from 0 to 1, which the axis then shows in per cent.
    """
    figure = new_figure(size=(7.5, _FRAME + _ROW * len(rows)), dpi=110)
    axes = figure.add_subplot()
    set_style(axes)
    axes.grid(visible=False, axis="y")
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(x_label, color=INK)
    if middle is not None:
        axes.axvline(middle, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    for place, row in enumerate(rows):
        axes.plot((row.low, row.high), (place, place), color=COLOURS[0], linewidth=2.2, alpha=0.55)
        axes.plot(row.value, place, color=COLOURS[0], marker="o", markersize=6)
    axes.set_yticks(range(len(rows)), [short_name(row.name) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if is_share:
        axes.set_xlim(0, 1.02)
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    return figure


class Curve(NamedTuple):
    """A line of a plot with its band."""

    name: str  # empty for a line without a label
    points: Mapping[Any, Sequence[float]]  # by x: value, low and high end, and whatever follows
    is_control: bool = False  # dotted and grey, without a band


def rates_figure(
    rows: Sequence[Interval], players: int, title: str, *, label: str = ""
) -> "Figure":
    """`intervals_figure` of win rates in games of `players`; `label` says what they are, by default
    shares of the points or win rates."""
    label = label or ("share of the points" if players == 2 else "win rate")
    drawn = "" if players == 2 else f", a draw as 1/{players}"
    return intervals_figure(
        rows,
        title=title,
        x_label=f"{label}{drawn}, 95 % intervals",
        middle=1 / players,
        is_share=True,
    )


def curves_figure(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    is_share: bool = False,
    level: float | None = None,
    is_log: bool = False,
) -> Any:
    """A figure of matplotlib with lines and their bands.

    Args:
      curves: at least one.
      title: of the plot.
      x_label: of the axis.
      y_label: of the axis.
      is_share: whether y is from 0 to 1, which the axis then shows in per cent.
      level: where a dashed line stands; None for none.
      is_log: whether the x axis has powers of two, with a tick at each point.
    """
    figure, axes = new_plot(title=title, x_label=x_label, y_label=y_label)
    place = 0
    for name, points, is_control in curves:
        if not points:
            continue
        x, (middle, low, high) = (
            [*points],
            zip(*(each[:3] for each in points.values()), strict=True),
        )
        if is_control:
            axes.plot(x, middle, color=GREY, linewidth=1, linestyle=":", label=name)
            continue
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(x, middle, color=colour, marker=mark, markersize=5, label=name)
        place += 1
    if level is not None:
        axes.axhline(level, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    if is_log:
        ticks = sorted({x for curve in curves for x in curve.points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    if is_share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if any(curve.name for curve in curves):
        axes.legend(frameon=False, fontsize=8)
    return figure


def ratings_figure(
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, str],
    *,
    title: str,
    x_label: str,
    x_of: Callable[[str, list[int]], Sequence[float]] = lambda run, iterations: iterations,
) -> Any:
    """A line with a band of 95 % intervals for each run, a dashed line for each other player, as a
    figure of matplotlib.

    Args:
      rows: of a `train.ratings.rated.RatedPool`.
      runs: the name of each run by its directory.
      title: of the figure.
      x_label: of the horizontal axis.
      x_of: (directory, iterations) -> their places on that axis.
    """
    curves = []
    for run, name in runs.items():
        of_run = sorted((row for row in rows if row["run"] == run), key=lambda x: x["iteration"])
        points = [[row[key] for key in ("elo", "low", "high")] for row in of_run]
        x, label = x_of(run, [row["iteration"] for row in of_run]), short_name(name)
        points_at = dict(zip(x, points, strict=True))
        curves.append(Curve(f"{label} (band: 95 % interval)", points_at))
    figure = curves_figure(curves, title=title, x_label=x_label, y_label="Elo")
    figure.set_size_inches(6.6, 4.6)  # so that its words can be read where it is half a page wide
    (axes,) = figure.axes
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _draw_anchors(axes, {row["player"]: row["elo"] for row in rows if row["run"] is None})
    return figure


def _draw_anchors(axes: Any, anchors: Mapping[str, float]) -> None:
    """Draw a line for each anchor near the curves, with its name at the right; names that would
    overlap move. The axis ends before anchors farther off, whose names point there."""
    low, high = axes.get_ylim()
    near = [elo for elo in anchors.values() if low - _NEAR <= elo <= high + _NEAR]
    for elo in near:
        axes.axhline(elo, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    low, high = axes.get_ylim()
    ordered = sorted(anchors.items(), key=lambda entry: entry[1])
    # Half a gap above the foot, so that two names there stay clear of the other axis' numbers.
    foot = _LABEL_GAP / 2
    places = [min(max((elo - low) / (high - low), foot), 1.0) for _, elo in ordered]
    heights = spread_labels(places, _LABEL_GAP)
    for (name, elo), place, height in zip(ordered, places, heights, strict=True):
        arrow = "" if elo in near else " ↓" if elo < low else " ↑"
        axes.annotate(
            f"{short_name(name)}  {elo:.0f}{arrow}",
            xy=(1, place),
            xytext=(1.02, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=9,
            color=INK,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )


def spread_labels(heights: Sequence[float], gap: float) -> list[float]:
    """Move rising heights as little as needed for gaps of at least `gap`, by least squares."""
    steps = gap * np.arange(len(heights))
    return (
        (isotonic_regression(np.array(heights) - steps).x + steps).tolist() if len(heights) else []
    )
