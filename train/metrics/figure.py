"""Draws loss, win rate and games a second of runs, in the style that all plots share."""

import functools
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from train.metrics.rows import MATCHES_BY_RULES, Row, elapsed_seconds
from train.runtime.errors import UsageError
from train.runtime.files import replace_bytes

INK, GREY, PAPER = "#1f2328", "#6e7781", "#ffffff"
# Okabe and Ito's palette, which colour-blind readers can distinguish; marks differ too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKS = "osD^vP"
DASHED = (0, (5, 3))
FORMATS = (".png", ".svg", ".pdf")
"""Endings of the files that can be drawn."""
_NOTEBOOK_DPI = 90
_GRID = "#d8dee4"


def check_format(path: Path) -> None:
    """Refuse a file whose ending names no format with a UsageError."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: its ending must be one of {', '.join(FORMATS)}")


def new_figure(*, size: tuple[float, float], dpi: int) -> Any:
    """An empty figure, its size in inches, which draws itself in a notebook."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _figure_class()(figsize=size, dpi=dpi, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@functools.cache
def _figure_class() -> Any:
    # Imported here because it takes a second, which no other command should pay.
    from matplotlib.figure import Figure

    class _Figure(Figure):
        # Notebooks draw figures of `pyplot` alone, which keeps each one until it is closed.
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=_NOTEBOOK_DPI)
            return buffer.getvalue()

    return _Figure


def new_plot(*, title: str, x_label: str, y_label: str) -> tuple[Any, Any]:
    """An empty figure of one plot, and its axes."""
    figure = new_figure(size=(9, 5.4), dpi=144)
    axes = figure.add_subplot()
    set_style(axes)
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    return figure, axes


def set_style(axes: Any) -> None:
    """Give axes a pale horizontal grid and no frame on the top and the right."""
    axes.set_facecolor(PAPER)
    axes.grid(axis="y", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)


def short_name(name: str, limit: int = 36) -> str:
    """A name as a label of a plot: `limit` characters at most, the middle left out.

    A player's name may hold a command or a path as long as the plot is wide.
    """
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[head + 1 - limit :]}"


def save_figure(figure: Any, path: Path, *, caption: str) -> None:
    """Write a figure with a line of small print below, in the format that the file's ending names.

    Raises:
      UsageError: there is no such format, or the file cannot be written.
    """
    import matplotlib

    check_format(path)
    figure.supxlabel(caption, fontsize=8, color=GREY, wrap=True)
    # Without a salt and a date the same figures give the same file.
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    ending, drawn = path.suffix.lower(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "wallgo"}):
        figure.savefig(drawn, format=ending.removeprefix("."), metadata=dates.get(ending))
    replace_bytes(path, drawn.getvalue())


Axis = Literal["iteration", "hours", "positions"]
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))  # of every six runs
_MARKS_A_LINE = 6
_PANEL = (4.0, 3.0)  # inches
_MOST_POINTS = 100  # of a line; of more, running means are drawn over the pale originals
_LEGEND_ROW = 4  # entries


class _Panel(NamedTuple):
    """One figure of a row over the course of runs."""

    label: str
    value: Callable[[Row], float | None]
    is_rate: bool = False  # from 0 to 1, of a match


def draw_metrics(
    path: Path, runs: Mapping[str, Sequence[Row]], *, axis: Axis = "iteration"
) -> None:
    """Write a picture with a panel each for loss, win rate and games a second.

    A panel that no run has figures for is left out, as the win rate of runs without matches. The
    band of a win rate is its 95 % interval. A run of several rule sets that is drawn alone has a
    win rate for each of them, too.

    Args:
      path: file to write; its ending names the format, one of `FORMATS`.
      runs: rows of each run by its name.
      axis: the horizontal one; `hours` are those of the process, all starts together.

    Raises:
      UsageError: the format is unknown, no row has a figure, or the file cannot be written.
    """
    runs = _with_rule_sets(runs)
    caption = _caption(_panels(runs), _window(runs))
    save_figure(metrics_figure(runs, axis=axis), path, caption=caption)


def metrics_figure(runs: Mapping[str, Sequence[Row]], *, axis: Axis = "iteration") -> Any:
    """The picture of `draw_metrics` as a figure of matplotlib.

    Raises:
      UsageError: no row has a figure.
    """
    runs = _with_rule_sets(runs)
    panels = _panels(runs)
    if not panels:
        raise UsageError(f"curves: no iteration of {', '.join(runs)} has a figure to draw yet")
    width, height = _PANEL
    rows = -(-len(runs) // _LEGEND_ROW)
    figure = new_figure(size=(width * len(panels), height + 0.25 * rows), dpi=160)
    window = _window(runs)
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharex=True)[0]
    for axes, panel in zip(all_axes, panels, strict=True):
        for index, rows_of_run in enumerate(runs.values()):
            _draw(axes, panel, rows_of_run, axis, _style(index), window)
        _set_style(axes, panel, axis)
    _add_legend(figure, runs)
    return figure


def _with_rule_sets(runs: Mapping[str, Sequence[Row]]) -> Mapping[str, Sequence[Row]]:
    """A run alone, followed by the matches of each of its rule sets as runs of their own."""
    if len(runs) != 1:
        return runs
    rates_by, intervals_by, _ = MATCHES_BY_RULES
    (rows,) = runs.values()
    names = dict.fromkeys(name for row in rows for name in row.get(rates_by, {}))

    def match_of(row: Row, name: str) -> Row:
        # Rows without a match stay: positions are summed over all of them.
        about = ("iteration", "elapsed_seconds", "positions")
        place = {key: row[key] for key in about if key in row}
        rates, opponent = row.get(rates_by, {}).get(name, {}), row.get("opponent")
        if opponent not in rates:
            return place
        intervals = row.get(intervals_by, {}).get(name, {})
        return place | {
            "opponent": opponent,
            "win_rate": rates[opponent],
            "intervals_95": intervals,
        }

    labels = {name: f"{name} (rule set)" if name in runs else name for name in names}
    return dict(runs) | {labels[name]: [match_of(row, name) for row in rows] for name in names}


def x_values(rows: Sequence[Row], axis: Axis) -> np.ndarray:
    """float64[N]: the place of each row on a horizontal axis."""
    if axis == "iteration":
        return np.array([row["iteration"] for row in rows], float)
    if axis == "positions":
        return np.cumsum([row.get("positions", 0.0) for row in rows])
    return np.array(elapsed_seconds(rows)) / 3600


def _panels(runs: Mapping[str, Sequence[Row]]) -> list[_Panel]:
    """The panels that some run has figures for."""
    every = list(itertools.chain.from_iterable(runs.values()))
    opponents = list(dict.fromkeys(row["opponent"] for row in every if "opponent" in row))
    against = f" against {opponents[0]}" if len(opponents) == 1 else ""
    wanted = (
        _Panel("loss", lambda row: row.get("loss")),
        _Panel("held-out loss", lambda row: row.get("validation_loss")),
        _Panel(f"win rate{against}", lambda row: row.get("win_rate"), is_rate=True),
        _Panel("games a second", lambda row: row.get("games_per_second")),
    )
    return [panel for panel in wanted if any(panel.value(row) is not None for row in every)]


def _draw(
    axes: Any,
    panel: _Panel,
    rows: Sequence[Row],
    axis: Axis,
    style: Mapping[str, Any],
    window: int,
) -> None:
    places = [place for place, row in enumerate(rows) if panel.value(row) is not None]
    if not places:
        return
    x = x_values(rows, axis)[places]
    y = np.array([panel.value(rows[place]) for place in places], float)
    colour = style["color"]
    if panel.is_rate:
        # Without an interval, the rate itself.
        rates = [(rows[place], rows[place]["win_rate"]) for place in places]
        bands = [
            row.get("intervals_95", {}).get(row.get("opponent"), (rate, rate))
            for row, rate in rates
        ]
        low, high = np.array(bands, float).T
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        if len(x) == 1:  # a band of no width
            axes.vlines(x, low, high, color=colour, alpha=0.5)
        axes.plot(x, y, **style)
        return
    if window > 1:
        axes.plot(x, y, color=colour, alpha=0.2, linewidth=0.8)
        y = _running_mean(y, window)
    axes.plot(x, y, markevery=max(1, len(y) // _MARKS_A_LINE), **style)


def _style(index: int) -> dict[str, Any]:
    """How the lines of a run are drawn, and its entry in the legend."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": _DASHES[index // len(COLOURS) % len(_DASHES)],
        "linewidth": 1.6,
        "marker": MARKS[index % len(MARKS)],
        "markersize": 4,
    }


def _window(runs: Mapping[str, Sequence[Row]]) -> int:
    """Iterations of a running mean, an odd number; 1 where each is drawn as it is."""
    iterations = max(map(len, runs.values()))
    return 1 if iterations <= _MOST_POINTS else 2 * (iterations // _MOST_POINTS) + 1


def _running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Means over a window around each place, cut off at the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places, half = np.arange(len(values)), window // 2
    low, high = np.maximum(places - half, 0), np.minimum(places + half + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)


def _caption(panels: Sequence[_Panel], window: int) -> str:
    """What bands and pale lines are; empty where there are none."""
    parts = ["bands: 95 % intervals"] if any(panel.is_rate for panel in panels) else []
    if window > 1:
        parts.append(f"other lines: running means over {window} iterations, single ones pale")
    return " · ".join(parts)


def _set_style(axes: Any, panel: _Panel, axis: Axis) -> None:
    from matplotlib.ticker import EngFormatter, PercentFormatter

    set_style(axes)
    axes.set_title(panel.label, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(axis, fontsize=9, color=INK)
    axes.tick_params(labelsize=8)
    if panel.is_rate:
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=DASHED, zorder=1)
    elif panel.label == "games a second":
        axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    if axis == "iteration":
        axes.xaxis.get_major_locator().set_params(integer=True)
    if axis == "positions":
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _add_legend(figure: Any, runs: Mapping[str, Sequence[Row]]) -> None:
    """Name the runs above all panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=short_name(name), **_style(index)) for index, name in enumerate(runs)
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), _LEGEND_ROW),
        fontsize=9,
        labelcolor=INK,
        frameon=False,
    )
