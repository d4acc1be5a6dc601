"""Puzzles as record lines: a game up to a position in which one move alone wins.

Each line is a record (see `wallgo_jax.formats.records`) of the plies before the position, with
these keys more:

| key | value |
|---|---|
| `solution` | the move that wins, in the canonical notation |
| `line` | the solution and the best plies after it |
| `difficulty` | 1 to 5, by how far the move is from what is seen at a glance |
| `win_chance` | of the player to move: `shallow`, `solution`, `next_best` |
| `played` | what was played in the game, or null |
| `found_by` | the player that found the puzzle |
"""

import json
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, TypeAdapter
from pydantic.dataclasses import dataclass

from train.runtime import files
from train.runtime.fields import Real, Whole
from train.search.report import canonical_move
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.notation import parse_action
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot

SHIPPED_FILE = "puzzles.jsonl.gz"
MAX_DIFFICULTY = 5


def _read_move(move: Any, info: Any) -> Any:
    if isinstance(move, str):
        return parse_action(move, grid=info.context).action
    if isinstance(move, int) and info.context is not None:
        canonical_move(move, grid=info.context)  # refuses one that the grid does not have
    return move


def _write_move(action: int, info: Any) -> str:
    return canonical_move(action, grid=info.context)


Move = Annotated[Whole, BeforeValidator(_read_move), PlainSerializer(_write_move)]
"""A public action, a move in notation in a file; the context is the grid."""
Chance = Annotated[Real, PlainSerializer(lambda chance: round(chance, 3))]


@dataclass(frozen=True)
class WinChances:
    """Win chances of the player to move: by a shallow search, with the solution, and with the best
    other move."""

    shallow: Chance
    solution: Chance
    next_best: Chance


@dataclass(frozen=True)
class Puzzle:
    """A position and the one move that wins there.

    Attributes:
      record: the plies before it.
      line: the solution and the best plies after it.
      played: in the game.
    """

    record: InstanceOf[Record]
    solution: Move
    line: tuple[Move, ...]
    difficulty: Annotated[Whole, Field(ge=1, le=MAX_DIFFICULTY)]
    win_chance: WinChances
    played: Move | None
    found_by: str

    @property
    def grid(self) -> int:
        """Side length of the grid that numbers the actions."""
        return self.record.grid or self.record.rules.size


_PUZZLE = TypeAdapter(Puzzle)


def to_line(puzzle: Puzzle) -> str:
    """The line of a puzzle, without its line end."""
    fields = _PUZZLE.dump_python(puzzle, exclude={"record"}, context=puzzle.grid)
    return json.dumps(json.loads(records.to_json(puzzle.record)) | fields, separators=(",", ":"))


def from_line(line: str) -> Puzzle:
    """Read the puzzle of a line.

    Raises:
      ValueError: in one line, what is wrong.
    """
    record = records.from_json(line)
    grid = record.grid or record.rules.size
    return _PUZZLE.validate_python(json.loads(line) | {"record": record}, context=grid)


def check_puzzle(puzzle: Puzzle) -> None:
    """Refuse a puzzle whose position offers no choice or whose solution is illegal there.

    Raises:
      ValueError: in one line, what is wrong.
    """
    snapshot = take_snapshot(records.replay(puzzle.record).states[-1])
    if puzzle.solution not in snapshot.legal:
        raise ValueError(f"solution: {illegality(snapshot, puzzle.solution)}")
    if len(snapshot.legal) < 2:
        raise ValueError("the solution is the only legal move: no puzzle")
    if puzzle.line[:1] != (puzzle.solution,):
        raise ValueError("line: does not begin with the solution")


def read_puzzles(path: Path, *, check: Callable[[Puzzle], None] = check_puzzle) -> list[Puzzle]:
    """Read a file of puzzles and check each of them; a file that ends in .gz is compressed.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """

    def parse(line: str) -> Puzzle:
        check(puzzle := from_line(line))
        return puzzle

    return files.parse_lines(path, files.read_text(path).splitlines(), parse)


def shipped_puzzles() -> list[Puzzle]:
    """The puzzles that come with the package; none where there are none."""
    path = Path(str(resources.files("train").joinpath("models", SHIPPED_FILE)))
    # They are known to be right, and to replay them takes seconds.
    return read_puzzles(path, check=lambda puzzle: None) if path.is_file() else []


def write_puzzles(path: Path, puzzles: Iterable[Puzzle]) -> None:
    """Write a file of puzzles in one step, so that it is never half-written; the same puzzles give
    the same bytes.

    Raises:
      UsageError: the file cannot be written, and is as before.
    """
    files.write_lines(path, map(to_line, puzzles))
