"""A puzzle that is set at a table: the one move that wins there, and what was tried."""

from __future__ import annotations

import dataclasses
from typing import Any

from wallgo_jax.notation import format_action

OPEN, SOLVED, SHOWN = "open", "solved", "shown"


@dataclasses.dataclass
class PuzzleTask:
    """A puzzle in the hands of a person. Moves are public actions.

    Attributes:
      key: names the puzzle wherever it stands in whatever file.
      grid: side length of the grid that numbers the actions.
      difficulty: 1 to 5.
      line: the solution and what is expected to follow.
      chance: to win with the solution, 0 to 1.
      next_best: chance to win with the best other move.
      played: what was played in the game that the puzzle is from, or None.
      state: OPEN until it is SOLVED or its solution is SHOWN.
      tried: wrong moves, the last one last.
    """

    key: str
    grid: int
    difficulty: int
    line: tuple[int, ...]
    chance: float
    next_best: float
    played: int | None
    state: str = OPEN
    tried: list[int] = dataclasses.field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether the solution is still to be found."""
        return self.state == OPEN

    @property
    def solution(self) -> int:
        """The one move that wins."""
        return self.line[0]

    def note(self, action: int) -> None:
        """Note a wrong move as the last one tried."""
        if action in self.tried:
            self.tried.remove(action)
        self.tried.append(action)

    def to_dict(self) -> dict[str, Any]:
        """What a page is told; the solution only when it is known."""
        told: dict[str, Any] = {
            "key": self.key,
            "difficulty": self.difficulty,
            "state": self.state,
            "tried": [self._text(action) for action in self.tried],
        }
        if self.is_open:
            return told
        return told | {
            "solution": self._text(self.solution),
            "chance": round(self.chance, 3),
            "nextBest": round(self.next_best, 3),
            "played": None if self.played is None else self._text(self.played),
        }

    def _text(self, action: int) -> str:
        return format_action(action, grid=self.grid)
