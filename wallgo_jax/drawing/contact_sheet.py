"""Many positions as one picture: boards in rows, each a picture of its own."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from wallgo_jax.drawing import board, overlay
from wallgo_jax.drawing import scale as scale_lib
from wallgo_jax.drawing.layout import FOOT, layout_of, text_size
from wallgo_jax.drawing.scale import Scale
from wallgo_jax.drawing.svg import document, element
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.view.snapshot import Snapshot

_SPACE = 10.0
_HEADING, _CAPTION, _SCALES = 32.0, 26.0, scale_lib.HEIGHT + 34
"""Heights of a sheet's lines: its title, the caption of a panel, the colour scales."""
_LEAST, _MOST = 230.0, 400.0
"""Widths of a panel."""


class Panel(NamedTuple):
    """One board of a sheet with painted cells."""

    snapshot: Snapshot
    caption: str
    colours: tuple[str, ...]  # `#rrggbb` for each cell of the grid
    notes: tuple[str, ...] | None  # for each cell, shown where the pointer rests
    owners: tuple[tuple[int, float], ...] | None  # for each cell, whose pattern and its strength
    marked: int | None  # the cell that the picture is about


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
    side = max(layout_of(snapshot).side for snapshot in snapshots)
    scale = min(1.0, 900 / (columns * (side + _SPACE)))
    width, height = scale * (side + _SPACE), scale * (side + FOOT + _SPACE)
    placed = []
    for index, snapshot in enumerate(snapshots):
        row, column = divmod(index, columns)
        where = f"translate({column * width:g} {row * height:g}) scale({scale:g})"
        placed.append(element("g", board.draw(snapshot, theme), transform=where))
    return document(columns * width, rows * height, *placed, label=f"{len(snapshots)} boards")


def draw_panels(
    panels: Sequence[Panel],
    theme: Theme,
    *,
    columns: int,
    title: str,
    key: str,
    scales: Sequence[Scale],
) -> str:
    """Draw painted boards as an SVG document with a title, captions and colour scales.

    Args:
      key: a line that says what the colours mean, above the scales.
    """
    width = min(max(900 / columns, _LEAST), _MOST)
    rows = math.ceil(len(panels) / columns)
    page = (columns * (width + _SPACE) + _SPACE, _HEADING + rows * (width + _CAPTION) + _SCALES)
    foot = page[1] - _SCALES
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
        _line(key, theme, x=page[0] / 2, y=foot + 14, room=page[0] - 40, size=12, anchor="middle"),
        *scale_lib.draw_row(scales, theme, y=foot + 22, width=page[0]),
        label=title,
    )


def _panel(panel: Panel, theme: Theme, width: float) -> str:
    snapshot, layout = panel.snapshot, layout_of(panel.snapshot)
    drawn = board.draw(
        snapshot,
        theme,
        under=overlay.paint(snapshot, theme, panel.colours, panel.notes, panel.owners),
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
    fitting = text_size(text, room=room, most=size)
    return element(
        "text", text=text, x=x, y=y, font_size=fitting, text_anchor=anchor, fill=theme.ink
    )
