"""Positions drawn as text, and the way from a position of the slow referee to one of the engine.

A drawing is a tuple of lines. Letters R B G Y are stones of players 0 to 3, in reading order for
their indices; `-` below and `|` right of a cell are walls, `=` and `!` walls of player 1:

    "R .|B",
    "-+ + ",
    ". . .",
    " +=+ ",
    "B . R",
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.support.game.comparison import stone_table, wall_table
from tests.support.reference.referee import DOWN, MOVES, RIGHT, Board, edge
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State


def parse(drawing: Sequence[str], players: int) -> Board:
    """The board of a drawing."""
    size = len(drawing[0]) // 2 + 1
    assert [len(line) for line in drawing] == [2 * size - 1] * (2 * size - 1)
    board = Board(size, [[] for _ in range(players)], {})
    for row, column in board.cells():
        letter = drawing[2 * row][2 * column]
        if letter != ".":
            board.stones["RBGY".index(letter)].append((row, column))
        if column + 1 < size and drawing[2 * row][2 * column + 1] != " ":
            wall = drawing[2 * row][2 * column + 1]
            board.walls[edge((row, column), RIGHT)] = "|!".index(wall)
        if row + 1 < size and drawing[2 * row + 1][2 * column] != " ":
            board.walls[edge((row, column), DOWN)] = "-=".index(drawing[2 * row + 1][2 * column])
    return board


def draw(
    drawing: Sequence[str], *, player: int, grid: int, room: int | None = None, **rules: Any
) -> State:
    """A drawn position after setup, with `player` to move, under rules whose fields are given."""
    fields = {"players": 2, "tie": (), **rules}
    board = parse(drawing, fields["players"])
    stones = len(board.stones[0])
    order = tuple(range(fields["players"])) * stones
    fields = {"size": board.size, "stones": stones, "order": order, **fields}
    ply = len(fields["order"])
    return to_engine(board, fields, player=player, ply=ply, grid=grid, room=room)


def to_engine(
    board: Board,
    rules: Mapping[str, Any],
    *,
    player: int,
    ply: int,
    grid: int,
    terminated: bool = False,
    room: int | None = None,
) -> State:
    """The engine's state of a position of the slow referee, as NumPy arrays, without history.

    `room` is the number of stones a player that the arrays hold; None means those of the rules.
    """
    room = room or rules["stones"]
    variant = state_lib.make_variant(Rules.from_dict(rules), grid=grid, stones=room)
    walls = wall_table(board, grid)
    words = np.zeros((*walls.shape[:-1], *variant.playable.shape), np.uint32)
    for index in np.argwhere(walls):
        words[(*index[:-1], index[-1] // 32)] |= np.uint32(1 << (index[-1] % 32))
    position = Position(
        stones=stone_table(board, room, grid).astype(np.int8),
        walls=words,
        walls_left=(variant.walls - walls.sum(axis=(1, 2))).astype(np.int16),
        trail=np.tile(np.int8([[-1, -1, -1]]), (4, 1)),
        player=np.int8(player),
        ply=np.int16(ply),
        terminated=np.bool_(terminated),
    )
    return State(variant, position)


def cell(name: str) -> tuple[int, int]:
    """Row and column of a cell like B6: column letter, row number from the top."""
    return int(name[1:]) - 1, ord(name[0]) - ord("A")


def place(name: str, *, grid: int) -> int:
    """The public action of a placement."""
    row, column = cell(name)
    return grid**2 * 52 + row * grid + column


def go(start: str, end: str, side: str, *, grid: int) -> int:
    """The public action of a move from one cell to another and a wall on a side of the other."""
    (row, column), (row2, column2) = cell(start), cell(end)
    move = MOVES.index((row2 - row, column2 - column))
    wall = ("up", "right", "down", "left").index(side)
    return (row * grid + column) * 52 + move * 4 + wall
