"""The puzzles that a server offers, and tables with one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from train.puzzles.puzzle_file import Puzzle
from train.ui.games.game_tree import GameTree
from train.ui.games.puzzle_task import PuzzleTask
from train.ui.games.seats import PERSON, Seat
from train.ui.games.table import Table
from train.ui.games.thinking import Thinker
from wallgo_jax.game.rules import name_of


class PuzzleBook:
    """Puzzles by key, the easiest first."""

    def __init__(self, puzzles: Sequence[Puzzle] = ()) -> None:
        """Keep the puzzles whose board fills its grid, as all boards of a page do."""
        usable = [puzzle for puzzle in puzzles if puzzle.grid == puzzle.record.rules.size]
        ordered = sorted(usable, key=lambda puzzle: puzzle.difficulty)
        self._puzzles = {key_of(puzzle): puzzle for puzzle in ordered}

    def __len__(self) -> int:
        return len(self._puzzles)

    def listing(self) -> list[dict[str, Any]]:
        """What a page is told to choose from."""
        return [
            {"key": key, "difficulty": puzzle.difficulty, "rules": name_of(puzzle.record.rules)}
            for key, puzzle in self._puzzles.items()
        ]

    def table(self, key: object, thinker: Thinker) -> Table:
        """Set a puzzle at a table of its own.

        Raises:
          ValueError: there is no such puzzle.
        """
        if not isinstance(key, str) or key not in self._puzzles:
            raise ValueError(f"puzzle: {key!r} is not one of the {len(self)} puzzles here")
        puzzle = self._puzzles[key]
        tree = GameTree(puzzle.record.rules)
        for action in puzzle.record.actions:
            tree.play(action)
        table = Table(tree, [Seat(PERSON)] * tree.rules.players, thinker)
        table.task = PuzzleTask(
            key=key,
            grid=puzzle.grid,
            difficulty=puzzle.difficulty,
            line=puzzle.line or (puzzle.solution,),
            chance=puzzle.chance,
            next_best=puzzle.next_best,
            played=puzzle.played,
        )
        return table


def key_of(puzzle: Puzzle) -> str:
    """A name that follows from the position and its solution."""
    fields = (puzzle.record.rules.to_dict(), puzzle.record.actions, puzzle.solution)
    return hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
