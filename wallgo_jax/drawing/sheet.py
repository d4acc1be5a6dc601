"""Many positions as one picture: boards in rows, each a picture of its own."""

import math
from collections.abc import Sequence

from wallgo_jax.drawing import board
from wallgo_jax.drawing.layout import FOOT, layout_of
from wallgo_jax.drawing.svg import document, element
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.scene import Scene

_SPACE = 10.0


def draw(scenes: Sequence[Scene], theme: Theme, *, columns: int | None = None) -> str:
    """The boards as an SVG document, about 900 units wide; `columns` of them in a row.

    Raises:
      ValueError: if there is no board, or less than one column.
    """
    if not scenes:
        raise ValueError("boards: there is none to draw")
    if columns is not None and columns < 1:
        raise ValueError(f"columns: {columns} is less than one")
    columns = min(columns or math.ceil(math.sqrt(len(scenes))), len(scenes))
    rows = math.ceil(len(scenes) / columns)
    side = layout_of(scenes[0]).side
    scale = min(1.0, 900 / (columns * (side + _SPACE)))
    width, height = scale * (side + _SPACE), scale * (side + FOOT + _SPACE)
    placed = []
    for index, scene in enumerate(scenes):
        row, column = divmod(index, columns)
        where = f"translate({column * width:g} {row * height:g}) scale({scale:g})"
        placed.append(element("g", board.draw(scene, theme), transform=where))
    return document(columns * width, rows * height, *placed, label=f"{len(scenes)} boards")
