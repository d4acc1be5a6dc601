"""Ratings as a table, as JSON-ready figures and as the Elo curves of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from train.metrics.intervals import Curve, curves_figure
from train.metrics.plot_style import DASHED, GREY, INK, short_name
from train.metrics.text_table import Table
from train.ratings.pool import MeasuredPool

_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


def rating_table(measured: MeasuredPool, *, title: str, caption: str) -> Table:
    """The pool, strongest first."""
    rows, cells = rating_rows(measured), []
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        ahead = measured.ratings.superiority(row["player"], below["player"]) if below else None
        interval = "fixed" if row["is_anchor"] else f"{row['low']:.0f} to {row['high']:.0f}"
        iteration = "" if row["iteration"] is None else str(row["iteration"])
        figures = f"{row['elo']:.0f}", interval, str(row["games"]), f"{row['score']:.1%}"
        cells.append([row["player"], iteration, *figures, "" if ahead is None else f"{ahead:.1%}"])
    heads = ("player", "iteration", "Elo", "95 % interval", "games", "score", "ahead of the next")
    return Table(title, heads, cells, caption)


def rating_rows(measured: MeasuredPool) -> list[dict[str, Any]]:
    """One row for each player, strongest first; `low` to `high` is the 95 % interval."""
    ratings = measured.ratings
    rows = [
        {
            "player": entrant.name,
            "run": entrant.run,
            "iteration": entrant.iteration,
            "elo": float(ratings.elo[place]),
            "low": float(ratings.low[place]),
            "high": float(ratings.high[place]),
            "games": int(ratings.games[place]),
            "score": float(ratings.score[place]),
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


def curves_of(
    rows: Sequence[Mapping[str, Any]],
    runs: Mapping[str, str],
    *,
    x_of: Callable[[str, list[int]], Sequence[float]] = lambda run, iterations: iterations,
) -> tuple[list[Curve], dict[str, float]]:
    """The curves of a pool's runs, and the ratings of its other players.

    Args:
      rows: as `rating_rows` makes them.
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
