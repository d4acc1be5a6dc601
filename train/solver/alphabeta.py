"""Solves positions of small boards by alpha-beta search, on the host.

A transposition table keeps bounds of positions by walls and stones, up to the eight symmetries; the
colours of walls do not matter. The search tries first the plies after which the player is nearer to
more cells than the opponent. A 4x4 board without walls takes 400,000 nodes: less than a second of
one CPU core where numba is installed, which compiles the search as it stands, else about a minute.

Sets of cells are the bits of integers, openings as in `train.solver.contest`.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from train.runtime.errors import UsageError
from train.solver import compiled
from train.solver.boards import LOSS, WIN, Board, LegalPlay, plays
from train.solver.contest import (
    Contest,
    Geometry,
    final_score,
    flood,
    geometry_of,
    nearer,
    popcount,
    step,
    turns,
)
from train.solver.symmetry import Turns, canonical, make_turns
from wallgo_jax.game.rules import Rules

NODE_LIMIT = 3_000_000
_OTHER = WIN + 1
_AGAIN = WIN + 2
"""Who moves after a play, where a game that is over has its value: the other player, or the same
again."""
_LEVELS = WIN - LOSS + 1
_UNKNOWN = _LEVELS * (WIN - LOSS)
"""The bounds LOSS and WIN, as `known` keeps them: (low - LOSS) + _LEVELS * (high - LOSS)."""


class _Solver(NamedTuple):
    """The rules, the turned sets, and what is known: plain values and what numba has of them."""

    geometry: Geometry
    needs_room: bool  # whether a stone must walk
    turns: Turns
    known: Any  # int -> int, the bounds of positions by `_key`
    nodes: Any  # int[2], the nodes of the last call, and the most that it may have


class AlphaBeta:
    """Computes values of positions, and all plies that keep them.

    The transposition table serves later calls too.

    Args:
      rules: of `check_solvable`. Where a stone must have room to stay, of one stone each.
      node_limit: most positions that one call may search.
      is_compiled: whether compiled code searches; None for where numba is installed. The result is
        the same.
    """

    def __init__(
        self, rules: Rules, *, node_limit: int = NODE_LIMIT, is_compiled: bool | None = None
    ) -> None:
        self.rules = rules
        self.size = rules.size
        if is_compiled is None:
            is_compiled = compiled.is_available(rules.size)
        self._find: Callable[..., int] = _compiled_search() if is_compiled else _search
        self._make_known: Callable[[], Any] = compiled.make_dict if is_compiled else dict
        turns = make_turns(rules.size, is_compiled=is_compiled)
        nodes = (np.array if is_compiled else list)([0, node_limit])
        self._solver = _Solver(
            geometry_of(rules), rules.stay_needs_room, turns, self._make_known(), nodes
        )

    @property
    def nodes(self) -> int:
        """Positions that the last call searched."""
        return int(self._solver.nodes[0])

    def value(self, board: Board) -> int:
        """WIN, DRAW or LOSS of the player to move, who must have a legal turn.

        Raises:
          UsageError: the search exceeds the limit of nodes.
        """
        return self.solve(board, needs_plays=False)[0]

    def optimal_slots(self, board: Board) -> list[int]:
        """The slots of all plays that keep the value, in rising order. Raises as `value` does."""
        return self.solve(board)[1]

    def solve(self, board: Board, *, needs_plays: bool = True) -> tuple[int, list[int]]:
        """The `value` of a board and, if they are needed, its `optimal_slots`."""
        with self._counted(board):
            own, other = _stones(board)
            value = self._find(self._solver, board.down, board.right, own, other, LOSS, WIN)
            best = self.plays(board) if needs_plays else []
            if value > LOSS:
                best = [play for play in best if self._keeps(play.board, value)]
        return value, [play.slot for play in best]

    def keeps(self, after: Board, value: int) -> bool:
        """Whether a play to this board is worth at least that value for the player who made it,
        whether or not it ended the game. Raises as `value` does."""
        with self._counted(after):
            return self._keeps(after, value)

    def plays(self, board: Board) -> list[LegalPlay]:
        """Every legal play of the player to move, in order of slots."""
        own, other = _stones(board)
        if self._solver.needs_room and not _can_walk(
            board.down, board.right, own, other, self.size
        ):
            return []
        return plays(board, self.size)

    def key(self, board: Board) -> int:
        """One number for a board and its symmetries."""
        return int(_key(self._solver, board.down, board.right, *_stones(board)))

    def is_over(self, after: Board) -> bool:
        """Whether the play that led to this board ended the game."""
        other, own = _stones(after)
        return _turn_after(self._solver, after.down, after.right, own, other) <= WIN

    @contextlib.contextmanager
    def _counted(self, board: Board) -> Iterator[None]:
        """Count the nodes of a call about a board, and refuse it beyond the limit."""
        if len(self._solver.known) > self._solver.nodes[1]:
            self._solver = self._solver._replace(known=self._make_known())
        self._solver.nodes[0] = 0
        try:
            yield
        except OverflowError:
            raise UsageError(
                f"solver: a position with {board.num_walls(self.size)} walls on "
                f"{self.size}x{self.size} cells needs more than {self._solver.nodes[1]:,} nodes of "
                "alpha-beta search"
            ) from None

    def _keeps(self, after: Board, value: int) -> bool:
        other, own = _stones(after)
        solver, low = self._solver, value - 1
        then = _turn_after(solver, after.down, after.right, own, other)
        if then == _OTHER:
            then = -self._find(solver, after.down, after.right, other, own, -value, -low)
        elif then == _AGAIN:
            then = self._find(solver, after.down, after.right, own, other, low, value)
        return then >= value


def _stones(board: Board) -> tuple[int, int]:
    """The stones of the player to move and of the other, as sets."""
    sets = [sum(1 << cell for cell in cells) for cells in board.stones]
    return sets[board.player], sets[1 - board.player]


def _make_search(compile_function: Callable[[Any], Any]) -> Callable[..., int]:
    """The search, as it stands or compiled; it calls itself by the name that it has here."""

    @compile_function
    def search(
        solver: _Solver, down: int, right: int, own: int, other: int, low: int, high: int
    ) -> int:
        """The value for the player to move if it lies strictly between the bounds, else a bound of
        the value on the same side of them (fail-soft); an OverflowError beyond the most nodes."""
        key = _key(solver, down, right, own, other)
        bounds = solver.known.get(key, _UNKNOWN)
        known_low, known_high = bounds % _LEVELS + LOSS, bounds // _LEVELS + LOSS
        if known_low >= high or known_low == known_high:
            return known_low
        if known_high <= low:
            return known_high
        low, high = max(low, known_low), min(high, known_high)
        solver.nodes[0] += 1
        if solver.nodes[0] > solver.nodes[1]:
            raise OverflowError
        best = LOSS
        for play in _ordered(solver, down, right, own, other):
            moved, after_right, after_down = _unpack(play, solver.turns.cells)
            least = max(low, best)
            value = _turn_after(solver, after_down, after_right, moved, other)
            if value == _OTHER:
                value = -search(solver, after_down, after_right, other, moved, -high, -least)
            elif value == _AGAIN:
                value = search(solver, after_down, after_right, moved, other, least, high)
            best = max(best, value)
            if best >= high:
                break
        bounds = solver.known.get(key, _UNKNOWN)
        known_low, known_high = bounds % _LEVELS + LOSS, bounds // _LEVELS + LOSS
        if best > low:
            known_low = max(known_low, best)
        if best < high:
            known_high = min(known_high, best)
        solver.known[key] = known_low - LOSS + _LEVELS * (known_high - LOSS)
        return best

    return search


_search = _make_search(lambda function: function)


@functools.cache
def _compiled_search() -> Callable[..., int]:
    """The search compiled by numba; takes some seconds."""
    helpers = (_key, _ordered, _unpack, _turn_after, _can_walk)
    return compiled.compile_recursive(_make_search, helpers)


def _turn_after(solver: _Solver, down: int, right: int, own: int, other: int) -> int:
    """Who moves after a play that led to this board, _OTHER or _AGAIN, or where the game is over
    its value for the player who made it, whose stone is `own`."""
    geometry = solver.geometry
    size = geometry.size
    everywhere = geometry.everywhere
    lead = 0
    most_own = 0
    most_other = 0
    is_contested = False
    left = own | other
    while left:
        part = flood(down, right, left & -left, everywhere, size)
        left &= ~part
        cells = popcount(part)
        if part & own and part & other:
            is_contested = True
        elif part & own:
            lead += cells
            most_own = max(most_own, cells)
        else:
            lead -= cells
            most_other = max(most_other, cells)
    # A player without a legal turn is skipped; if neither has one, the game is over, too.
    if is_contested and (not solver.needs_room or _can_walk(down, right, other, own, size)):
        return _OTHER
    if is_contested and _can_walk(down, right, own, other, size):
        return _AGAIN
    # As if player 0 had made the play.
    end = Contest(down, right, 0, 0, lead, most_own, most_other, 0, 0, 1)
    score = final_score(end, geometry)
    return (score > 0) - (score < 0)


def _can_walk(down: int, right: int, own: int, other: int, size: int) -> bool:
    """Whether a stone can leave its cell."""
    return step(down, right, own, size) & ~own & ~other != 0


def _ordered(solver: _Solver, down: int, right: int, own: int, other: int) -> list[int]:
    """The boards after each play, as `_unpack` reads them, the largest lead in `nearer` cells
    first."""
    cells = solver.turns.cells
    size = solver.geometry.size
    boards = [0 for _ in range(0)]
    if not solver.needs_room or _can_walk(down, right, own, other, size):
        for moved, row, column in turns(down, right, own, own | other, size):
            after_down, after_right = down & ~row, right & ~column
            lead = nearer(after_down, after_right, moved, other, size) + cells
            boards.append(((lead << cells | after_down) << cells | after_right) << cells | moved)
    boards.sort(reverse=True)
    return boards


def _unpack(play: int, cells: int) -> tuple[int, int, int]:
    """The player's stones, and the horizontal and vertical openings after the play."""
    every = (1 << cells) - 1
    return play & every, play >> cells & every, play >> 2 * cells & every


def _key(solver: _Solver, down: int, right: int, own: int, other: int) -> int:
    """One number for a board and its symmetries."""
    down, right, own, other = canonical(solver.turns, down, right, own, other)
    cells = solver.turns.cells
    return ((down << cells | right) << cells | own) << cells | other
