"""Late positions reduced to the regions that are still contested, as bitboards on the host.

A region with stones of one side alone is settled: the other side can neither enter it nor build in
it, and its owner loses cells of it by its own walls only. So only three things of a settled region
matter: its cells, its size beside other regions (ties), and how many turns its owner can wait in
it. A `Contest` counts them and drops the rest of the region.

Sets of cells are the bits of Python integers. Openings are stored like walls: by the upper cell of
a vertical neighbourhood (`down`) and the left cell of a horizontal one (`right`).
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

from wallgo_jax.board.geometry import SIDE_OFFSETS

MAX_SURE_WAITS = 6
"""Waiting turns that are looked for in one settled region."""


class Board(NamedTuple):
    """A position of two players after setup; without a limit of walls it is all that counts."""

    down: int  # cells without a wall to the cell below, which exists
    right: int  # cells without a wall to the cell on the right, which exists
    stones: tuple[tuple[int, ...], tuple[int, ...]]  # cells by player and index
    player: int  # to move


class Contest(NamedTuple):
    """The contested part of a position, and the sum of the settled rest, as one side claims it.

    The claim is that a side, the claimant, reaches some result. Its waits are turns that it surely
    can spend in its settled regions without loss; the other side's are at least as many as it can.
    """

    down: int
    right: int
    first: int  # player 0's stones in contested regions
    second: int  # player 1's
    lead: int  # settled cells of player 0 minus player 1's
    largest: tuple[int, int]  # cells of each player's largest settled region
    waits: tuple[int, int]
    player: int  # to move


def step(down: int, right: int, cells: int, size: int) -> int:
    """The cells and their neighbours across openings."""
    return (
        cells
        | (cells & down) << size
        | (cells >> size) & down
        | (cells & right) << 1
        | (cells >> 1) & right
    )


def flood(down: int, right: int, cells: int, allowed: int, size: int) -> int:
    """The cells that walks from some cells reach within the allowed ones."""
    while True:
        grown = (
            cells
            | (cells & down) << size
            | (cells >> size) & down
            | (cells & right) << 1
            | (cells >> 1) & right
        ) & allowed
        if grown == cells:
            return cells
        cells = grown


def bits(cells: int) -> Iterator[int]:
    """The members of a set, each as a set of its own."""
    while cells:
        lowest = cells & -cells
        yield lowest
        cells ^= lowest


def reduce(board: Board, claimant: int, size: int) -> Contest:
    """The contested part of a position, for a claim of one side."""
    everywhere = (1 << size * size) - 1
    masks = tuple(sum(1 << cell for cell in own) for own in board.stones)
    contest = Contest(board.down, board.right, masks[0], masks[1], 0, (0, 0), (0, 0), board.player)
    left = everywhere
    while left:
        part = flood(board.down, board.right, left & -left, everywhere, size)
        left &= ~part
        contest = settle(contest, part, claimant, size)
    return contest


def settle(contest: Contest, part: int, claimant: int, size: int) -> Contest:
    """Drop a region from a contest unless it is contested; without stones it is nobody's."""
    first, second = contest.first & part, contest.second & part
    if first and second:
        return contest
    down, right = contest.down & part, contest.right & part
    lead, largest, waits = contest.lead, contest.largest, contest.waits
    if first or second:
        owner, cells = (0 if first else 1), part.bit_count()
        lead += cells if owner == 0 else -cells
        if owner == claimant:
            more = sure_waits(down, right, first | second, size)
        else:
            more = free_waits(down, right, first | second, cells)
        if owner == 0:
            largest, waits = (max(largest[0], cells), largest[1]), (waits[0] + more, waits[1])
        else:
            largest, waits = (largest[0], max(largest[1], cells)), (waits[0], waits[1] + more)
    return Contest(
        contest.down & ~part,
        contest.right & ~part,
        contest.first & ~part,
        contest.second & ~part,
        lead,
        largest,
        waits,
        contest.player,
    )


def free_waits(down: int, right: int, stones: int, cells: int) -> int:
    """Most turns that the owner of a settled region can spend in it before each costs a cell.

    At the end it owns at most as many parts as it has stones there. A part of n cells keeps at
    least n - 1 openings, and each turn closes one: so turns are at most openings - (cells - stones)
    and the number of cells given up.
    """
    return down.bit_count() + right.bit_count() - cells + stones.bit_count()


@functools.lru_cache(maxsize=1 << 16)
def sure_waits(down: int, right: int, stones: int, size: int) -> int:
    """Turns that the owner of a settled region can spend in it without parting it, at least.

    It plays the first such turn that it finds, so there may be more; at most `MAX_SURE_WAITS`.
    """
    for turn in range(MAX_SURE_WAITS):
        found = _wait(down, right, stones, size)
        if found is None:
            return turn
        down, right, stones = found
    return MAX_SURE_WAITS


def _wait(down: int, right: int, stones: int, size: int) -> tuple[int, int, int] | None:
    everywhere = (1 << size * size) - 1
    for stone in bits(stones):
        for end in bits(ends(down, right, stone, stones, size)):
            for below, beside in sides(down, right, end, size):
                after = down & ~below, right & ~beside
                if flood(*after, end, everywhere, size) == flood(
                    down, right, end, everywhere, size
                ):
                    return *after, stones & ~stone | end
    return None


def ends(down: int, right: int, stone: int, stones: int, size: int) -> int:
    """The cells where a move of 0, 1 or 2 steps of a stone ends, among all stones."""
    free = ~stones
    once = step(down, right, stone, size) & free
    return (step(down, right, once, size) & free) | once | stone


def sides(down: int, right: int, cell: int, size: int) -> list[tuple[int, int]]:
    """The openings of a cell, each as two sets: of vertical and of horizontal openings."""
    found = []
    if (cell >> size) & down:
        found.append((cell >> size, 0))
    if cell & right:
        found.append((0, cell))
    if cell & down:
        found.append((cell, 0))
    if (cell >> 1) & right:
        found.append((0, cell >> 1))
    return found


def openings_of(size: int) -> tuple[int, int]:
    """`down` and `right` of a board without walls."""
    row = (1 << size) - 1
    down = (1 << size * (size - 1)) - 1
    right = sum((row >> 1) << size * place for place in range(size))
    return down, right


def opening(cell: int, side: int, size: int) -> tuple[int, int]:
    """The opening on a side of a cell as two sets, see `sides`; it must lie on the board."""
    rows, columns = SIDE_OFFSETS[side]
    first = min(cell, cell + rows * size + columns)
    return (1 << first, 0) if rows else (0, 1 << first)
