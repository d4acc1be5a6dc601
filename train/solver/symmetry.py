"""Gives boards that turn or mirror into each other one key.

Sets of cells are the bits of integers, openings as in `train.solver.contest`. Everything but the
tables runs in the interpreter and compiled.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from train.solver.contest import popcount
from wallgo_jax.board.geometry import NUM_SYMMETRIES, turn_cell

CHUNK = 9
"""Cells whose openings are turned by one look-up."""


class Turns(NamedTuple):
    """The images of cells and openings under S of the eight symmetries, as lists or arrays."""

    cells: int
    down: Any  # [S, chunks, 2 ** CHUNK], the images of vertical openings
    right: Any  # [S, chunks, 2 ** CHUNK], of horizontal ones
    swaps: Any  # [S], whether vertical openings become horizontal
    cell: Any  # [S, cells], each cell turned


def canonical(
    turns: Turns, down: int, right: int, first: int, second: int
) -> tuple[int, int, int, int]:
    """Openings and two sets of stones, equal for a board and its symmetries."""
    least = -1, 0, 0, 0
    for turn in range(len(turns.swaps)):
        below = 0
        beside = 0
        chunk = 0
        left = down
        more = right
        while left | more:
            last = (1 << CHUNK) - 1
            below |= turns.down[turn][chunk][left & last]
            beside |= turns.right[turn][chunk][more & last]
            left, more, chunk = left >> CHUNK, more >> CHUNK, chunk + 1
        if turns.swaps[turn]:
            below, beside = beside, below
        if 0 <= least[0] < below or (least[0] == below and least[1] < beside):
            continue
        one = _turned(turns.cell[turn], first)
        two = _turned(turns.cell[turn], second)
        turned = below, beside, one, two
        if least[0] < 0 or turned < least:
            least = turned
    return least


def _turned(places: Any, stones: int) -> int:
    """A set of stones, turned."""
    turned = 0
    while stones:
        turned |= 1 << places[popcount((stones & -stones) - 1)]
        stones &= stones - 1
    return turned


@functools.cache
def make_turns(size: int, *, is_compiled: bool, symmetries: int = NUM_SYMMETRIES) -> Turns:
    """The tables of the first symmetries, as arrays for compiled code or as lists."""
    cells = size**2
    chunks = range(0, cells, CHUNK)
    downs = []
    rights = []
    swaps = []
    places = []
    for symmetry in range(symmetries):
        place = [
            row * size + column
            for row, column in (turn_cell(symmetry, size, *divmod(c, size)) for c in range(cells))
        ]
        below = [1 << min(place[cell], place[cell + size]) for cell in range(cells - size)]
        beside = [
            1 << min(place[cell], place[cell + 1]) if cell % size < size - 1 else 0
            for cell in range(cells)
        ]
        downs.append([_by_set(below, first) for first in chunks])
        rights.append([_by_set(beside, first) for first in chunks])
        swaps.append(abs(place[size] - place[0]) == 1)
        places.append(place)
    tables = downs, rights, swaps, places
    return Turns(cells, *map(np.array, tables)) if is_compiled else Turns(cells, *tables)


def _by_set(images: list[int], first: int) -> list[int]:
    """For every set of a chunk of openings, as a number, the union of the images."""
    union = [0]
    for cell in range(first, first + CHUNK):
        image = images[cell] if cell < len(images) else 0
        union += [known | image for known in union]
    return union
