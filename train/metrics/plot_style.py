"""The look that all plots share: inks, palette, marks, axes, and the files they become."""

from pathlib import Path
from typing import Any, NamedTuple

from train.runtime.errors import UsageError

INK, GREY, PAPER, GRID = "#1f2328", "#6e7781", "#ffffff", "#d8dee4"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's palette, which colour-blind readers can distinguish; marks differ too."""
MARKS = "osD^vP"
DASHED = (0, (5, 3))
"""The line of a reference value, such as an anchor or an even score."""


class FontSizes(NamedTuple):
    """Sizes of the text around axes, in points."""

    title: float
    label: float
    tick: float


PAGE, PANEL = FontSizes(12, 10, 10), FontSizes(10, 9, 8)
"""Of a plot by itself, and of one among several."""


def new_figure(size: tuple[float, float], *, dpi: int = 144) -> Any:
    """Make an empty figure of (width, height) inches that needs no screen."""
    # Imported here because it takes a second, which no other command should pay.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_plot(*, title: str, x_label: str, y_label: str) -> tuple[Any, Any]:
    """Make a figure with one plot, and return it and its axes."""
    figure = new_figure((9, 5.4))
    axes = figure.add_subplot()
    style_axes(axes, title=title, x_label=x_label, y_label=y_label)
    return figure, axes


def style_axes(
    axes: Any, *, title: str, x_label: str, y_label: str = "", sizes: FontSizes = PAGE
) -> None:
    """Give axes their words and the look of all plots."""
    axes.set_title(title, loc="left", fontsize=sizes.title, color=INK)
    axes.set_xlabel(x_label, fontsize=sizes.label, color=INK)
    axes.set_ylabel(y_label, fontsize=sizes.label, color=INK)
    axes.set_facecolor(PAPER)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=sizes.tick)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)


def save_figure(
    figure: Any, path: Path, *, caption: str, size: float = 8, format: str | None = None
) -> None:
    """Write a figure with a line of small print below; the suffix names a format of None.

    The same figure gives the same file: it holds neither a date nor random ids.

    Raises:
      UsageError: the file cannot be written, or there is no such format.
    """
    import matplotlib

    figure.supxlabel(caption, fontsize=size, color=GREY)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    kind = f".{format}" if format else path.suffix.lower()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context({"svg.hashsalt": "wallgo"}):
            figure.savefig(path, format=format, metadata=dates.get(kind))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from None
