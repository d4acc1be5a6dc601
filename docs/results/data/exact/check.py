"""Checks proofs of who wins WallGo on small boards. It needs Python 3.11 or newer and no library.

    python check.py [PROOF ...]    # without names it checks all proofs in its folder

A proof is a file packed by xz. Its first line is a claim in JSON, such as

    {"size": 4, "order": "RB", "placed": ["A1"], "side": "Blue", "result": "wins"}

On 4x4 cells Red (R) places a stone, then Blue (B) does. The claim: where Red's stone stands on A1,
Blue wins, whatever Red plays. The other result that can be claimed is "does not lose".

Each byte after the line is the number of a move of the claiming side. The check walks through the
game from the claim's position. Where the other side is to move, it follows every move, in the order
of their numbers; where the claiming side is, that move alone which the next byte names. In each end
of a game the side must have what it claims. A position that was met before is not entered again: it
cannot lead back to itself, because each turn adds a wall. In the end no byte may be left.

Numbers in brackets are those of the rules in wallgo_jax/RULES.md, section 3. Two players play
without a limit of walls, a stone may always stay, and the largest region breaks ties.
"""

import json
import lzma
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PLAYERS = ("Red", "Blue")
RESULTS = {"wins": 1, "does not lose": 0}
SIDES = ((-1, 0), (0, 1), (1, 0), (0, -1))
MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-2, 0), (2, 0), (0, -2), (0, 2), (-1, -1))
MOVES += ((-1, 1), (1, -1), (1, 1))
"""Rows down and columns right of the end of each move, and of the cell on each side."""


class ProofError(Exception):
    """What is wrong with a proof."""


class Position(NamedTuple):
    """All that the rules look at."""

    walls: int  # a set of `Game.wall`
    stones: tuple[tuple[int, ...], tuple[int, ...]]  # cells of Red's and of Blue's, rising
    player: int  # to move: 0 is Red


class Game:
    """The rules on size x size cells, which are numbered row by row [1]."""

    def __init__(self, size: int, order: list[int]) -> None:
        self.size = size
        self.order = order  # the player of each placement [2]
        self.cells = range(size * size)
        self.ends = [list(self.near(cell, MOVES)) for cell in self.cells]
        self.beside = [list(self.near(cell, SIDES)) for cell in self.cells]
        self.have_below = sum(1 << cell for cell in self.cells if cell // size < size - 1)
        self.have_right = sum(1 << cell for cell in self.cells if cell % size < size - 1)

    def near(self, cell: int, steps: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The number of each step that stays on the board, and the cell where it ends."""
        row, column = divmod(cell, self.size)
        for number, (rows, columns) in enumerate(steps):
            if 0 <= row + rows < self.size and 0 <= column + columns < self.size:
                yield number, cell + rows * self.size + columns

    def wall(self, cell: int, other: int) -> int:
        """The wall between two neighbours, as one bit: those below cells, then those right of."""
        first = min(cell, other)
        return 1 << (first if abs(cell - other) == self.size else first + len(self.cells))

    def grow(self, cells: int, walls: int) -> int:
        """Cells as bits, and all that are one step from them where no wall parts them."""
        below = self.have_below & ~walls
        right = self.have_right & ~(walls >> len(self.cells))
        down = (cells & below) << self.size | (cells >> self.size) & below
        return cells | down | (cells & right) << 1 | (cells >> 1) & right

    def moves(self, position: Position) -> Iterator[tuple[int, Position]]:
        """Number of each legal move, rising, and the position after it."""
        walls, stones, player = position
        taken = stones[0] + stones[1]
        own = stones[player]
        if len(taken) < len(self.order):  # A placement has the number of its cell [2].
            following = [*self.order, 0][len(taken) + 1]
            for cell in self.cells:
                if cell not in taken:
                    yield cell, replace(position, (*own, cell), walls, following)
            return
        empty = ~sum(1 << cell for cell in taken)
        for stone, start in enumerate(own):
            once = self.grow(1 << start, walls) & empty
            reached = 1 << start | once | self.grow(once, walls) & empty  # 0, 1, 2 steps [3, 4]
            for move, end in self.ends[start]:
                moved = (*own[:stone], end, *own[stone + 1 :])
                for side, other in self.beside[end] if reached >> end & 1 else ():
                    wall = self.wall(end, other)
                    if not walls & wall:
                        number = stone * 52 + move * 4 + side
                        yield number, replace(position, moved, walls | wall, 1 - player)

    def result(self, position: Position) -> int | None:
        """1 if Red has won, 0 for a draw, -1 if Blue has won; None before the end."""
        if len(position.stones[0] + position.stones[1]) < len(self.order):
            return None
        red, blue = (sum(1 << cell for cell in own) for own in position.stones)
        regions: tuple[list[int], list[int]] = ([], [])  # sizes of Red's and of Blue's [8]
        left = red | blue
        while left:
            region = left & -left
            while (more := self.grow(region, position.walls)) != region:
                region = more
            if region & red and region & blue:
                return None  # It holds stones of two players [7].
            regions[0 if region & red else 1].append(region.bit_count())
            left &= ~region
        reds, blues = ((sum(sizes), max(sizes)) for sizes in regions)
        return (reds > blues) - (reds < blues)  # The sum counts, then the largest [9].


def replace(position: Position, own: tuple[int, ...], walls: int, player: int) -> Position:
    """The position after a move of the player to move, who has these stones then."""
    stones = list(position.stones)
    stones[position.player] = tuple(sorted(own))
    return Position(walls, (stones[0], stones[1]), player)


def walk(game: Game, start: Position, side: int, least: int, moves: bytes) -> int:
    """Walk through all games of a side that makes these moves; returns the number of positions."""
    used = 0
    met = set()
    waiting = [start]
    while waiting:
        position = waiting.pop()
        if position in met:
            continue
        met.add(position)
        result = game.result(position)
        if result is not None:
            if (-result if side else result) < least:
                raise ProofError(f"a game that ends after {used} moves has another result")
            continue
        after = dict(game.moves(position))
        if position.player == side:
            if used == len(moves) or moves[used] not in after:
                raise ProofError(f"move {used} is missing or not legal")
            after = {0: after[moves[used]]}
            used += 1
        elif position.stones == ((), ()):
            # Turned and mirrored, a triangle of cells (column <= row <= middle) covers the board.
            n = game.size
            after = {c: after[c] for c in game.cells if c % n <= c // n <= (n - 1) // 2}
        elif not after:
            raise ProofError("a player has no move [6]")
        waiting += reversed(after.values())
    if used < len(moves):
        raise ProofError(f"{len(moves) - used} moves are left over")
    return len(met)


def check(packed: bytes) -> str:
    """Check a proof and return what it proves; a ProofError says what is wrong with it."""
    try:
        line, _, moves = lzma.decompress(packed).partition(b"\n")
        claim = json.loads(line)
        size, order, placed = claim["size"], claim["order"], claim["placed"]
        if size not in range(3, 10) or not order.count("R") == order.count("B") >= len(placed) / 2:
            raise ValueError("size, order or placed is not allowed")
        game = Game(size, ["RB".index(letter) for letter in order])
        start = Position(0, ((), ()), game.order[0])
        names = ["ABCDEFGHI"[cell % size] + str(cell // size + 1) for cell in game.cells]
        for name in placed:
            start = dict(game.moves(start))[names.index(name)]
        side = PLAYERS.index(claim["side"])
        least = RESULTS[claim["result"]]
    except (lzma.LZMAError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProofError(f"no claim that can be checked: {error!r}") from None
    positions = walk(game, start, side, least, moves)
    proved = f"{size}x{size} {' '.join([order, *placed])}: {PLAYERS[side]} {claim['result']}"
    return f"{proved} ({len(moves):,} moves, {positions:,} positions)"


def main() -> int:
    """Check the files that are named, or all in this folder; returns how many prove nothing."""
    wrong = 0
    for name in sys.argv[1:] or sorted(Path(__file__).parent.glob("*.proof.xz")):
        began = time.perf_counter()
        try:
            verdict = "proved: " + check(Path(name).read_bytes())
        except ProofError as error:
            verdict = f"WRONG: {error}"
            wrong += 1
        print(f"{verdict}, {time.perf_counter() - began:.1f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
