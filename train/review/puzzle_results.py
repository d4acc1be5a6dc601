"""What a search for puzzles and a check of them have found."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from train.review.puzzle_check import CheckedPuzzle
from train.review.puzzle_file import Puzzle
from train.runtime.display import Table
from train.runtime.results import Result
from wallgo_jax.notation import format_action

LEAST_CONFIRMED = 0.95


@dataclasses.dataclass(frozen=True, repr=False)
class FoundPuzzles(Result):
    """Puzzles of games.

    Attributes:
      puzzles: those that were kept.
      games: games that were searched.
      asked: puzzles that were asked for.
      is_interrupted: a signal ended the work.
    """

    puzzles: tuple[Puzzle, ...]
    games: int
    asked: int
    is_interrupted: bool = False
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)
    on_stop = f"the puzzles found so far are kept; {Result.on_stop}"

    def __repr__(self) -> str:
        return f"<{len(self.puzzles)} puzzles of {self.games} games>"

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each puzzle."""
        return [
            {"plies": len(each.record.actions), "solution": _move(each)} for each in self.puzzles
        ]

    def summary(self) -> dict[str, Any]:
        """What `puzzles --json` writes."""
        return {"puzzles": len(self.puzzles), "games": self.games, "asked": self.asked}

    def table(self) -> Table:
        """The puzzles, one a row."""
        rows = [[str(row["plies"]), row["solution"]] for row in self.rows()]
        return Table("Puzzles", ("after plies", "solution"), rows)

    def shown(self) -> list[Any]:
        """What `puzzles` prints: the puzzles where no file holds them."""
        table = [] if self.written else [self.table()]
        if len(self.puzzles) < self.asked and not self.is_interrupted:
            return [*table, Text(f"there are no more in these games; asked for {self.asked}")]
        return table


@dataclasses.dataclass(frozen=True)
class CheckedPuzzles(Result):
    """Puzzles with the verdict of a longer search, or of exact play."""

    checked: tuple[CheckedPuzzle, ...]

    @property
    def confirmed(self) -> int:
        """Puzzles that were confirmed."""
        return sum(each.is_confirmed for each in self.checked)

    @property
    def is_passed(self) -> bool:
        """Whether at least 95 % are confirmed."""
        return self.confirmed >= LEAST_CONFIRMED * len(self.checked)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each puzzle."""
        return [
            {"solution": _move(each.puzzle), "is_confirmed": each.is_confirmed}
            | {"chance": each.chance, "next_best": each.next_best}
            for each in self.checked
        ]

    def summary(self) -> dict[str, Any]:
        """What `check-puzzles --json` writes."""
        return {"puzzles": len(self.checked), "confirmed": self.confirmed}

    def table(self) -> Table:
        """The puzzles, one a row."""
        rows = [[row["solution"], "yes" if row["is_confirmed"] else "no"] for row in self.rows()]
        return Table("Checked puzzles", ("solution", "confirmed"), rows)

    def shown(self) -> list[Any]:
        """What `check-puzzles` prints: those that are refuted, and the share of the others."""
        total = len(self.checked)
        refuted = [
            Text(f"puzzle {number}: {_refuted(each)}")
            for number, each in enumerate(self.checked, start=1)
            if not each.is_confirmed
        ]
        share = f"{self.confirmed / total:.0%}"
        return [*refuted, Text(f"{self.confirmed} of {total} confirmed ({share})")]


def _move(puzzle: Puzzle) -> str:
    return format_action(puzzle.solution, grid=puzzle.grid)


def _refuted(each: CheckedPuzzle) -> str:
    """Why a check does not confirm a puzzle."""
    said = f"{_move(each.puzzle)} is not confirmed"
    if each.chance is None or each.next_best is None or each.best is None:
        return said
    best = format_action(each.best, grid=each.puzzle.grid)
    return f"{said}: {best} wins {each.chance:.0%}, without the solution {each.next_best:.0%}"
