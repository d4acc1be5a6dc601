"""Solves positions with one stone a player by alpha-beta search, on the host.

A transposition table keeps bounds of positions by walls and stones, up to the eight symmetries; the
colours of walls do not matter. The search tries first the plies after which the player is nearer to
more cells than the opponent. On 4x4 a board without walls takes about half a minute of one CPU core
(400,000 nodes), one with two walls less than ten seconds, one with five a fifth of a second.

Sets of cells are the bits of Python integers. Walls are stored as in a state: by the cells above
the horizontal ones and the cells left of the vertical ones.
"""

import functools
from typing import NamedTuple

from train.runtime.errors import UsageError
from train.solver.contest import step
from train.solver.values import DRAW, LOSS, WIN
from wallgo_jax.board.geometry import (
    DOWN,
    MOVE_OFFSETS,
    NUM_SIDES,
    NUM_SYMMETRIES,
    SIDE_OFFSETS,
    UP,
    turn_cell,
)
from wallgo_jax.game.rules import MOVER_LOSES, Rules

MAX_SIZE = 4
NODE_LIMIT = 3_000_000


class Board(NamedTuple):
    """A position after setup, from the point of view of the player to move."""

    horizontal: int  # cells with a wall below
    vertical: int  # cells with a wall on the right
    own: int  # cell of the stone to move
    other: int  # cell of the other stone


class _Bounds(NamedTuple):
    low: int
    high: int


class Ply(NamedTuple):
    """One legal play and the board after it, still from the point of view of its player."""

    slot: int
    board: Board


class _OutOfNodesError(Exception):
    """The search exceeds its limit of nodes."""


def check_alphabeta(rules: Rules) -> None:
    """Refuse rules that this search cannot solve with a UsageError."""
    edges = 2 * rules.size * (rules.size - 1)
    has_limit = rules.walls is not None and rules.walls < edges
    if rules.size > MAX_SIZE or rules.players != 2 or rules.stones != 1 or has_limit:
        raise UsageError(
            "solver: alpha-beta is for two players with one stone each on at most "
            f"{MAX_SIZE}x{MAX_SIZE} cells and no limit of walls"
        )


class AlphaBeta:
    """Computes values of positions, and all plies that keep them.

    The transposition table serves later calls too.

    Args:
      rules: see `check_alphabeta`.
      node_limit: most positions that one call may search.
    """

    def __init__(self, rules: Rules, *, node_limit: int = NODE_LIMIT) -> None:
        check_alphabeta(rules)
        self.rules = rules
        self.size = rules.size
        self.node_limit = node_limit
        self.nodes = 0  # of the last call
        self._known: dict[int, _Bounds] = {}
        self._turns = _make_turns(rules.size)
        column = sum(1 << rules.size * row for row in range(rules.size))
        self._all_down = (1 << rules.size * (rules.size - 1)) - 1
        self._all_right = sum(column << place for place in range(rules.size - 1))
        self._needs_room = rules.stay_needs_room
        self._tie = LOSS if MOVER_LOSES in rules.tie else DRAW

    def value(self, board: Board) -> int:
        """WIN, DRAW or LOSS of the player to move, who must have a legal turn.

        Raises:
          UsageError: the search exceeds the limit of nodes.
        """
        self._begin()
        return self._ask(board)

    def optimal_slots(self, board: Board) -> list[int]:
        """The slots of all plays that keep the value, in rising order. Raises as `value` does."""
        self._begin()
        value, plies = self._ask(board), self.plies(board)
        if value > LOSS:
            plies = [ply for ply in plies if self._keeps(ply.board, value)]
        return [ply.slot for ply in plies]

    def keeps(self, board: Board, slot: int, value: int) -> bool:
        """Whether a legal play keeps the value, which is that of `value`. Raises as that does."""
        self._begin()
        after = next(ply.board for ply in self.plies(board) if ply.slot == slot)
        return value == LOSS or self._keeps(after, value)

    def can_err(self, board: Board, value: int) -> bool:
        """Whether some legal play loses value, which is that of `value`. Raises as that does."""
        self._begin()
        if value == LOSS:
            return False
        return not all(self._keeps(after, value) for after in reversed(self._ordered(board)))

    def plies(self, board: Board) -> list[Ply]:
        """Every legal play of the player to move, in order of slots."""
        found = []
        for move, end in self._ends(board):
            for side, (horizontal, vertical) in self._walls_at(board, end):
                slot = move * NUM_SIDES + side
                found.append(Ply(slot, Board(horizontal, vertical, end, board.other)))
        return found

    def _begin(self) -> None:
        self.nodes = 0
        if len(self._known) > self.node_limit:
            self._known.clear()

    def _ask(self, board: Board) -> int:
        try:
            return self._search(board, LOSS, WIN)
        except _OutOfNodesError:
            raise self._too_large(board) from None

    def _keeps(self, board: Board, value: int) -> bool:
        try:
            return self._after(board, value - 1, value) >= value
        except _OutOfNodesError:
            raise self._too_large(board) from None

    def _too_large(self, board: Board) -> UsageError:
        built = board.horizontal.bit_count() + board.vertical.bit_count()
        return UsageError(
            f"solver: a position with {built} walls on {self.size}x{self.size} cells needs more "
            f"than {self.node_limit:,} nodes of alpha-beta search"
        )

    def _search(self, board: Board, low: int, high: int) -> int:
        """The value for the player to move if it lies strictly between the bounds, else a bound of
        the value on the same side of them (fail-soft)."""
        key = self._key(board)
        known = self._known.get(key, _Bounds(LOSS, WIN))
        if known.low >= high or known.low == known.high:
            return known.low
        if known.high <= low:
            return known.high
        low, high = max(low, known.low), min(high, known.high)
        self.nodes += 1
        if self.nodes > self.node_limit:
            raise _OutOfNodesError
        best = LOSS
        for after in self._ordered(board):
            best = max(best, self._after(after, max(low, best), high))
            if best >= high:
                break
        known = self._known.get(key, known)
        if best >= high:
            known = _Bounds(max(known.low, best), known.high)
        elif best <= low:
            known = _Bounds(known.low, min(known.high, best))
        else:
            known = _Bounds(best, best)
        self._known[key] = known
        return best

    def _after(self, board: Board, low: int, high: int) -> int:
        """The value of a play that led to this board, for the player who made it."""
        own, other = 1 << board.own, 1 << board.other
        region = self._region(board, own)
        # The stones are apart: the game is over, and the larger region wins.
        if not region & other:
            lead = region.bit_count() - self._region(board, other).bit_count()
            return (lead > 0) - (lead < 0) or self._tie
        # A player without a legal turn is skipped; if neither has one, the tie rule decides.
        turned = Board(board.horizontal, board.vertical, board.other, board.own)
        if not self._needs_room or self._has_room(turned):
            return -self._search(turned, -high, -low)
        return self._search(board, low, high) if self._has_room(board) else self._tie

    def _ordered(self, board: Board) -> list[Board]:
        boards = dict.fromkeys(ply.board for ply in self.plies(board))
        return sorted(boards, key=self._lead, reverse=True)

    def _lead(self, board: Board) -> int:
        """Cells that the player who moved reaches first, minus those that the other does."""
        own = mine = 1 << board.own
        other = theirs = 1 << board.other
        while True:
            own_next = self._step(board, own) & ~theirs
            other_next = self._step(board, other) & ~mine
            if own_next | mine == mine and other_next | theirs == theirs:
                break
            fresh_own, fresh_other = own_next & ~mine, other_next & ~theirs
            theirs |= fresh_other
            mine |= fresh_own & ~fresh_other
            own, other = fresh_own, fresh_other
        return mine.bit_count() - theirs.bit_count()

    def _step(self, board: Board, cells: int) -> int:
        """The cells and their neighbours across open sides."""
        down = self._all_down & ~board.horizontal
        right = self._all_right & ~board.vertical
        return step(down, right, cells, self.size)

    def _region(self, board: Board, cells: int) -> int:
        while (grown := self._step(board, cells)) != cells:
            cells = grown
        return cells

    def _has_room(self, board: Board) -> bool:
        own = 1 << board.own
        return bool(self._step(board, own) & ~own & ~(1 << board.other))

    def _ends(self, board: Board) -> list[tuple[int, int]]:
        """Move and cell of each end of a move of the stone to move."""
        own, taken = 1 << board.own, 1 << board.other
        once = self._step(board, own) & ~taken
        reached = self._step(board, once & ~own) & ~taken
        if self._needs_room and once == own:
            return []
        return [
            (move, end)
            for move, end in _make_ends(self.size)[board.own]
            if (reached | own) >> end & 1
        ]

    def _walls_at(self, board: Board, end: int) -> list[tuple[int, tuple[int, int]]]:
        """For each legal wall: its side, and the horizontal and vertical walls after it."""
        found = []
        for side, is_row, bit in _make_sides(self.size)[end]:
            horizontal, vertical = board.horizontal, board.vertical
            if not (horizontal if is_row else vertical) & bit:
                after = (horizontal | bit, vertical) if is_row else (horizontal, vertical | bit)
                found.append((side, after))
        return found

    def _key(self, board: Board) -> int:
        """One number for a board and its symmetries."""
        cells = self.size**2
        return min(
            (rows[board.horizontal] | columns[board.vertical]) << 2 * cells
            | places[board.own] << cells
            | places[board.other]
            for rows, columns, places in self._turns
        )


@functools.cache
def _make_ends(size: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each cell, move and end of every move that stays on the board."""
    return tuple(
        tuple(
            (move, (row + down) * size + column + across)
            for move, (down, across) in enumerate(MOVE_OFFSETS)
            if 0 <= row + down < size and 0 <= column + across < size
        )
        for row in range(size)
        for column in range(size)
    )


@functools.cache
def _make_sides(size: int) -> tuple[tuple[tuple[int, bool, int], ...], ...]:
    """For each cell and inner side: the side, whether its wall is horizontal, the wall's bit."""
    found = []
    for cell in range(size**2):
        row, column = divmod(cell, size)
        sides = []
        for side, (down, across) in enumerate(SIDE_OFFSETS):
            if 0 <= row + down < size and 0 <= column + across < size:
                first = min(cell, cell + down * size + across)
                sides.append((side, side in (UP, DOWN), 1 << first))
        found.append(tuple(sides))
    return tuple(found)


@functools.cache
def _make_turns(size: int) -> tuple[tuple[list[int], list[int], list[int]], ...]:
    """For each symmetry three tables: the image of each set of horizontal walls and of each set of
    vertical walls, as one number with the vertical walls in the higher bits, and the image of each
    cell as a bit."""
    cells = size**2
    tables = []
    for symmetry in range(NUM_SYMMETRIES):
        place = [
            row * size + column
            for row, column in (turn_cell(symmetry, size, *divmod(c, size)) for c in range(cells))
        ]
        below = [_turned_wall(place, cell, cell + size, cells) for cell in range(cells - size)]
        beside = [
            _turned_wall(place, cell, cell + 1, cells) if cell % size < size - 1 else 0
            for cell in range(cells)
        ]
        tables.append((_by_set(below), _by_set(beside), [1 << cell for cell in place]))
    return tuple(tables)


def _turned_wall(place: list[int], first: int, second: int, cells: int) -> int:
    low, high = sorted((place[first], place[second]))
    return 1 << (low + cells if high - low == 1 else low)


def _by_set(images: list[int]) -> list[int]:
    """For every set, as a number, the union of the images of its members."""
    union = [0]
    for image in images:
        union += [known | image for known in union]
    return union
