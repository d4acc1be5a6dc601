"""The numberings of cells, sides and moves, against the pictures and against plain formulas."""

import numpy as np
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


def test_moves_are_all_cells_within_two_steps():
    offsets = geometry.MOVE_OFFSETS
    around = [(r, c) for r in range(-2, 3) for c in range(-2, 3) if abs(r) + abs(c) <= 2]
    assert sorted(offsets) == sorted(around)
    assert geometry.NUM_MOVES == 13
    assert geometry.PLAYS_PER_STONE == 52


def test_every_path_walks_its_move_and_diagonals_have_two():
    for (row, column), paths in zip(geometry.MOVE_OFFSETS, geometry.MOVE_PATHS, strict=True):
        assert len(set(paths)) == len(paths) == (2 if row and column else 1)
        for path in paths:
            steps = np.array([(0, 0), *(geometry.SIDE_OFFSETS[side] for side in path)])
            assert tuple(steps.sum(axis=0)) == (row, column)
            assert len(path) == abs(row) + abs(column)


@pytest.mark.parametrize("grid", range(3, 10))
def test_deltas_step_to_the_right_cell(grid):
    middle = (grid // 2) * grid + grid // 2
    deltas = geometry.make_move_deltas(grid)
    for (row, column), delta in zip(geometry.MOVE_OFFSETS, deltas, strict=True):
        if grid >= 5:
            expected = (grid // 2 + row, grid // 2 + column)
            assert divmod(middle + int(delta), grid) == expected
    for side, (row, column) in enumerate(geometry.SIDE_OFFSETS):
        expected = (grid // 2 + row, grid // 2 + column)
        assert divmod(middle + geometry.side_delta(side, grid), grid) == expected


@pytest.mark.parametrize("grid", range(3, 10))
def test_cell_turns_follow_the_formulas(grid):
    table = geometry.make_cell_turns(grid)
    assert table.shape == (8, 10, grid * grid)
    for turn, formula in enumerate(SYMMETRIES):
        for size in range(1, grid + 1):
            expected = np.arange(grid * grid)
            for row in range(size):
                for column in range(size):
                    row2, column2 = formula(row, column, size)
                    expected[row * grid + column] = row2 * grid + column2
            np.testing.assert_array_equal(table[turn, size], expected)


def test_side_and_move_turns_follow_the_cells():
    # Around the middle of a 5x5 board an offset turns as its cell does.
    for turn, formula in enumerate(SYMMETRIES):
        for offsets, turns in (
            (geometry.SIDE_OFFSETS, geometry.SIDE_TURNS),
            (geometry.MOVE_OFFSETS, geometry.MOVE_TURNS),
        ):
            for index, (row, column) in enumerate(offsets):
                row2, column2 = formula(row + 2, column + 2, 5)
                assert offsets[turns[turn, index]] == (row2 - 2, column2 - 2)


def test_inverse_symmetries_undo():
    table = geometry.make_cell_turns(5)[:, 5]
    for turn, inverse in enumerate(geometry.INVERSE_SYMMETRIES):
        np.testing.assert_array_equal(table[inverse][table[turn]], np.arange(25))
    assert geometry.IDENTITY == 0
    assert len({tuple(row) for row in table}) == geometry.NUM_SYMMETRIES == 8
