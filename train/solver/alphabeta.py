"""Solves positions with one stone a player by alpha-beta search, on the host.

A transposition table keeps bounds of positions by walls and stones, up to the eight symmetries; the
colours of walls do not matter. The search tries first the plies after which the player is nearer to
more cells than the opponent. A 4x4 board without walls takes 400,000 nodes: less than a second of
one CPU core where numba is installed, which compiles the search as it stands, else about a minute.

Sets of cells are the bits of integers, openings as in `train.solver.contest`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from train.runtime.errors import UsageError
from train.solver import compiled
from train.solver.boards import DRAW, LOSS, WIN, Board, LegalPlay, plays
from train.solver.contest import flood, nearer, popcount, step, turns
from train.solver.symmetry import Turns, canonical, make_turns
from wallgo_jax.game.rules import MOVER_LOSES, Rules

NODE_LIMIT = 3_000_000
_OTHER, _AGAIN = 2, 3
"""Who moves after a play, where a game that is over has its value: the other player, or the same
again."""
_LEVELS = WIN - LOSS + 1
_UNKNOWN = _LEVELS * (WIN - LOSS)
"""The bounds LOSS and WIN, as `known` keeps them: (low - LOSS) + _LEVELS * (high - LOSS)."""


class _Solver(NamedTuple):
    """The rules, the turned sets, and what is known: plain values and what numba has of them."""

    size: int
    needs_room: bool  # whether a stone must walk
    tie: int  # value of a level end for the player who moved
    turns: Turns
    known: Any  # int -> int, the bounds of positions by `_key`
    nodes: Any  # int[2], the nodes of the last call, and the most that it may have


class AlphaBeta:
    """Computes values of positions, and all plies that keep them.

    The transposition table serves later calls too.

    Args:
      rules: of `check_solvable`.
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
        tie, known = LOSS if MOVER_LOSES in rules.tie else DRAW, self._make_known()
        self._solver = _Solver(rules.size, rules.stay_needs_room, tie, turns, known, nodes)

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
        if len(self._solver.known) > self._solver.nodes[1]:
            self._solver = self._solver._replace(known=self._make_known())
        solver, (own, other) = self._solver, _stones(board)
        solver.nodes[0] = 0
        try:
            value = self._find(solver, board.down, board.right, own, other, LOSS, WIN)
            best = self.plays(board) if needs_plays else []
            if value > LOSS:
                best = [play for play in best if self._keeps(play.board, value)]
        except OverflowError:
            raise UsageError(
                f"solver: a position with {board.num_walls(self.size)} walls on "
                f"{self.size}x{self.size} cells needs more than {solver.nodes[1]:,} nodes of "
                "alpha-beta search"
            ) from None
        return value, [play.slot for play in best]

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

    def _keeps(self, after: Board, value: int) -> bool:
        """Whether a play to this board is worth at least that value for the player who made it."""
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
    own, other = (board.stones[player][0] for player in (board.player, 1 - board.player))
    return 1 << own, 1 << other


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
        cells, best = solver.size**2, LOSS
        for play in _ordered(solver, down, right, own, other):
            end, after_right, after_down = _unpack(play, cells)
            least = max(low, best)
            value = _turn_after(solver, after_down, after_right, end, other)
            if value == _OTHER:
                value = -search(solver, after_down, after_right, other, end, -high, -least)
            elif value == _AGAIN:
                value = search(solver, after_down, after_right, end, other, least, high)
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
    region = flood(down, right, own, -1, solver.size)
    # The stones are apart: the game is over, and the larger region wins.
    if not region & other:
        lead = popcount(region) - popcount(flood(down, right, other, -1, solver.size))
        return WIN if lead > 0 else LOSS if lead < 0 else solver.tie
    # A player without a legal turn is skipped; if neither has one, the tie rule decides.
    if not solver.needs_room or _can_walk(down, right, other, own, solver.size):
        return _OTHER
    return _AGAIN if _can_walk(down, right, own, other, solver.size) else solver.tie


def _can_walk(down: int, right: int, own: int, other: int, size: int) -> bool:
    """Whether a stone can leave its cell."""
    return step(down, right, own, size) & ~own & ~other != 0


def _ordered(solver: _Solver, down: int, right: int, own: int, other: int) -> list[int]:
    """The boards after each play, as `_unpack` reads them, the largest lead in `nearer` cells
    first."""
    cells, boards = solver.size**2, [0 for _ in range(0)]
    if not solver.needs_room or _can_walk(down, right, own, other, solver.size):
        for end, row, column in turns(down, right, own, own | other, solver.size):
            after_down, after_right = down & ~row, right & ~column
            lead = nearer(after_down, after_right, end, other, solver.size) + cells
            boards.append(((lead << cells | after_down) << cells | after_right) << cells | end)
    boards.sort(reverse=True)
    return boards


def _unpack(play: int, cells: int) -> tuple[int, int, int]:
    """The stone that moved, and the horizontal and vertical openings after the play."""
    every = (1 << cells) - 1
    return play & every, play >> cells & every, play >> 2 * cells & every


def _key(solver: _Solver, down: int, right: int, own: int, other: int) -> int:
    """One number for a board and its symmetries."""
    cells = solver.size**2
    walls, first, second = canonical(solver.turns, down, right, own, other)
    return walls * cells**2 + (first - cells) * cells + second - cells
