"""Draws figures with their intervals, a row each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from train.metrics.plot_style import COLOURS, DASHED, GREY, INK, new_figure, set_style, short_name

_ROW, _FRAME = 0.34, 1.2  # inches


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
) -> Any:
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
