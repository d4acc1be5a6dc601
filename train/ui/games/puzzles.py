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
      key: of the puzzle in `puzzles_by_key`.
      puzzle: position and solution.
      mover: the player to move.
      state: OPEN until it is SOLVED or its solution is SHOWN.
      tried: wrong moves as public actions, the last one last.
    """

    key: str
    puzzle: Puzzle
    mover: int
    state: str = OPEN
    tried: list[int] = dataclasses.field(default_factory=list)


def puzzles_by_key(puzzles: Sequence[Puzzle]) -> dict[str, Puzzle]:
    """The puzzles whose board fills its grid, as all boards of a page do, the easiest first, by
    keys that follow from the position and its solution, whatever the file."""
    keyed = {}
    for puzzle in sorted(puzzles, key=lambda puzzle: puzzle.difficulty):
        record = puzzle.record
        if puzzle.grid == record.rules.size:
            fields = (record.rules.to_dict(), record.actions, puzzle.solution)
            keyed[hashlib.sha256(repr(fields).encode()).hexdigest()[:12]] = puzzle
    return keyed
