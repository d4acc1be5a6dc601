"""Many positions as one picture: boards in rows, each a picture of its own."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from wallgo_jax.drawing import board, overlay
from wallgo_jax.drawing.layout import FOOT, layout_of
from wallgo_jax.drawing.svg import document, element
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.view.snapshot import Snapshot

_SPACE = 10.0
_HEADING, _CAPTION, _LEGEND = 32.0, 26.0, 34.0
"""Heights of a sheet's lines: its title, the caption of a panel, the colour scale."""
_LEAST, _MOST = 230.0, 400.0
"""Widths of a panel."""


class Panel(NamedTuple):
    """One board of a sheet with painted cells."""

    snapshot: Snapshot
    caption: str
    colours: tuple[str, ...]  # `#rrggbb` for each cell of the grid
    notes: tuple[str, ...] | None  # for each cell, shown where the pointer rests
    marked: int | None  # the cell that the picture is about


class Legend(NamedTuple):
    """The meaning of the colours of a sheet's panels."""

    low: str
    colours: tuple[str, ...]  # from left to right
    high: str


def draw(snapshots: Sequence[Snapshot], theme: Theme, *, columns: int | None = None) -> str:
    """Draw the boards as an SVG document, about 900 units wide, `columns` of them in a row.

    Raises:
      ValueError: if there is no board, or less than one column.
    """
    if not snapshots:
        raise ValueError("boards: there is none to draw")
    if columns is not None and columns < 1:
        raise ValueError(f"columns: {columns} is less than one")
    columns = min(columns or math.ceil(math.sqrt(len(snapshots))), len(snapshots))
    rows = math.ceil(len(snapshots) / columns)
    side = layout_of(snapshots[0]).side
    scale = min(1.0, 900 / (columns * (side + _SPACE)))
    width, height = scale * (side + _SPACE), scale * (side + FOOT + _SPACE)
    placed = []
    for index, snapshot in enumerate(snapshots):
        row, column = divmod(index, columns)
        where = f"translate({column * width:g} {row * height:g}) scale({scale:g})"
        placed.append(element("g", board.draw(snapshot, theme), transform=where))
    return document(columns * width, rows * height, *placed, label=f"{len(snapshots)} boards")


def draw_panels(
    panels: Sequence[Panel], theme: Theme, *, columns: int, title: str, legend: Legend
) -> str:
    """Draw painted boards as an SVG document with a title, captions and a colour scale."""
    width = min(max(900 / columns, _LEAST), _MOST)
    rows = math.ceil(len(panels) / columns)
    page = (columns * (width + _SPACE) + _SPACE, _HEADING + rows * (width + _CAPTION) + _LEGEND)
    placed = []
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        x = _SPACE + column * (width + _SPACE)
        y = _HEADING + row * (width + _CAPTION)
        placed.append(
            element("g", _panel(panel, theme, width), transform=f"translate({x:g} {y:g})")
        )
    return document(
        *page,
        element("rect", width=page[0], height=page[1], rx=10, fill=theme.page),
        _line(title, theme, x=2 * _SPACE, y=22, room=page[0] - 3 * _SPACE, size=15),
        *placed,
        *_legend(legend, theme, page),
        label=title,
    )


def _panel(panel: Panel, theme: Theme, width: float) -> str:
    snapshot, layout = panel.snapshot, layout_of(panel.snapshot)
    drawn = board.draw(
        snapshot,
        theme,
        under=overlay.paint(snapshot, theme, panel.colours, panel.notes),
        over=[] if panel.marked is None else overlay.mark(snapshot, theme, panel.marked),
        caption=False,
    )
    below = {"x": width / 2, "y": width + 13, "room": width, "size": 13, "anchor": "middle"}
    scale = f"scale({width / layout.side:g})"
    return element("g", drawn, transform=scale) + _line(panel.caption, theme, **below)


def _line(
    text: str, theme: Theme, *, x: float, y: float, room: float, size: float, anchor: str = "start"
) -> str:
    """Draw a line of text, smaller where it would not fit the room."""
    fitting = min(size, 1.9 * room / max(len(text), 1))
    return element(
        "text", text=text, x=x, y=y, font_size=fitting, text_anchor=anchor, fill=theme.ink
    )


def _legend(legend: Legend, theme: Theme, page: tuple[float, float]) -> list[str]:
    """Draw the colours as one bar, with the meaning of its ends on either side."""
    width, height = page
    length, y = min(220.0, width / 3), height - 22
    left, step = (width - length) / 2, length / len(legend.colours)
    bar = [
        element("rect", x=left + index * step, y=y, width=step + 0.3, height=11, fill=colour)
        for index, colour in enumerate(legend.colours)
    ]
    text = {"y": y + 10, "room": left - 3 * _SPACE, "size": 12}
    low = _line(legend.low, theme, x=left - _SPACE, anchor="end", **text)
    high = _line(legend.high, theme, x=left + length + _SPACE, **text)
    return [low, *bar, high]
