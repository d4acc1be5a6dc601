"""Ratings as a table, as JSON-ready figures and as the Elo curves of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from train.metrics.intervals import Curve, curves_figure
from train.metrics.plot_style import DASHED, GREY, INK, short_name
from train.metrics.text_table import Table
from train.ratings.pool import MeasuredPool

_FIGURES = ("elo", "low", "high", "games", "score")
_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


def rating_table(measured: MeasuredPool, *, title: str, caption: str) -> Table:
    """The pool, strongest first."""
    cells = []
    for row in rating_rows(measured):
        interval = "fixed" if row["is_anchor"] else f"{row['low']:.0f} to {row['high']:.0f}"
        iteration = "" if row["iteration"] is None else str(row["iteration"])
        figures = f"{row['elo']:.0f}", interval, str(row["games"]), f"{row['score']:.1%}"
        cells.append([row["player"], iteration, *figures])
    heads = ("player", "iteration", "Elo", "95 % interval", "games", "score")
    return Table(title, heads, cells, caption)


def rating_rows(measured: MeasuredPool) -> list[dict[str, Any]]:
    """One row for each player, strongest first; `low` to `high` is the 95 % interval."""
    ratings = measured.ratings
    rows = [
        {
            "player": entrant.name,
            "run": entrant.run,
            "iteration": entrant.iteration,
            **{key: getattr(ratings, key)[place].item() for key in _FIGURES},
            "is_anchor": entrant.name == ratings.anchor,
            "identity": entrant.identity,
        }
        for place, entrant in enumerate(measured.entrants)
    ]
    return sorted(rows, key=lambda row: -row["elo"])


def rating_record(measured: MeasuredPool) -> dict[str, Any]:
    """A measured pool as JSON-ready figures."""
    return {
        "games": measured.games,
        "anchor": measured.ratings.anchor,
        "is_interrupted": measured.is_interrupted,
        "players": rating_rows(measured),
        "results": [result._asdict() | {"games": result.games} for result in measured.results],
    }


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
      rows: as `rating_rows` makes them.
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
