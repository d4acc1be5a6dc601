"""Solves positions with one stone a player by alpha-beta search, on the host.

A transposition table keeps bounds of positions by walls and stones, up to the eight symmetries; the
colours of walls do not matter. The search tries first the plies after which the player is nearer to
more cells than the opponent. On 4x4 a board without walls takes about half a minute of one CPU core
(400,000 nodes), one with two walls less than ten seconds, one with five a fifth of a second.
"""

import functools
from typing import NamedTuple

from train.runtime.errors import UsageError
from train.solver.boards import DRAW, LOSS, WIN, Board, LegalPlay, plays
from train.solver.contest import flood, nearer, step
from wallgo_jax.board.geometry import NUM_SYMMETRIES, turn_cell
from wallgo_jax.game.rules import MOVER_LOSES, Rules

NODE_LIMIT = 3_000_000


class _Bounds(NamedTuple):
    low: int
    high: int


class AlphaBeta:
    """Computes values of positions, and all plies that keep them.

    The transposition table serves later calls too.

    Args:
      rules: of `check_solvable`.
      node_limit: most positions that one call may search.
    """

    def __init__(self, rules: Rules, *, node_limit: int = NODE_LIMIT) -> None:
        self.rules = rules
        self.size = rules.size
        self.node_limit = node_limit
        self.nodes = 0  # of the last call
        self._built = 0  # walls of the last call's board
        self._known: dict[int, _Bounds] = {}
        self._turns = _make_turns(rules.size)
        self._needs_room = rules.stay_needs_room
        self._tie = LOSS if MOVER_LOSES in rules.tie else DRAW

    def value(self, board: Board) -> int:
        """WIN, DRAW or LOSS of the player to move, who must have a legal turn.

        Raises:
          UsageError: the search exceeds the limit of nodes.
        """
        self._begin(board)
        return self._search(board, LOSS, WIN)

    def optimal_slots(self, board: Board) -> list[int]:
        """The slots of all plays that keep the value, in rising order. Raises as `value` does."""
        self._begin(board)
        value, best = self._search(board, LOSS, WIN), self.plays(board)
        if value > LOSS:
            best = [play for play in best if self._keeps(play.board, value)]
        return [play.slot for play in best]

    def keeps(self, board: Board, slot: int, value: int) -> bool:
        """Whether a legal play keeps the value, which is that of `value`. Raises as that does."""
        self._begin(board)
        after = next(play.board for play in self.plays(board) if play.slot == slot)
        return value == LOSS or self._keeps(after, value)

    def can_err(self, board: Board, value: int) -> bool:
        """Whether some legal play loses value, which is that of `value`. Raises as that does."""
        self._begin(board)
        if value == LOSS:
            return False
        return not all(self._keeps(after, value) for after in reversed(self._ordered(board)))

    def plays(self, board: Board) -> list[LegalPlay]:
        """Every legal play of the player to move, in order of slots."""
        if self._needs_room and not self._has_room(board, board.player):
            return []
        return plays(board, self.size)

    def _begin(self, board: Board) -> None:
        self.nodes, self._built = 0, board.num_walls(self.size)
        if len(self._known) > self.node_limit:
            self._known.clear()

    def _keeps(self, board: Board, value: int) -> bool:
        return self._after(board, value - 1, value) >= value

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
            raise UsageError(
                f"solver: a position with {self._built} walls on {self.size}x{self.size} cells "
                f"needs more than {self.node_limit:,} nodes of alpha-beta search"
            )
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
        down, right, ((first,), (second,)), player = board
        own, other = (1 << second, 1 << first) if player == 0 else (1 << first, 1 << second)
        region = flood(down, right, own, -1, self.size)
        # The stones are apart: the game is over, and the larger region wins.
        if not region & other:
            others = flood(down, right, other, -1, self.size)
            lead = region.bit_count() - others.bit_count()
            return (lead > 0) - (lead < 0) or self._tie
        # A player without a legal turn is skipped; if neither has one, the tie rule decides.
        if not self._needs_room or self._has_room(board, player):
            return -self._search(board, -high, -low)
        again = board._replace(player=1 - player)
        return self._search(again, low, high) if self._has_room(board, 1 - player) else self._tie

    def _ordered(self, board: Board) -> list[Board]:
        boards = dict.fromkeys(play.board for play in self.plays(board))
        return sorted(boards, key=self._lead, reverse=True)

    def _lead(self, board: Board) -> int:
        """Cells that the player who moved reaches first, minus those that the other does."""
        down, right, ((first,), (second,)), player = board
        lead = nearer(down, right, 1 << first, 1 << second, self.size)
        return lead if player else -lead

    def _has_room(self, board: Board, player: int) -> bool:
        """Whether a player's stone can walk."""
        own, taken = (1 << board.stones[each][0] for each in (player, 1 - player))
        return bool(step(board.down, board.right, own, self.size) & ~own & ~taken)

    def _key(self, board: Board) -> int:
        """One number for a board and its symmetries."""
        cells = self.size**2
        own, other = (board.stones[player][0] for player in (board.player, 1 - board.player))
        return min(
            (rows[board.down] | columns[board.right]) << 2 * cells
            | places[own] << cells
            | places[other]
            for rows, columns, places in self._turns
        )


@functools.cache
def _make_turns(size: int) -> tuple[tuple[list[int], list[int], list[int]], ...]:
    """For each symmetry three tables: the image of each set of vertical openings and of each set of
    horizontal ones, as one number with the horizontal ones in the higher bits, and the image of
    each cell as a bit."""
    cells = size**2
    tables = []
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
        tables.append((_by_set(below), _by_set(beside), [1 << cell for cell in place]))
    return tuple(tables)


def _turned_opening(place: list[int], first: int, second: int, cells: int) -> int:
    low, high = sorted((place[first], place[second]))
    return 1 << (low + cells if high - low == 1 else low)


def _by_set(images: list[int]) -> list[int]:
    """For every set, as a number, the union of the images of its members."""
    union = [0]
    for image in images:
        union += [known | image for known in union]
    return union
