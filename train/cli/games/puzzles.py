"""The command that finds puzzles and checks them."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.runtime.errors import UsageError, message_of
from train.runtime.interrupts import EXIT_INTERRUPTED, StopRequest, interrupts

if TYPE_CHECKING:
    from train.data.record_dataset import RecordedGames
    from train.players.basic import Player
    from train.puzzles.check import CheckedPuzzle, PuzzleOptions
    from train.puzzles.puzzle_file import Puzzle
    from train.runtime.display import Display, Task
    from wallgo_jax.game.rules import Rules

EXIT_NOT_CONFIRMED, LEAST_CONFIRMED = 1, 0.95
ROUND_GAMES = 256
"""Games that are played and searched together; between rounds the search can end."""
_OF_OWN_GAMES = ("own_games", "own_simulations", "opening_plies", "seed")
_OF_FINDING = ("games", "rules", "count", "shallow", "level", "skipped", *_OF_OWN_GAMES)
"""Options that only games of the player against itself, and only the search for puzzles, read."""


class _InterruptedSearchError(Exception):
    """Ends a search for puzzles with those found before."""


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
    """Simulations of the search that says that one move wins; 16 times as many confirm it."""
    level: float = 0.2
    """How far from an even chance a level position may be."""
    wins: float = 0.8
    """Least win chance of the solution."""
    others: float = 0.6
    """Most win chance of the best other move."""
    skipped: float = 0.5
    """Share of each game that is left out at its beginning, where one move seldom decides."""
    own_games: int = 5000
    """Most games that the player plays against itself where no file is given."""
    own_simulations: int = 1
    """Simulations of a move in those games; weak players leave more to find."""
    opening_plies: int = 4
    """Random plies that each of those games begins with."""
    seed: int = 0
    """Random seed."""

    def run(self) -> int:
        """Returns the exit code: 1 where a check confirms less than 95 %."""
        from train.puzzles.check import PuzzleOptions
        from train.runtime.display import Display

        if self.check is not None:
            refuse_unused(self, *_OF_FINDING, where="with --check")
        if self.games:
            refuse_unused(self, *_OF_OWN_GAMES, where="with --games")
        options.check_seed("puzzles", self.seed)
        for name in ("count", "own_games", "own_simulations"):
            if getattr(self, name) < 1:
                raise UsageError(f"puzzles: {name} ({getattr(self, name)}) must be at least 1")
        if self.opening_plies < 0:
            raise UsageError(f"puzzles: opening_plies ({self.opening_plies}) must not be negative")
        if (self.out is None) == (self.check is None):
            raise UsageError("puzzles: needs either --out FILE or --check FILE")
        try:
            how = PuzzleOptions(
                shallow=self.shallow if self.check is None else 1,
                deep=self.deep,
                level=self.level,
                wins=self.wins,
                others=self.others,
                skipped=self.skipped,
            )
        except ValueError as error:
            raise UsageError(f"puzzles: {message_of(error)}") from None
        display = Display()
        if self.check is not None:
            return self._check(self.check, how, display)
        assert self.out is not None
        return self._find(self.out, how, display)

    def _find(self, out: Path, how: "PuzzleOptions", display: "Display") -> int:
        options.check_files(out, inputs=(self.rules, *self.games))
        names = [self.player] if self.player else []
        player = self._player_for(options.read_rules_for(self._rules_text(), names))
        answer = "the puzzles found so far are kept"
        puzzles: list[Puzzle] = []
        try:
            with (
                display,
                interrupts(answer, show=display.note) as is_interrupted,
                contextlib.suppress(_InterruptedSearchError),
            ):
                for puzzles in self._search(player, how, display, is_interrupted):
                    if puzzles:
                        is_interrupted.keeps_work()
        except Exception:
            if puzzles:
                _write(out, puzzles)
            raise
        _write(out, puzzles)
        if len(puzzles) < self.count and not is_interrupted():
            print(f"there are no more in these games; asked for {self.count}")
        return EXIT_INTERRUPTED if is_interrupted() else 0

    def _search(
        self,
        player: "Player",
        how: "PuzzleOptions",
        display: "Display",
        is_interrupted: "StopRequest",
    ) -> "Iterator[list[Puzzle]]":
        """Yield the puzzles to keep after each round of games."""
        from train.puzzles.find import find_puzzles

        with display.task("puzzles", self.count, "found") as total, _steps(display) as bars:

            def on_progress(step: str, done: int, of: int, unit: str = "simulations") -> None:
                if is_interrupted():
                    raise _InterruptedSearchError
                bars(step, done, of, unit)

            total(0)
            found = find_puzzles(
                player,
                self._rounds(player, on_progress),
                how,
                most=self.count,
                counts_played=bool(self.games),
                on_progress=on_progress,
            )
            for puzzles, games in found:
                total(len(puzzles))
                total.keep(f"{games} games searched")
                if not display.is_live:
                    display.say(f"{len(puzzles)} puzzles in {games} games")
                yield puzzles

    def _rounds(
        self, player: "Player", on_progress: Callable[..., None]
    ) -> "Iterator[RecordedGames]":
        """The games to search, some at a time: those of the files, or the player's own."""
        from train.data.record_dataset import RecordedGames, make_examples
        from train.review.own_games import own_rounds, read_games

        if not self.games:
            yield from own_rounds(
                player,
                games=self.own_games,
                boards=ROUND_GAMES,
                simulations=self.own_simulations,
                opening_plies=self.opening_plies,
                seed=self.seed,
                on_progress=lambda done: on_progress("own games", done, self.own_games, "games"),
            )
            return
        recorded = read_games(self.games, player)
        starts = range(0, len(recorded.records), ROUND_GAMES)
        parts = [slice(first, first + ROUND_GAMES) for first in starts]
        rounds = [RecordedGames(recorded.records[own], recorded.places[own]) for own in parts]
        for each in rounds:
            make_examples(each)  # A game that cannot be replayed is told before hours of search.
        yield from rounds

    def _check(self, path: Path, how: "PuzzleOptions", display: "Display") -> int:
        from train.puzzles.check import check_puzzles
        from train.puzzles.puzzle_file import read_puzzles
        from wallgo_jax.notation import format_action

        puzzles = read_puzzles(path)
        if not puzzles:
            raise UsageError(f"{path}: holds no puzzle")
        player = self._player_for(puzzles[0].record.rules)
        with display, _steps(display) as bars:

            def on_progress(step: str, done: int, total: int) -> None:
                bars(step, done, total, "simulations")

            found = check_puzzles(player, puzzles, how, on_progress=on_progress)
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
            except (*records.UNREADABLE, ValueError, StopIteration):
                return ""  # The reader of all games says what is wrong.
        return ""

    def _player_for(self, rules: "Rules") -> "Player":
        from train.review.player import default_player, make_analysis_player

        name = self.player or default_player(rules, simulations=self.deep)
        return make_analysis_player(name, rules)


def _write(out: Path, found: "list[Puzzle]") -> None:
    from train.puzzles.puzzle_file import write_puzzles

    write_puzzles(out, found)
    options.say_written(out, f"{len(found)} puzzle{'s'[: len(found) != 1]}")


def _told(each: "CheckedPuzzle") -> str:
    from wallgo_jax.notation import format_action

    if each.chance is None or each.next_best is None or each.best is None:
        return ""
    best = format_action(each.best, grid=each.puzzle.grid)
    return f": {best} wins {each.chance:.0%}, without the solution {each.next_best:.0%}"


@contextlib.contextmanager
def _steps(display: "Display") -> Iterator[Callable[[str, int, int, str], None]]:
    """A bar for each step of work that tells its steps as it comes to them."""
    with contextlib.ExitStack() as stack:
        open_steps: dict[str, Task] = {}

        def on_progress(step: str, done: int, total: int, unit: str) -> None:
            if step not in open_steps:
                stack.close()
                open_steps.clear()
                open_steps[step] = stack.enter_context(display.task(step, total, unit))
            open_steps[step](done)

        yield on_progress
