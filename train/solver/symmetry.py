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
    """The images of cells and openings under the eight symmetries, as lists or arrays."""

    cells: int
    down: Any  # [8, chunks, 2 ** CHUNK], the images of vertical openings, see `make_turns`
    right: Any  # [8, chunks, 2 ** CHUNK], of horizontal ones
    cell: Any  # [8, cells], each cell turned


def canonical(turns: Turns, down: int, right: int, first: int, second: int) -> tuple[int, int, int]:
    """Numbers of the openings and of two sets of stones, equal for a board and its symmetries."""
    least = chosen = other = -1
    for turn in range(NUM_SYMMETRIES):
        openings, chunk, below, beside = 0, 0, down, right
        while below | beside:
            part, last = turns.down[turn][chunk], (1 << CHUNK) - 1
            openings |= part[below & last] | turns.right[turn][chunk][beside & last]
            below, beside, chunk = below >> CHUNK, beside >> CHUNK, chunk + 1
        if 0 <= least < openings:
            continue
        one = _number(turns.cell[turn], first, turns.cells)
        two = _number(turns.cell[turn], second, turns.cells)
        if openings != least or one < chosen or (one == chosen and two < other):
            least, chosen, other = openings, one, two
    return least, chosen, other


def _number(places: Any, stones: int, cells: int) -> int:
    """A set of stones, turned: digits to the base of the number of cells, after a leading 1."""
    turned, number = 0, 1
    while stones:
        turned |= 1 << places[popcount((stones & -stones) - 1)]
        stones &= stones - 1
    while turned:
        number = number * cells + popcount((turned & -turned) - 1)
        turned &= turned - 1
    return number


@functools.cache
def make_turns(size: int, *, is_compiled: bool) -> Turns:
    """The tables, as arrays for compiled code or as lists.

    The image of a set of openings is one number, with the horizontal ones in the higher bits.
    """
    cells = size**2
    downs, rights, places = [], [], []
    for symmetry in range(NUM_SYMMETRIES):
        place = [
            row * size + column
            for row, column in (turn_cell(symmetry, size, *divmod(c, size)) for c in range(cells))
        ]
        below = [_turned_opening(place, cell, cell + size, cells) for cell in range(cells - size)]
        beside = [
            _turned_opening(place, cell, cell + 1, cells) if cell % size < size - 1 else 0
            for cell in range(cells)
        ]
        chunks = range(0, cells, CHUNK)
        downs.append([_by_set(below, first) for first in chunks])
        rights.append([_by_set(beside, first) for first in chunks])
        places.append(place)
    tables = downs, rights, places
    return Turns(cells, *map(np.array, tables)) if is_compiled else Turns(cells, *tables)


def _turned_opening(place: list[int], first: int, second: int, cells: int) -> int:
    low, high = sorted((place[first], place[second]))
    return 1 << (low + cells if high - low == 1 else low)


def _by_set(images: list[int], first: int) -> list[int]:
    """For every set of a chunk of openings, as a number, the union of the images."""
    union = [0]
    for cell in range(first, first + CHUNK):
        image = images[cell] if cell < len(images) else 0
        union += [known | image for known in union]
    return union
