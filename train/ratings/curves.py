"""Draws the Elo curves of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from train.metrics.intervals import Curve, curves_figure
from train.metrics.plot_style import DASHED, GREY, INK, short_name

_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


def curves_of(
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, str],
    *,
    x_of: Callable[[str, list[int]], Sequence[float]] = lambda run, iterations: iterations,
) -> tuple[list[Curve], dict[str, float]]:
    """The curves of a pool's runs, and the ratings of its other players.

    Args:
      rows: as `train.ratings.tables.rating_rows` makes them.
      runs: the name of each run by its directory.
      x_of: (directory, iterations) -> their places on the horizontal axis.
    """
    curves = []
    for run, name in runs.items():
        of_run = sorted((row for row in rows if row["run"] == run), key=lambda x: x["iteration"])
        points = [[row[key] for key in ("elo", "low", "high")] for row in of_run]
        x = x_of(run, [row["iteration"] for row in of_run])
        curves.append(Curve(name, dict(zip(x, points, strict=True))))
    return curves, {row["player"]: row["elo"] for row in rows if row["run"] is None}


def ratings_figure(
    curves: Sequence[Curve],
    anchors: Mapping[str, float],
    *,
    title: str,
    x_label: str,
    y_label: str,
) -> Any:
    """A line with a band of 95 % intervals for each run, a dashed line for each anchor, as a figure
    of matplotlib."""
    named = [
        curve._replace(name=f"{short_name(curve.name)} (band: 95 % interval)") for curve in curves
    ]
    figure = curves_figure(named, title=title, x_label=x_label, y_label=y_label)
    (axes,) = figure.axes
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _draw_anchors(axes, anchors)
    return figure


def _draw_anchors(axes: Any, anchors: Mapping[str, float]) -> None:
    """Draw a line for each anchor, with its name at the right; names that would overlap move."""
    for elo in anchors.values():
        axes.axhline(elo, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    low, high = axes.get_ylim()
    ordered = sorted(anchors.items(), key=lambda entry: entry[1])
    heights = spread_labels([(elo - low) / (high - low) for _, elo in ordered], _LABEL_GAP)
    for (name, elo), height in zip(ordered, heights, strict=True):
        axes.annotate(
            f"{short_name(name)}  {elo:.0f}",
            xy=(1, (elo - low) / (high - low)),
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
    """Move rising heights as little as needed for gaps of at least `gap`; labels that touch are
    centred together on the mean of their wanted heights."""
    groups: list[list[float]] = []  # [sum of wanted starts, count] of labels that touch
    for place, height in enumerate(heights):
        groups.append([height - place * gap, 1])
        while len(groups) > 1 and _start(groups[-2]) > _start(groups[-1]):
            total, count = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += count
    starts = np.concatenate([[], *([_start(group)] * int(group[1]) for group in groups)])
    return [float(start + place * gap) for place, start in enumerate(starts)]


def _start(group: list[float]) -> float:
    return group[0] / group[1]
