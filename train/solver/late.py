"""Proves the value of late positions of large boards, and the plays that keep it, on the host.

Each play of the position to solve is a claim of its player that it still wins (then, where none
does, that it still draws) and the opposite claim of the other side. The one that seems nearer to
its proof is searched, in rounds of more and more nodes, until every play is decided; see
`train.solver.claims`.
"""

from typing import NamedTuple

import numpy as np

from train.runtime.errors import UsageError
from train.solver.claims import Budget, Claim, OutOfNodesError
from train.solver.contest import Board, Contest, ends, opening, openings_of, reduce
from train.solver.values import DRAW, LOSS, WIN
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

NODE_LIMIT = 50_000
_FIRST_NODES, _ROUNDS = 200, 30
_WORD = 32


class Proof(NamedTuple):
    """What is known of a position for certain."""

    value: int  # WIN, DRAW or LOSS of the player to move
    best: tuple[int, ...]  # slots of all plays that keep it, in rising order
    plays: int  # legal plays
    nodes: int  # positions looked at


def check_provable(rules: Rules) -> None:
    """Refuse rules whose late positions cannot be proven here with a UsageError."""
    edges = 2 * rules.size * (rules.size - 1)
    has_limit = rules.walls is not None and rules.walls < edges
    if rules.players != 2 or rules.stay_needs_room or has_limit:
        raise UsageError(
            "late positions: they are proven for two players, where a stone may always stay and "
            "walls have no limit"
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


class Play(NamedTuple):
    """A legal play: its slot, and the board after it."""

    slot: int
    board: Board


def plays(board: Board, size: int) -> list[Play]:
    """Every legal play of the player to move, in order of slots."""
    found = []
    taken = sum(1 << cell for own in board.stones for cell in own)
    for index, cell in enumerate(board.stones[board.player]):
        reached = ends(board.down, board.right, 1 << cell, taken, size)
        row, column = divmod(cell, size)
        for move, (rows, columns) in enumerate(MOVE_OFFSETS):
            if not (0 <= row + rows < size and 0 <= column + columns < size):
                continue
            end = cell + rows * size + columns
            if reached >> end & 1:
                first = index * PLAYS_PER_STONE + move * NUM_SIDES
                found += _walls(board, index, end, first, size)
    return found


def _walls(board: Board, index: int, end: int, first: int, size: int) -> list[Play]:
    """The plays of a stone that ends on a cell, their slots counted from `first`."""
    found = []
    row, column = divmod(end, size)
    own = board.stones[board.player]
    moved = (*own[:index], end, *own[index + 1 :])
    stones = (moved, board.stones[1]) if board.player == 0 else (board.stones[0], moved)
    for side, (rows, columns) in enumerate(SIDE_OFFSETS):
        if not (0 <= row + rows < size and 0 <= column + columns < size):
            continue
        below, beside = opening(end, side, size)
        if board.down & below or board.right & beside:
            after = Board(board.down & ~below, board.right & ~beside, stones, 1 - board.player)
            found.append(Play(first + side, after))
    return found


def prove(board: Board, rules: Rules, *, node_limit: int = NODE_LIMIT) -> Proof | None:
    """The value of a position and all plays that keep it, or None.

    None where the claims need more nodes, or hang on waiting turns in settled regions that they
    count too coarsely. The game must not be over.

    Args:
      board: after setup.
      rules: see `check_provable`.
      node_limit: most positions that all claims together may look at.
    """
    budget = Budget(node_limit)
    legal = plays(board, rules.size)
    mover = board.player
    groups: dict[tuple[Contest, Contest], list[int]] = {}
    for play in legal:
        both = tuple(reduce(play.board, claimant, rules.size) for claimant in (mover, 1 - mover))
        groups.setdefault((both[0], both[1]), []).append(play.slot)
    try:
        for target in (WIN, DRAW):
            kept = _kept(groups, rules, mover, target, budget)
            if kept is None:
                return None
            if any(kept.values()):
                slots = sorted(s for pair, good in kept.items() if good for s in groups[pair])
                return Proof(target, tuple(slots), len(legal), budget.used)
    except OutOfNodesError:
        return None
    return Proof(LOSS, tuple(play.slot for play in legal), len(legal), budget.used)


def _kept(
    groups: dict[tuple[Contest, Contest], list[int]],
    rules: Rules,
    mover: int,
    target: int,
    budget: Budget,
) -> dict[tuple[Contest, Contest], bool] | None:
    """Whether each play reaches the target; None where one cannot be told."""
    reaches = Claim(rules, mover, target, budget)
    # To miss the target is to leave the other side the next result: -DRAW or -LOSS.
    misses = Claim(rules, 1 - mover, DRAW if target == WIN else WIN, budget)
    found: dict[tuple[Contest, Contest], bool] = {}
    for nodes in (_FIRST_NODES << turn for turn in range(_ROUNDS)):
        for pair in groups:
            if pair in found:
                continue
            # A claim that is refuted may hold in the game, see `train.solver.claims`.
            holds = fails = None
            if reaches.effort(pair[0]) <= misses.effort(pair[1]):
                holds = reaches.search(pair[0], nodes)
            if misses.effort(pair[1]) <= reaches.effort(pair[0]):
                fails = misses.search(pair[1], nodes)
            if holds:
                found[pair] = True
            elif fails:
                found[pair] = False
            elif reaches.is_refuted(pair[0]) and misses.is_refuted(pair[1]):
                return None
        if len(found) == len(groups):
            return found
    return None
