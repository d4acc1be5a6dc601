"""The command that finds puzzles and checks them."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.cli.games.review import games_of
from train.runtime.errors import UsageError

if TYPE_CHECKING:
    from train.puzzles.check import CheckedPuzzle, Progress, PuzzleOptions
    from train.review.analyst import Analyst
    from train.runtime.display import Display, Task
    from wallgo_jax.game.rules import Rules

EXIT_NOT_CONFIRMED, LEAST_CONFIRMED = 1, 0.95


@dataclasses.dataclass(frozen=True)
class Puzzles:
    """Find puzzles in games: positions that look level until one move turns out to win."""

    EXAMPLES = (
        "puzzles --out out/puzzles.jsonl",
        "puzzles --games out/games.jsonl.gz --player runs/cpu --out out/puzzles.jsonl.gz",
        "puzzles --check out/puzzles.jsonl",
    )

    games: Annotated[
        tuple[Path, ...],
        tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: the player against itself)"),
    ] = ()
    """Record files of finished games."""
    player: Annotated[
        str,
        tyro.conf.arg(
            metavar="PLAYER",
            help_behavior_hint="(default: a model that ships for the rules, else "
            "heuristic-search:wjx)",
        ),
    ] = ""
    """Player that searches, named as in docs/players.md; the searches have simulations of their
    own."""
    rules: options.RulesText = ""
    """Preset's name, JSON object, or file (JSON or TOML)."""
    out: options.OptionalFile = None
    """File to write the puzzles to, a record a line; compressed if it ends in .gz."""
    check: options.OptionalFile = None
    """File of puzzles to check in place of finding some: by exact play on solved boards, else by a
    search of 16 times the simulations."""
    count: int = 50
    """Puzzles to keep, spread over difficulties."""
    shallow: int = 16
    """Simulations of the search that says level."""
    deep: int = 512
    """Simulations of the search that says that one move wins; 4 times as many confirm it."""
    level: float = 0.2
    """How far from an even chance a level position may be."""
    wins: float = 0.8
    """Least win chance of the solution."""
    others: float = 0.55
    """Most win chance of the best other move."""
    own_games: int = 400
    """Games that the player plays against itself where no file is given."""
    own_simulations: int = 16
    """Simulations of a move in those games."""
    opening_plies: int = 4
    """Random plies that each of those games begins with."""
    seed: int = 0
    """Random seed."""

    def run(self) -> int:
        """Returns the exit code: 1 where a check confirms less than 95 %."""
        from train.puzzles.check import PuzzleOptions
        from train.runtime.display import Display

        options.check_seed("puzzles", self.seed)
        for name in ("count", "own_games", "own_simulations"):
            if getattr(self, name) < 1:
                raise UsageError(f"puzzles: {name} ({getattr(self, name)}) must be at least 1")
        if self.opening_plies < 0:
            raise UsageError(f"puzzles: opening_plies ({self.opening_plies}) must not be negative")
        if (self.out is None) == (self.check is None):
            raise UsageError("puzzles: needs either --out FILE or --check FILE")
        try:
            how = PuzzleOptions(self.shallow, self.deep, self.level, self.wins, self.others)
        except ValueError as error:
            raise UsageError(f"puzzles: {error}") from None
        display = Display()
        if self.check is not None:
            return self._check(self.check, how, display)
        assert self.out is not None
        return self._find(self.out, how, display)

    def _find(self, out: Path, how: "PuzzleOptions", display: "Display") -> int:
        from train.puzzles.find import find_puzzles
        from train.puzzles.puzzle_file import write_puzzles

        options.check_files(out)
        names = [self.player] if self.player else []
        analyst = self._analyst(options.read_rules_for(self._rules_text(), names))
        with display:
            recorded = games_of(self, analyst, display)
            with _steps(display) as on_progress:
                found = find_puzzles(
                    analyst,
                    recorded,
                    how,
                    most=self.count,
                    seed=self.seed,
                    on_progress=on_progress,
                )
        write_puzzles(out, found)
        options.say_written(out, f"{len(found)} puzzle{'s'[: len(found) != 1]}")
        return 0

    def _check(self, path: Path, how: "PuzzleOptions", display: "Display") -> int:
        from train.puzzles.check import check_puzzles
        from train.puzzles.puzzle_file import read_puzzles
        from wallgo_jax.notation import format_action

        puzzles = read_puzzles(path)
        if not puzzles:
            raise UsageError(f"{path}: holds no puzzle")
        analyst = self._analyst(puzzles[0].record.rules)
        with display, _steps(display) as on_progress:
            found = check_puzzles(analyst, puzzles, how, on_progress=on_progress)
        for number, each in enumerate(found, start=1):
            if not each.is_confirmed:
                solution = format_action(each.puzzle.solution, grid=each.puzzle.grid)
                print(f"puzzle {number}: {solution} is not confirmed{_told(each)}")
        confirmed = sum(each.is_confirmed for each in found)
        print(f"{confirmed} of {len(found)} confirmed ({confirmed / len(found):.0%})")
        return 0 if confirmed >= LEAST_CONFIRMED * len(found) else EXIT_NOT_CONFIRMED

    def _rules_text(self) -> str:
        """The rules that are asked for, or those of the first game of the files."""
        import json

        from wallgo_jax.formats import records

        if self.rules or self.player:
            return self.rules
        for path in self.games:
            try:
                return next(json.dumps(record.rules.to_dict()) for record in records.read(path))
            except (OSError, EOFError, ValueError, StopIteration):
                return ""  # The reader of all games says what is wrong.
        return ""

    def _analyst(self, rules: "Rules") -> "Analyst":
        from train.review.analyst import default_analyst, make_analyst

        return make_analyst(self.player or default_analyst(rules, simulations=self.deep), rules)


def _told(each: "CheckedPuzzle") -> str:
    from wallgo_jax.notation import format_action

    if each.chance is None or each.next_best is None or each.best is None:
        return ""
    best = format_action(each.best, grid=each.puzzle.grid)
    return f": {best} wins {each.chance:.0%}, without the solution {each.next_best:.0%}"


@contextlib.contextmanager
def _steps(display: "Display") -> "Iterator[Progress]":
    """A bar for each step of work that tells its steps as it comes to them."""
    with contextlib.ExitStack() as stack:
        open_steps: dict[str, Task] = {}

        def on_progress(step: str, done: int, total: int) -> None:
            if step not in open_steps:
                stack.close()
                open_steps[step] = stack.enter_context(display.task(step, total, "simulations"))
            open_steps[step](done)

        yield on_progress
