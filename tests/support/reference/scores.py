"""A slow solver in plain Python for results and margins together, by the slow referee alone."""

from collections.abc import Mapping
from typing import Any

from tests.support.reference.referee import Game
from tests.support.reference.solver import copy_of


class ScoreSolver:
    """Scores of two players' games after setup, memoised.

    A score is the lead in cells plus the result (1, 0, -1), for one player.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules = rules
        self._known: dict[Any, int] = {}

    def scores(self, game: Game) -> dict[int, int]:
        """The score of each legal action for the player to move."""
        return {action: self._after(game, action) for action in game.turns()}

    def _after(self, game: Game, action: int) -> int:
        mover, after = game.player, copy_of(game)
        paid = after.act(action)
        if after.over:
            return final_score(after, paid, mover)
        stones = tuple(map(frozenset, after.board.stones))
        key = frozenset(after.board.walls), stones, after.player
        if key not in self._known:
            self._known[key] = max(self.scores(after).values())
        return self._known[key] if after.player == mover else -self._known[key]


def final_score(game: Game, paid: list[float], player: int) -> int:
    """A player's score of a game that is over."""
    cells = [sum(map(len, regions)) for regions in game.board.owned_regions()]
    return cells[player] - cells[1 - player] + int(paid[player])


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
