"""The engine's replay beside the slow referee's record, field by field."""

from collections.abc import Sequence

import numpy as np

from tests.support.game.harness import Shown
from tests.support.reference.games import Record
from tests.support.reference.referee import Board


def mismatches(records: Sequence[Record], shown: Shown, *, grid: int) -> dict[str, str]:
    """The fields in which the two differ, each with its first game and ply."""
    found = {}
    for name, (expected, seen) in _fields(records, shown, grid).items():
        differs = np.asarray(expected != seen)
        differs = differs.reshape(*differs.shape[:2], -1).any(axis=2)
        if differs.any():
            ply, game = np.argwhere(differs)[0]
            found[name] = (
                f"game {game} ply {ply}: {expected[ply, game]} but the engine has "
                f"{seen[ply, game]} under {records[game].rules}"
            )
    return found


def _fields(
    records: Sequence[Record], shown: Shown, grid: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Expected and found values by field, both [T, B, ...]."""
    position = shown.state.position
    length, _ = shown.player.shape
    players, stones = position.stones.shape[2:]
    seen = {
        "player": shown.player,
        "ply": position.ply,
        "over": shown.terminated,
        "actions": shown.actions,
        "back": shown.back,
        "stones": position.stones,
        "walls": walls_of_words(position.walls, grid),
        "walls used": walls_used(shown),
        "territory": shown.territory,
        "largest": shown.largest,
        "reach": shown.reach,
        "rewards": shown.rewards.round(5),
    }
    # Where nothing is written below, whatever the engine has is right.
    expected = {name: np.array(value) for name, value in seen.items()}
    expected |= {name: np.zeros_like(expected[name]) for name in ("ply", "over", "rewards")}
    expected["actions"] = np.ones_like(expected["actions"])
    for game, record in enumerate(records):
        last, played = len(record.plies) - 1, record.plies_played()
        for t in range(length):
            ply = record.plies[min(t, last)]
            here = t, game
            expected["ply"][here] = min(t, played)
            expected["over"][here] = ply.over
            expected["stones"][here] = stone_table(ply.board, stones, grid)
            expected["walls"][here] = wall_table(ply.board, grid)
            builders = list(ply.board.walls.values())
            expected["walls used"][here] = [builders.count(player) for player in range(players)]
            expected["territory"][here] = ply.territory
            expected["largest"][here] = ply.largest
            expected["reach"][here] = [cell_mask(cells, grid) for cells in ply.reach]
            if not ply.over:
                expected["player"][here] = ply.player
                expected["actions"][here] = False
                expected["actions"][here][ply.legal] = True
            if t < last:
                expected["rewards"][here] = np.float32(record.rewards[t]).round(5)
                if record.actions[t] in ply.legal:
                    expected["back"][here] = record.actions[t]
    return {name: (expected[name], seen[name]) for name in seen}


def cell_mask(cells: Sequence[int], grid: int) -> np.ndarray:
    """bool[N] of flat cells."""
    mask = np.zeros(grid * grid, bool)
    mask[list(cells)] = True
    return mask


def stone_table(board: Board, stones: int, grid: int) -> np.ndarray:
    """int[P, S] flat cells, -1 for a stone still to be placed."""
    table = np.full((len(board.stones), stones), -1)
    for player, own in enumerate(board.stones):
        table[player, : len(own)] = [row * grid + column for row, column in own]
    return table


def wall_table(board: Board, grid: int) -> np.ndarray:
    """bool[P, 2, N] walls by builder: at the cell above a wall, at the cell left of it."""
    table = np.zeros((len(board.stones), 2, grid * grid), bool)
    for edge, builder in board.walls.items():
        (row, column), (row2, _) = sorted(edge)
        table[builder, int(row == row2), row * grid + column] = True
    return table


def walls_of_words(words: np.ndarray, grid: int) -> np.ndarray:
    """uint32[..., W] -> bool[..., N], cell `c` being bit `c % 32` of word `c // 32`."""
    cells = np.arange(grid * grid)
    return (words[..., cells // 32] >> (cells % 32).astype(np.uint32)) & 1 == 1


def walls_used(shown: Shown) -> np.ndarray:
    """int[T, B, P] walls taken off each player's budget."""
    return shown.state.variant.walls[..., None] - shown.state.position.walls_left


def to_grid(actions, size: int, grid: int) -> np.ndarray:
    """int[...]: the ids, in a grid, of actions on a board of its own size."""
    actions = np.asarray(actions)
    is_placement = actions >= size**2 * 52
    cell, play = np.where(is_placement, actions - size**2 * 52, actions // 52), actions % 52
    cell = cell // size * grid + cell % size
    return np.where(is_placement, grid**2 * 52 + cell, cell * 52 + play)
