"""The places and sizes of things in a picture of the board, in SVG units."""

from typing import NamedTuple

from wallgo_jax.board.geometry import HORIZONTAL
from wallgo_jax.view.snapshot import Snapshot

TILE, GAP = 44.0, 8.0
PITCH = TILE + GAP
HEAD = 30.0
"""Room above and left of the board, for coordinates."""
EDGE = 14.0
"""Room right of the board and below it."""
FOOT = 48.0
"""Room for the caption."""
STONE = 15.0


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """A board of `size` in a grid of `grid` cells a side."""

    grid: int
    size: int

    @property
    def side(self) -> float:
        """The side length of the picture without its caption."""
        return HEAD + self.span(self.grid) + EDGE

    def span(self, cells: int) -> float:
        """Return the length of a row of cells."""
        return cells * PITCH - GAP

    def corner(self, cell: int) -> tuple[float, float]:
        """Return (x, y) of the top left corner of a cell's tile."""
        row, column = divmod(cell, self.grid)
        return HEAD + column * PITCH, HEAD + row * PITCH

    def centre(self, cell: int) -> tuple[float, float]:
        """Return (x, y) of the middle of a cell."""
        x, y = self.corner(cell)
        return x + TILE / 2, y + TILE / 2

    def wall(self, orientation: int, cell: int) -> Box:
        """Return the gap that a wall fills: below the cell if horizontal, else right of it."""
        x, y = self.corner(cell)
        if orientation == HORIZONTAL:
            return Box(x - 2, y + TILE + 1, TILE + 4, GAP - 2)
        return Box(x + TILE + 1, y - 2, GAP - 2, TILE + 4)

    def frame(self) -> Box:
        """Return the border of the playable board."""
        side = self.span(self.size) + 2 * GAP - 4
        return Box(HEAD - GAP + 2, HEAD - GAP + 2, side, side)


def text_size(text: str, *, room: float, most: float) -> float:
    """Return the largest font size, `most` at the most, at which a line of text fits the room."""
    # DejaVu Sans, which stands in for narrower fonts, is up to 0.61 of the size wide a character.
    return min(most, room / (0.61 * max(len(text), 1)))


def layout_of(snapshot: Snapshot) -> Layout:
    """Return the layout of a position's board."""
    return Layout(snapshot.grid, snapshot.size)
