"""Draws mazes on a square board: random spanning trees of its cells with long corridors; host
side."""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

WINDOW = 2
"""Cells at most this far apart in row and in column are near: a window of 5x5."""


class MazeBoard(NamedTuple):
    """The cells of a size, before any wall."""

    neighbours: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, int], ...]  # (lower cell, higher cell)
    is_near: np.ndarray  # bool[cells, cells], by WINDOW


@functools.cache
def make_board(size: int) -> MazeBoard:
    """The board of a size."""
    cells = range(size * size)
    right = [(cell, cell + 1) for cell in cells if (cell + 1) % size]
    down = [(cell, cell + size) for cell in cells[: -size or None]]
    edges = tuple(sorted(right + down))
    neighbours = tuple(tuple(sum(edge) - cell for edge in edges if cell in edge) for cell in cells)
    row, column = np.divmod(np.arange(size * size), size)
    distance = np.maximum(abs(row[:, None] - row), abs(column[:, None] - column))
    return MazeBoard(neighbours, edges, distance <= WINDOW)


class MazeTree(NamedTuple):
    """A maze from the queried cell outwards. The far cell of an edge names the edge."""

    order: list[int]  # cells, each after its parent
    parent: list[int]
    depth: list[int]
    degree: list[int]

    def beyond(self, cell: int) -> list[int]:
        """The cells that a wall before this cell shuts off."""
        inside = {cell}
        for each in self.order:
            if self.parent[each] in inside:
                inside.add(each)
        return sorted(inside)

    def add_up(self, weight: list[int]) -> list[int]:
        """For each cell, the sum of the weights beyond it."""
        total = list(weight)
        for cell in reversed(self.order[1:]):
            total[self.parent[cell]] += total[cell]
        return total


def draw_maze(board: MazeBoard, rng: np.random.Generator) -> list[list[int]]:
    """For each cell, the neighbours that it is open to, by a random depth-first search: its trees
    have long corridors."""
    cells = len(board.neighbours)
    ranks = rng.random((cells, 4)).tolist()
    waiting = [
        [near for _, near in sorted(zip(ranks[cell], board.neighbours[cell], strict=False))]
        for cell in range(cells)
    ]
    links: list[list[int]] = [[] for _ in range(cells)]
    path = [int(rng.integers(cells))]
    visited = {path[0]}
    while path:
        cell = path[-1]
        near = waiting[cell].pop() if waiting[cell] else None
        if near is None:
            path.pop()
        elif near not in visited:
            visited.add(near)
            links[cell].append(near)
            links[near].append(cell)
            path.append(near)
    return links


def walk(links: list[list[int]], root: int) -> MazeTree:
    """The maze from one of its cells, in breadth-first order."""
    order, parent, depth = [root], [root] * len(links), [0] * len(links)
    for cell in order:
        for near in links[cell]:
            if near != parent[cell]:
                parent[near], depth[near] = cell, depth[cell] + 1
                order.append(near)
    return MazeTree(order, parent, depth, [len(near) for near in links])


def shape_of(tree: MazeTree, cell: int) -> tuple[int, ...]:
    """The turns on the way from the root to a cell: 0 straight on, 1 and 3 to the sides.

    Ways that a shift, a turn or a mirror image of the board carries into each other have the same
    shape.
    """
    size = math.isqrt(len(tree.parent))
    way = [cell]
    while way[-1] != tree.order[0]:
        way.append(tree.parent[way[-1]])
    way.reverse()
    # Quarter turns from the step to the right: its next one leads down a row.
    quarters = {1: 0, size: 1, -1: 2, -size: 3}
    steps = [quarters[later - before] for before, later in itertools.pairwise(way)]
    turns = tuple((later - before) % 4 for before, later in itertools.pairwise(steps))
    return min(turns, tuple(-turn % 4 for turn in turns))
