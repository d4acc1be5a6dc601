"""Puzzles to solve at a board: the one move that wins, and the moves that were tried."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

from train.puzzles.puzzle_file import Puzzle

OPEN, SOLVED, SHOWN = "open", "solved", "shown"


@dataclasses.dataclass
class PuzzleTask:
    """A puzzle in the hands of a person.

    Attributes:
      key: names the puzzle in any file.
      puzzle: position and solution.
      mover: the player to move.
      state: OPEN until it is SOLVED or its solution is SHOWN.
      tried: wrong moves as public actions, the last one last.
    """

    key: str
    puzzle: Puzzle
    mover: int = 0
    state: str = OPEN
    tried: list[int] = dataclasses.field(default_factory=list)

    @property
    def line(self) -> tuple[int, ...]:
        """The solution and the moves expected after it, as public actions."""
        return self.puzzle.line or (self.puzzle.solution,)

    def note(self, action: int) -> None:
        """Note a wrong move as the last one tried."""
        self.tried = [each for each in self.tried if each != action] + [action]


class PuzzleBook:
    """Puzzles by key, the easiest first."""

    def __init__(self, puzzles: Sequence[Puzzle] = ()) -> None:
        """Keep the puzzles whose board fills its grid, as all boards of a page do."""
        usable = [puzzle for puzzle in puzzles if puzzle.grid == puzzle.record.rules.size]
        ordered = sorted(usable, key=lambda puzzle: puzzle.difficulty)
        self.puzzles = {_key_of(puzzle): puzzle for puzzle in ordered}

    def pose(self, key: str) -> PuzzleTask:
        """Return a puzzle to solve.

        Raises:
          ValueError: there is no such puzzle.
        """
        if key not in self.puzzles:
            count = len(self.puzzles)
            raise ValueError(f"puzzle: {key!r} is not one of the {count} puzzles here")
        return PuzzleTask(key, self.puzzles[key])


def _key_of(puzzle: Puzzle) -> str:
    """A name that follows from the position and its solution."""
    fields = (puzzle.record.rules.to_dict(), puzzle.record.actions, puzzle.solution)
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
