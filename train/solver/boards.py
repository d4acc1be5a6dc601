"""Positions of two players after setup on the host, as sets of cells, and their legal plays.

Sets of cells are the bits of Python integers. Openings are stored like walls in a state: by the
upper cell of a vertical neighbourhood (`down`) and the left cell of a horizontal one (`right`).
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from train.runtime.errors import UsageError
from train.solver.contest import ends
from wallgo_jax.board.geometry import (
    HORIZONTAL,
    MOVE_OFFSETS,
    NUM_SIDES,
    PLAYS_PER_STONE,
    SIDE_OFFSETS,
    VERTICAL,
)
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position

WIN, DRAW, LOSS = 1, 0, -1
"""The value of a solved position for the player to move, or of a ply for the player who made
it."""
BY_TABLES, BY_SEARCH = {3: 2}, {3: 1, 4: 1}
"""Most stones a player on the boards that are solved so, by their side."""
_WORD = 32


class Board(NamedTuple):
    """A position after setup; without a limit of walls it is all that counts."""

    down: int  # cells without a wall to the cell below, which exists
    right: int  # cells without a wall to the cell on the right, which exists
    stones: tuple[tuple[int, ...], tuple[int, ...]]  # cells by player and index
    player: int  # to move

    def num_walls(self, size: int) -> int:
        """Number of walls that are built."""
        down, right = openings_of(size)
        return (down & ~self.down).bit_count() + (right & ~self.right).bit_count()


class LegalPlay(NamedTuple):
    """A legal play: its slot, and the board after it, where the other player is to move."""

    slot: int
    board: Board


def has_wall_limit(rules: Rules) -> bool:
    """Whether a player can run out of walls."""
    return rules.walls is not None and rules.walls < 2 * rules.size * (rules.size - 1)


def check_solvable(rules: Rules, most_stones: Mapping[int, int]) -> None:
    """Refuse rules beyond these stones by the board's side with a UsageError."""
    is_small = rules.stones <= most_stones.get(rules.size, 0)
    if rules.players != 2 or not is_small or has_wall_limit(rules):
        boards = " or ".join(f"{n}x{n} with at most {most}" for n, most in most_stones.items())
        raise UsageError(
            "solver: exact play needs two players and no limit of walls; board and stones: "
            f"{boards}"
        )


def board_of(position: Position, size: int) -> Board:
    """The board of one position after setup, on the host; the board fills the grid."""
    walls = np.bitwise_or.reduce(np.asarray(position.walls), axis=0)
    built = [sum(int(word) << _WORD * i for i, word in enumerate(words)) for words in walls]
    down, right = openings_of(size)
    stones = np.asarray(position.stones)
    return Board(
        down & ~built[HORIZONTAL],
        right & ~built[VERTICAL],
        (tuple(map(int, stones[0])), tuple(map(int, stones[1]))),
        int(position.player),
    )


def plays(board: Board, size: int) -> list[LegalPlay]:
    """Every play of the player to move, in order of slots, where a stone may always stay."""
    legal = []
    down, right, stones, player = board
    taken = sum(1 << cell for cells in stones for cell in cells)
    for index, cell in enumerate(stones[player]):
        reached = ends(down, right, 1 << cell, taken, size)
        for move, end in _make_ends(size)[cell]:
            if not reached >> end & 1:
                continue
            moved = (*stones[player][:index], end, *stones[player][index + 1 :])
            after = (moved, stones[1]) if player == 0 else (stones[0], moved)
            first = index * PLAYS_PER_STONE + move * NUM_SIDES
            for side, below, beside in _make_openings(size)[end]:
                if down & below or right & beside:
                    closed = Board(down & ~below, right & ~beside, after, 1 - player)
                    legal.append(LegalPlay(first + side, closed))
    return legal


def openings_of(size: int) -> tuple[int, int]:
    """`down` and `right` of a board without walls."""
    row = (1 << size) - 1
    down = (1 << size * (size - 1)) - 1
    right = sum((row >> 1) << size * place for place in range(size))
    return down, right


def opening(cell: int, side: int, size: int) -> tuple[int, int]:
    """The opening on a side of a cell as two sets, of vertical and horizontal openings; it must
    lie on the board."""
    rows, columns = SIDE_OFFSETS[side]
    first = min(cell, cell + rows * size + columns)
    return (1 << first, 0) if rows else (0, 1 << first)


def _is_inside(cell: int, offset: tuple[int, int], size: int) -> bool:
    row, column = cell // size + offset[0], cell % size + offset[1]
    return 0 <= row < size and 0 <= column < size


@functools.cache
def _make_ends(size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each cell, move and end of every move that stays on the board."""
    return tuple(
        tuple(
            (move, cell + offset[0] * size + offset[1])
            for move, offset in enumerate(MOVE_OFFSETS)
            if _is_inside(cell, offset, size)
        )
        for cell in range(size**2)
    )


@functools.cache
def _make_openings(size: int) -> tuple[tuple[tuple[int, int, int], ...], ...]:
    """For each cell, every side that lies on the board, and its `opening`."""
    return tuple(
        tuple(
            (side, *opening(cell, side, size))
            for side, offset in enumerate(SIDE_OFFSETS)
            if _is_inside(cell, offset, size)
        )
        for cell in range(size**2)
    )
