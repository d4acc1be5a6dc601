"""The planes that an observation must show, from the slow referee's record of a game."""

from collections.abc import Iterable

import numpy as np

from tests.support.game.comparison import cell_mask, wall_table
from tests.support.reference.games import Record
from tests.support.reference.referee import Board, Cell

EVERYTHING = "BTRHDLWV"
"""The plane set of `expected_planes`, without the playable cells."""


def expected_planes(game: Record, ply: int) -> np.ndarray:
    """bool[grid, grid, C] with every group of planes and the playable cells.

    At the end nobody is to move; the planes of the turn then name whom the slow referee names.
    """
    grid, shown = game.grid, game.plies[ply]
    players = game.rules["players"]
    everywhere, nowhere = _mask(shown.board.cells(), grid), _mask((), grid)
    planes = _board_planes(shown.board, grid)
    planes += [everywhere if shown.player == player else nowhere for player in range(players)]
    planes += _territory_planes(shown.board, grid)
    planes += [cell_mask(cells, grid) for cells in shown.reach]
    planes += _distance_planes(shown.board, grid)
    boards = [earlier.board for earlier in game.plies[:ply]]
    if boards and boards[-1] is shown.board:
        boards.pop()  # an illegal action moves nothing: the board before it is the board after it
    for age in range(1, 5):
        if age <= len(boards):
            planes += _board_planes(boards[-age], grid) + _territory_planes(boards[-age], grid)
        else:
            planes += [nowhere] * (4 * players + 1)
    planes += [everywhere if fact else nowhere for fact in _variant_facts(game, shown.board)]
    planes.append(everywhere)
    return np.stack(planes, axis=-1).reshape(grid, grid, -1)


def _distance_planes(board: Board, grid: int) -> list[np.ndarray]:
    """Cells within 2, 3 and 4 turns by player, those that a player reaches first, cells within 5, 6
    and 7 turns; then the first two again, through stones."""
    never = 8  # one turn more than the planes look at
    shown: list[list[Cell]] = []
    for through_stones in (False, True):
        turns = [
            {cell: -(-steps // 2) for cell, steps in distances.items()}
            for player in range(len(board.stones))
            for distances in [board.distances(player, through_stones=through_stones)]
        ]
        within = {n: [[c for c in own if own[c] <= n] for own in turns] for n in range(2, never)}
        others = [[other for other in turns if other is not own] for own in turns]
        first = [
            [c for c in own if own[c] < min(never, *(each.get(c, never) for each in rest))]
            for own, rest in zip(turns, others, strict=True)
        ]
        shown += [*within[2], *within[3], *within[4], *first]
        if not through_stones:
            shown += [*within[5], *within[6], *within[7]]
    return [_mask(cells, grid) for cells in shown]


def _variant_facts(game: Record, board: Board) -> list[bool]:
    """Room to stay, limited walls, walls left over 0, 2, 5 and 10 by player, tie-breaks."""
    limit, players = game.rules["walls"], range(game.rules["players"])
    used = [sum(builder == player for builder in board.walls.values()) for player in players]
    left = [10**6 if limit is None else limit - spent for spent in used]
    facts = [game.rules["stay_needs_room"], limit is not None]
    facts += [left[player] > step for step in (0, 2, 5, 10) for player in players]
    return facts + [rule in game.rules["tie"] for rule in ("region", "mover_loses")]


def _mask(cells: Iterable[Cell], grid: int) -> np.ndarray:
    return cell_mask([row * grid + column for row, column in cells], grid)


def _board_planes(board: Board, grid: int) -> list[np.ndarray]:
    """Stones by player, horizontal walls by player, vertical walls by player."""
    walls = wall_table(board, grid)
    return [*(_mask(own, grid) for own in board.stones), *walls[:, 0], *walls[:, 1]]


def _territory_planes(board: Board, grid: int) -> list[np.ndarray]:
    """Territory by player, then every other cell."""
    owned = board.territory_cells()
    neutral = set(board.cells()).difference(*owned)
    return [*(_mask(cells, grid) for cells in owned), _mask(neutral, grid)]
