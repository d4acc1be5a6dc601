"""The Elo curves of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from train.metrics.figure import DASHED, GREY, INK, short_name
from train.metrics.intervals import Curve, curves_figure

_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


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
      rows: of a `train.api.results.RatedPool`.
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
    (axes,) = figure.axes
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _draw_anchors(axes, {row["player"]: row["elo"] for row in rows if row["run"] is None})
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
    """Move rising heights as little as needed for gaps of at least `gap`, by least squares."""
    steps = gap * np.arange(len(heights))
    return (
        (isotonic_regression(np.array(heights) - steps).x + steps).tolist() if len(heights) else []
    )
