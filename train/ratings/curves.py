"""Draws the Elo curves of runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from train.runtime.errors import UsageError

INK, GREY, PAPER = "#1f2328", "#6e7781", "#ffffff"
# Okabe and Ito's palette, which colour-blind readers can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKS = "osD^vP"
_LABEL_GAP = 0.05  # between labels of anchors, as a share of the height


class Curve(NamedTuple):
    """Elo of a run over its course."""

    name: str
    x: Sequence[float]  # [G], rising
    elo: Sequence[float]  # [G]
    low: Sequence[float]  # [G]
    high: Sequence[float]  # [G]


def draw_curves(
    path: Path,
    curves: Sequence[Curve],
    anchors: Mapping[str, float],
    *,
    title: str,
    caption: str,
    x_label: str,
    y_label: str,
) -> None:
    """Write a PNG: a line with a band of intervals for each run, a dashed line for each anchor.

    Raises:
      UsageError: the file cannot be written.
    """
    figure, axes = new_figure(title=title, x_label=x_label, y_label=y_label)
    for index, curve in enumerate(curves):
        _draw_curve(axes, curve, index)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _draw_anchors(axes, anchors)
    if curves:
        axes.legend(
            loc="center right", fontsize=9, labelcolor=INK, facecolor=PAPER, edgecolor="none"
        )
    save_figure(figure, path, caption=caption, format="png")


def new_figure(*, title: str, x_label: str, y_label: str) -> tuple[Any, Any]:
    """An empty figure in the project's style, and its axes."""
    # Imported here because it takes a second, which no other command should pay.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.4), dpi=144, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.set_facecolor(PAPER)
    axes.grid(axis="y", color="#d8dee4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def save_figure(figure: Any, path: Path, *, caption: str, format: str | None = None) -> None:
    """Write a figure with a line of small print below; the suffix names a format of None.

    Raises:
      UsageError: the file cannot be written, or there is no such format.
    """
    figure.supxlabel(caption, fontsize=8, color=GREY)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format=format)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from None


def _draw_curve(axes: Any, curve: Curve, index: int) -> None:
    colour = COLOURS[index % len(COLOURS)]
    axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(
        curve.x,
        curve.elo,
        color=colour,
        marker=_MARKS[index % len(_MARKS)],
        markersize=5,
        linewidth=1.8,
        label=f"{curve.name} (band: 95 % interval)",
    )


def _draw_anchors(axes: Any, anchors: Mapping[str, float]) -> None:
    """Draw a line for each anchor, with its name at the right; names that would overlap move."""
    for elo in anchors.values():
        axes.axhline(elo, color=GREY, linewidth=1, linestyle=(0, (5, 3)), zorder=1)
    low, high = axes.get_ylim()
    ordered = sorted(anchors.items(), key=lambda entry: entry[1])
    heights = spread_labels([(elo - low) / (high - low) for _, elo in ordered], _LABEL_GAP)
    for (name, elo), height in zip(ordered, heights, strict=True):
        axes.annotate(
            f"{name}  {elo:.0f}",
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
