"""A slow solver in plain Python: every position up to wall colour, by the slow referee alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.support.reference.referee import Board, Cell, Edge, Game

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


class Solver:
    """Values for two players, memoised.

    Attributes:
      solved: by position, all that were met before the end of a game.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules = rules
        self.solved: dict[Key, Solved] = {}
        self._afters: dict[Key, int] = {}

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
            value = int(paid[game.player]) if after.over else self.solve(after).value
            turned = not after.over and after.player != game.player
            self._afters[key] = -value if turned else value
        return self._afters[key]


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
