"""Numbering of cells, sides and moves on a square grid, as NumPy tables.

Cells are numbered row by row from the top left, `cell = row * grid + column`:

    grid 3:   0 1 2     sides of a cell:     0
              3 4 5                        3 c 1
              6 7 8                          2

Moves, by where they end (`.` cannot be reached in two steps; 0 stays):

              .  .  5  .  .
              .  9  1 10  .
              7  3  0  4  8
              . 11  2 12  .
              .  .  6  .  .

A wall belongs to one of the two cells that it parts, the upper or the left one:

            [k]           the wall below `k`, on the upper side of `c`: (HORIZONTAL, k)
            ===
            [c]           [k] # [c]   the wall right of `k`, on the left side of `c`: (VERTICAL, k)
"""

import numpy as np

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
SIDES = (UP, RIGHT, DOWN, LEFT)
NUM_SIDES = 4
SIDE_OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))
OPPOSITE_SIDE = (DOWN, LEFT, UP, RIGHT)

STAY = 0
NUM_MOVES = 13
MOVE_OFFSETS = (
    (0, 0),
    (-1, 0),
    (1, 0),
    (0, -1),
    (0, 1),
    (-2, 0),
    (2, 0),
    (0, -2),
    (0, 2),
    (-1, -1),
    (-1, 1),
    (1, -1),
    (1, 1),
)
PLAYS_PER_STONE = NUM_MOVES * NUM_SIDES

HORIZONTAL, VERTICAL = 0, 1
"""Wall orientations: a horizontal wall lies below its cell, a vertical wall right of it."""
WALL_SIDES = ((UP, DOWN), (LEFT, RIGHT))
"""By orientation, the sides that such a wall lies on: first of the neighbour, then of its cell."""

NUM_SYMMETRIES = 8
IDENTITY = 0

MIN_GRID, MAX_GRID = 3, 9


def _make_move_paths() -> tuple[tuple[tuple[int, ...], ...], ...]:
    """List the ways to walk each move, as tuples of sides; a diagonal has two."""
    paths: list[list[tuple[int, ...]]] = [[] for _ in MOVE_OFFSETS]
    walks: list[tuple[int, ...]] = [(), *((a,) for a in SIDES)]
    walks += [(a, b) for a in SIDES for b in SIDES]
    for walk in walks:
        offset = (
            sum(SIDE_OFFSETS[side][0] for side in walk),
            sum(SIDE_OFFSETS[side][1] for side in walk),
        )
        move = MOVE_OFFSETS.index(offset)
        if len(walk) == abs(offset[0]) + abs(offset[1]):
            paths[move].append(walk)
    return tuple(tuple(p) for p in paths)


MOVE_PATHS = _make_move_paths()


def turn_offset(symmetry: int, offset: tuple[int, int]) -> tuple[int, int]:
    """Turn a (row, column) offset: `symmetry % 4` left quarter turns, from 4 on mirrored columns.

    Rows grow downward, so that a left quarter turn is (r, c) -> (-c, r).
    """
    row, column = offset
    for _ in range(symmetry % 4):
        row, column = -column, row
    return (row, -column) if symmetry >= 4 else (row, column)


def turn_cell(symmetry: int, size: int, row: int, column: int) -> tuple[int, int]:
    """Turn a cell of a `size` x `size` board by a symmetry (see `turn_offset`)."""
    row2, column2 = turn_offset(symmetry, (2 * row - (size - 1), 2 * column - (size - 1)))
    return (row2 + size - 1) // 2, (column2 + size - 1) // 2


def make_cell_turns(grid: int) -> np.ndarray:
    """int16[8, MAX_GRID + 1, grid²]: new cell of each cell, by symmetry and board size.

    A board smaller than the grid lies in its top-left corner and turns within its own square; the
    cells outside it stay where they are.
    """
    table = np.tile(np.arange(grid * grid, dtype=np.int16), (NUM_SYMMETRIES, MAX_GRID + 1, 1))
    for symmetry in range(NUM_SYMMETRIES):
        for size in range(1, grid + 1):
            for row in range(size):
                for column in range(size):
                    row2, column2 = turn_cell(symmetry, size, row, column)
                    table[symmetry, size, row * grid + column] = row2 * grid + column2
    return table


def _make_side_turns() -> np.ndarray:
    """int8[8, 4]: new side of each side, by symmetry."""
    return np.array(
        [
            [SIDE_OFFSETS.index(turn_offset(g, offset)) for offset in SIDE_OFFSETS]
            for g in range(NUM_SYMMETRIES)
        ],
        dtype=np.int8,
    )


def _make_move_turns() -> np.ndarray:
    """int8[8, 13]: new move of each move, by symmetry."""
    return np.array(
        [
            [MOVE_OFFSETS.index(turn_offset(g, offset)) for offset in MOVE_OFFSETS]
            for g in range(NUM_SYMMETRIES)
        ],
        dtype=np.int8,
    )


SIDE_TURNS = _make_side_turns()
MOVE_TURNS = _make_move_turns()


def _make_inverse_symmetries() -> tuple[int, ...]:
    """List the symmetry that undoes each symmetry."""
    inverse = []
    for g in range(NUM_SYMMETRIES):
        undo = [
            h
            for h in range(NUM_SYMMETRIES)
            if all(turn_offset(h, turn_offset(g, o)) == o for o in SIDE_OFFSETS)
        ]
        inverse.append(undo[0])
    return tuple(inverse)


INVERSE_SYMMETRIES = _make_inverse_symmetries()


def make_move_deltas(grid: int) -> np.ndarray:
    """int32[13]: the number that each move adds to a flat cell index."""
    return np.array([row * grid + column for row, column in MOVE_OFFSETS], dtype=np.int32)


def side_delta(side: int, grid: int) -> int:
    """Return the number that a step over `side` adds to a flat cell index."""
    row, column = SIDE_OFFSETS[side]
    return row * grid + column


def wall_on_side(cell: int, side: int, *, grid: int) -> tuple[int, int]:
    """The (orientation, cell) under which the wall on a side of a cell is kept.

    Raises:
      ValueError: if there is no such side.
    """
    for orientation, (of_neighbour, own) in enumerate(WALL_SIDES):
        if side == own:
            return orientation, cell
        if side == of_neighbour:
            return orientation, cell + side_delta(side, grid)
    raise ValueError(f"side: {side!r} is not one of {SIDES}")
