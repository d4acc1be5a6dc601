"""The style that all plots of the learner share, and how a plot becomes a file."""

import functools
import io
from pathlib import Path
from typing import Any

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
