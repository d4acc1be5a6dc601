"""The numberings of cells, sides and moves, against the pictures and against plain formulas."""

import pytest

from wallgo_jax.board import geometry

CELL_PICTURE = """
    grid 3:   0 1 2     sides of a cell:     0
              3 4 5                        3 c 1
              6 7 8                          2
"""
MOVE_PICTURE = """
              .  .  5  .  .
              .  9  1 10  .
              7  3  0  4  8
              . 11  2 12  .
              .  .  6  .  .
"""

# A left quarter turn and a mirroring of the columns, of row and column on a board of n x n.
SYMMETRIES = (
    lambda r, c, n: (r, c),
    lambda r, c, n: (n - 1 - c, r),
    lambda r, c, n: (n - 1 - r, n - 1 - c),
    lambda r, c, n: (c, n - 1 - r),
    lambda r, c, n: (r, n - 1 - c),
    lambda r, c, n: (n - 1 - c, n - 1 - r),
    lambda r, c, n: (n - 1 - r, c),
    lambda r, c, n: (c, r),
)


def test_move_picture_redrawn():
    picture = [[" ."] * 5 for _ in range(5)]
    for move, (row, column) in enumerate(geometry.MOVE_OFFSETS):
        picture[row + 2][column + 2] = f"{move:2}"
    lines = ["             " + " ".join(line) for line in picture]
    assert "\n" + "\n".join(lines) + "\n" == MOVE_PICTURE
    assert MOVE_PICTURE in geometry.__doc__


def test_cell_and_side_picture_redrawn():
    cells = [" ".join(str(3 * row + column) for column in range(3)) for row in range(3)]
    around = [[" "] * 3 for _ in range(3)]
    around[1][1] = "c"
    for side, (row, column) in enumerate(geometry.SIDE_OFFSETS):
        around[row + 1][column + 1] = str(side)
    sides = [" ".join(line).rstrip() for line in around]
    assert CELL_PICTURE == (
        f"\n    grid 3:   {cells[0]}     sides of a cell:   {sides[0]}"
        f"\n              {cells[1]}                        {sides[1]}"
        f"\n              {cells[2]}                        {sides[2]}\n"
    )
    assert CELL_PICTURE in geometry.__doc__


def test_each_wall_is_kept_by_its_upper_or_left_cell():
    # The middle of a 3x3 board: 1 above, 5 right, 7 below, 3 left of it.
    kept = [geometry.wall_on_side(4, side, grid=3) for side in geometry.SIDES]
    assert kept == [(0, 1), (1, 4), (0, 4), (1, 3)]
    with pytest.raises(ValueError, match="side: 4 is not one of"):
        geometry.wall_on_side(4, 4, grid=3)


def test_named_sides():
    names = (geometry.UP, geometry.RIGHT, geometry.DOWN, geometry.LEFT)
    assert names == geometry.SIDES == (0, 1, 2, 3)
    for side, opposite in enumerate(geometry.OPPOSITE_SIDE):
        (row, column), back = geometry.SIDE_OFFSETS[side], geometry.SIDE_OFFSETS[opposite]
        assert (-row, -column) == back
    assert geometry.STAY == geometry.MOVE_OFFSETS.index((0, 0))
