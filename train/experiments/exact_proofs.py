"""Who wins small boards, proven for anyone: writes the proofs that docs/results/data/exact/check.py
checks.

A proof is a line of JSON, the claim, and a byte for each move of the side that claims, in the order
of the checker's walk through the game: the slot of a placement or of a play, where a player's
stones are numbered by rising cell. Alpha-beta search chooses the moves.
"""

import json
import lzma
from collections.abc import Set
from pathlib import Path
from typing import NamedTuple

import tyro

from train.solver.alphabeta import AlphaBeta
from train.solver.boards import DRAW, WIN, Board, LegalPlay, openings_of
from train.solver.contest import nearer
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, cell_name

RESULTS = {WIN: "wins", DRAW: "does not lose"}
_ORDERS = {1: (0, 1), 2: (0, 1, 1, 0)}


class Claim(NamedTuple):
    """That a side reaches at least a value, after some first placements."""

    size: int
    stones: int  # of each player
    placed: tuple[int, ...]  # cells
    side: int
    value: int  # WIN or DRAW

    @property
    def name(self) -> str:
        """The name of the proof's file."""
        cells = "".join(f"-{cell_name(cell, grid=self.size).lower()}" for cell in self.placed)
        result = f"{COLOURS[self.side]} {RESULTS[self.value]}".lower().replace(" ", "-")
        return f"{self.size}x{self.size}-{self.stones}{cells}-{result}.proof.xz"


CLAIMS = (
    Claim(3, 1, (), 0, WIN),
    Claim(3, 1, (0,), 1, WIN),
    Claim(3, 1, (1,), 1, WIN),
    Claim(3, 2, (), 0, DRAW),
    Claim(3, 2, (), 1, DRAW),
    Claim(3, 2, (0,), 1, WIN),
    Claim(3, 2, (1,), 0, DRAW),
    Claim(3, 2, (4,), 0, DRAW),
    Claim(4, 1, (), 1, WIN),
)
"""The tables of docs/results/exact_values.md, first placements up to symmetry."""


class _Prover:
    """Values of placements and plays for the side of a claim."""

    def __init__(self, claim: Claim, is_compiled: bool | None) -> None:
        self.claim = claim
        order = _ORDERS[claim.stones]
        self.rules = Rules(size=claim.size, stones=claim.stones, order=order)
        self.search = AlphaBeta(self.rules, is_compiled=is_compiled)

    def start(self) -> Board:
        """The position of the claim."""
        board = Board(*openings_of(self.claim.size), ((), ()), self.rules.order[0])
        for cell in self.claim.placed:
            board = dict(self.plays(board))[cell]
        return board

    def in_setup(self, board: Board) -> bool:
        """Whether stones are left to place."""
        return sum(map(len, board.stones)) < len(self.rules.order)

    def is_over(self, board: Board) -> bool:
        """Whether the game is over."""
        return not self.in_setup(board) and self.search.is_over(board)

    def plays(self, board: Board) -> list[LegalPlay]:
        """Each legal placement or play with its number, rising; stones rise by cell."""
        if not self.in_setup(board):
            return [LegalPlay(slot, _sorted(after)) for slot, after in self.search.plays(board)]
        placed = sum(map(len, board.stones)) + 1
        player = (*self.rules.order, 0)[placed]
        legal = []
        for cell in range(self.claim.size**2):
            if cell not in board.stones[0] + board.stones[1]:
                stones = list(board.stones)
                stones[board.player] += (cell,)
                after = board._replace(stones=(stones[0], stones[1]), player=player)
                legal.append(LegalPlay(cell, _sorted(after)))
        return legal

    def choose(self, board: Board, met: Set[Board]) -> LegalPlay:
        """A move of the side that keeps its claim. To keep the proof short, a position that the
        walk has met comes first, then the end of the game, then many cells that are near."""

        def order(play: LegalPlay) -> tuple[bool, bool, int]:
            return play.board not in met, not self.is_over(play.board), -self._lead(play.board)

        return next(p for p in sorted(self.plays(board), key=order) if self.holds(p.board))

    def holds(self, board: Board) -> bool:
        """Whether the side reaches its value from here on."""
        side = self.claim.side
        value = self.claim.value
        if not self.in_setup(board):
            if board.player == side:
                return not self.search.keeps(board, 1 - value)
            return self.search.keeps(board, value)
        some = any if board.player == side else all
        return some(self.holds(play.board) for play in self.plays(board))

    def _lead(self, board: Board) -> int:
        """Cells that are nearer to the side's stones than to the others."""
        own, other = (
            sum(1 << cell for cell in board.stones[player])
            for player in (self.claim.side, 1 - self.claim.side)
        )
        return nearer(board.down, board.right, own, other, self.claim.size)


def prove(claim: Claim, *, is_compiled: bool | None = None) -> bytes:
    """The proof of a claim that holds, as its file has it; see `AlphaBeta` for `is_compiled`."""
    prover = _Prover(claim, is_compiled)
    moves = bytearray()
    met: set[Board] = set()
    waiting = [prover.start()]
    while waiting:
        board = waiting.pop()
        if board in met:
            continue
        met.add(board)
        if prover.is_over(board):
            continue
        if board.player == claim.side:
            chosen = prover.choose(board, met)
            moves.append(chosen.slot)
            waiting.append(chosen.board)
            continue
        legal = prover.plays(board)
        if not any(board.stones):
            legal = [play for play in legal if _is_first(play.slot, claim.size)]
        waiting += [play.board for play in reversed(legal)]
    line = {
        "size": claim.size,
        "order": "".join(COLOURS[player][0] for player in prover.rules.order),
        "placed": [cell_name(cell, grid=claim.size) for cell in claim.placed],
        "side": COLOURS[claim.side],
        "result": RESULTS[claim.value],
    }
    text = json.dumps(line).encode() + b"\n"
    return lzma.compress(text + moves, preset=9 | lzma.PRESET_EXTREME)


def _is_first(cell: int, size: int) -> bool:
    """Whether a cell is in the triangle whose turned and mirrored copies cover the board."""
    row, column = divmod(cell, size)
    return column <= row <= (size - 1) // 2


def _sorted(board: Board) -> Board:
    first, second = (tuple(sorted(cells)) for cells in board.stones)
    return board._replace(stones=(first, second))


def main(out: Path = Path("docs/results/data/exact")) -> None:
    """Write the proofs of all claims.

    Args:
      out: folder of the proofs.
    """
    out.mkdir(parents=True, exist_ok=True)
    for claim in CLAIMS:
        packed = prove(claim)
        (out / claim.name).write_bytes(packed)
        print(f"{out / claim.name}: {len(packed):,} bytes")


if __name__ == "__main__":
    tyro.cli(main)
