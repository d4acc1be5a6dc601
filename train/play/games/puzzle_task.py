"""A puzzle that is set at a table: the position, the one move that wins there, what was tried."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

from train.puzzles.puzzle_file import Puzzle
from wallgo_jax.notation import format_action

OPEN, SOLVED, SHOWN = "open", "solved", "shown"


@dataclasses.dataclass
class PuzzleTask:
    """A puzzle in the hands of a person.

    Attributes:
      key: names the puzzle wherever it stands in whatever file.
      puzzle: the position, its solution and how hard it is.
      state: OPEN until it is SOLVED or its solution is SHOWN.
      tried: wrong moves, public actions in the order of trying.
    """

    key: str
    puzzle: Puzzle
    state: str = OPEN
    tried: list[int] = dataclasses.field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether the solution is still to be found."""
        return self.state == OPEN

    def name_of(self, action: int) -> str:
        """A public action in human notation."""
        return format_action(action, grid=self.puzzle.grid)

    def to_dict(self) -> dict[str, Any]:
        """What a page is told; the solution only when it is known."""
        puzzle = self.puzzle
        told: dict[str, Any] = {
            "key": self.key,
            "difficulty": puzzle.difficulty,
            "state": self.state,
            "tried": [self.name_of(action) for action in self.tried],
        }
        if self.is_open:
            return told
        played = None if puzzle.played is None else self.name_of(puzzle.played)
        return told | {
            "solution": self.name_of(puzzle.solution),
            "chance": round(puzzle.chance, 3),
            "nextBest": round(puzzle.next_best, 3),
            "played": played,
        }


class PuzzleBook:
    """The puzzles that a server offers, the easiest first."""

    def __init__(self, puzzles: Sequence[Puzzle] = ()) -> None:
        """Keep the puzzles of the page's grid, in which a board fills its grid."""
        usable = [puzzle for puzzle in puzzles if puzzle.grid == puzzle.record.rules.size]
        ordered = sorted(usable, key=lambda puzzle: puzzle.difficulty)
        self._puzzles = {key_of(puzzle): puzzle for puzzle in ordered}

    def __len__(self) -> int:
        return len(self._puzzles)

    def items(self) -> list[tuple[str, Puzzle]]:
        """All puzzles with their keys, in the order in which they are offered."""
        return list(self._puzzles.items())

    def task(self, key: object) -> PuzzleTask:
        """Set a puzzle.

        Raises:
          ValueError: there is no such puzzle.
        """
        if not isinstance(key, str) or key not in self._puzzles:
            raise ValueError(f"puzzle: {key!r} is not one of the {len(self)} puzzles here")
        return PuzzleTask(key, self._puzzles[key])


def key_of(puzzle: Puzzle) -> str:
    """A name that follows from the position and its solution."""
    fields = (puzzle.record.rules.to_dict(), puzzle.record.actions, puzzle.solution)
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
