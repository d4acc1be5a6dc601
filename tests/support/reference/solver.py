"""A slow solver in plain Python: every position up to wall colour, by the slow referee alone."""

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.support.reference.referee import DOWN, RIGHT, Board, Cell, Edge, Game, edge

Key = tuple[frozenset[Edge], tuple[frozenset[Cell], ...], int]
"""Walls, stones by player, player to move."""


class Solved(NamedTuple):
    """The value to the player to move, and the turns that keep it: (stone's cell or None in setup,
    cell where it ends, wall or None)."""

    value: int
    best: frozenset[tuple[Cell | None, Cell, Edge | None]]


def key_of(game: Game) -> Key:
    """The key under which the solver keeps a position."""
    stones = tuple(frozenset(own) for own in game.board.stones)
    return frozenset(game.board.walls), stones, game.player


def result_of(game: Game, paid: list[float], player: int) -> int:
    """A player's result of a game that is over: 1, 0 or -1."""
    return int(paid[player])


def score_of(game: Game, paid: list[float], player: int) -> int:
    """A player's lead in cells plus its result."""
    territory = game.territory()
    return territory[player] - territory[1 - player] + int(paid[player])


class Solver:
    """Values for two players, memoised.

    Attributes:
      solved: by position, all that were met before the end of a game.
    """

    def __init__(
        self,
        rules: Mapping[str, Any],
        value_of: Callable[[Game, list[float], int], int] = result_of,
    ) -> None:
        self.rules, self._value_of = rules, value_of
        self.solved: dict[Key, Solved] = {}
        self._afters: dict[Key, int] = {}

    def values(self, game: Game) -> dict[int, int]:
        """The value of each legal action to the player to move."""
        return {action: self._after(game, action) for action in game.turns()}

    def solve(self, game: Game) -> Solved:
        """The value of a game that is not over."""
        key = key_of(game)
        if key not in self.solved:
            qvalue = {}
            for action, (stone, end, wall) in game.turns().items():
                own = game.board.stones[game.player]
                origin = None if wall is None else own[stone]
                qvalue[origin, end, wall] = self._after(game, action)
            value = max(qvalue.values())
            best = frozenset(turn for turn, each in qvalue.items() if each == value)
            self.solved[key] = Solved(value, best)
        return self.solved[key]

    def _after(self, game: Game, action: int) -> int:
        """The value of an action to the player who takes it."""
        stone, end, wall = game.turns()[action]
        stones = [set(own) for own in game.board.stones]
        if wall is not None:
            stones[game.player].remove(game.board.stones[game.player][stone])
        stones[game.player].add(end)
        walls = frozenset(game.board.walls) | ({wall} if wall is not None else set())
        # The player who acts is part of the key: who moves next and who moved last hang on it.
        key = walls, tuple(map(frozenset, stones)), game.player
        if key not in self._afters:
            after = copy_of(game)
            paid = after.act(action)
            over = after.over
            value = self._value_of(after, paid, game.player) if over else self.solve(after).value
            turned = not over and after.player != game.player
            self._afters[key] = -value if turned else value
        return self._afters[key]


class Prover:
    """Proves bounds of values for two players, up to the symmetries of the square, by the slow
    referee alone.

    Attributes:
      known: by position and target, whether the player to move reaches at least the target.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[Any, int], bool] = {}

    def reaches(self, game: Game, target: int) -> bool:
        """Whether the player to move of a game that is not over reaches at least the target."""
        key = _turned_key(game), target
        if key not in self.known:
            afters: dict[Any, tuple[int, Game]] = {}
            for action in game.turns():
                after = copy_of(game)
                paid = after.act(action)
                if after.over and paid[game.player] >= target:
                    self.known[key] = True
                    return True
                if not after.over:
                    afters.setdefault(_turned_key(after), (_lead(after, game.player), after))
            ordered = sorted(afters.values(), key=lambda pair: -pair[0])
            self.known[key] = any(self._keeps(game, after, target) for _, after in ordered)
        return self.known[key]

    def _keeps(self, game: Game, after: Game, target: int) -> bool:
        if after.player == game.player:
            return self.reaches(after, target)
        return not self.reaches(after, 1 - target)


def result_bounds(game: Game, plies: int, low: int = -1, high: int = 1) -> tuple[int, int]:
    """Least and greatest result of the player to move, after a search so many plies deep.

    The search knows nothing of a position that it leaves open. It cuts where both bounds fall on
    one side of the window.
    """
    least, most = -1, -1
    for action in game.turns():
        first, last = play_bounds(game, action, plies, max(low, least), high)
        least, most = max(least, first), max(most, last)
        if least >= high:
            return least, 1
    return least, most


def play_bounds(
    game: Game, action: int, plies: int, low: int = -1, high: int = 1
) -> tuple[int, int]:
    """The same of one action."""
    mover, after = game.player, copy_of(game)
    paid = after.act(action)
    if after.over:
        return int(paid[mover]), int(paid[mover])
    if plies <= 1:
        return -1, 1
    assert after.player != mover
    first, last = result_bounds(after, plies - 1, -high, -low)
    return -last, -first


def _turned_key(game: Game) -> Any:
    """A key that all turned copies of a position share."""
    walls, stones, player = key_of(game)
    copies = [
        (sum(bits[wall] for wall in walls), [sum(bits[cell] for cell in own) for own in stones])
        for bits in _turned_bits(game.rules["size"])
    ]
    least = min(copies)
    return least[0], *least[1], player


@functools.cache
def _turned_bits(size: int) -> list[dict[Any, int]]:
    """For each symmetry of the square the bit of each turned cell and edge."""
    cells = [(row, column) for row in range(size) for column in range(size)]
    edges = [edge(cell, side) for cell in cells for side in (DOWN, RIGHT)]
    number = {each: 1 << place for place, each in enumerate([*cells, *edges])}
    tables = []
    for swap, flip, mirror in itertools.product((False, True), repeat=3):

        def turned(cell: Cell, swap=swap, flip=flip, mirror=mirror) -> Cell:
            row, column = cell[::-1] if swap else cell
            return size - 1 - row if flip else row, size - 1 - column if mirror else column

        bits = {cell: number[turned(cell)] for cell in cells}
        inner = [each for each in edges if each <= frozenset(cells)]
        tables.append(bits | {each: number[frozenset(map(turned, each))] for each in inner})
    return tables


def _lead(game: Game, player: int) -> int:
    """Cells that a player's stones are nearer to, less those that the other's are."""
    own, other = (game.board.distances(who) for who in (player, 1 - player))
    far = len(game.board.cells())
    gaps = [own.get(cell, far) - other.get(cell, far) for cell in game.board.cells()]
    return sum(gap < 0 for gap in gaps) - sum(gap > 0 for gap in gaps)


def copy_of(game: Game) -> Game:
    """A game that can go on apart from the first."""
    copy = Game.__new__(Game)
    copy.__dict__ |= game.__dict__
    copy.walls_left, copy.past = list(game.walls_left), list(game.past)
    return copy


def game_at(rules: Mapping[str, Any], board: Board, player: int) -> Game:
    """A game that stands at a position after setup."""
    game = Game(rules)
    game.board, game.player, game.over = board, player, False
    game.past = [board] * (len(rules["order"]) + len(board.walls))
    game._turns = None
    return game
