"""The command that finds puzzles and checks them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from train.cli import options
from train.cli.options import READ, AtLeastOne, Count, File, RandomSeed, Written, arg
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import Real, Whole

if TYPE_CHECKING:
    from train.data.record_dataset import RecordedGames
    from train.players.basic import Player
    from train.review.puzzle_check import CheckedPuzzle, PuzzleOptions
    from train.review.puzzle_file import Puzzle
    from train.runtime.display import Task
    from train.runtime.interrupts import Follower
    from wallgo_jax.game.rules import Rules

    OnStep = Callable[..., None]
    """(step, parts done, parts, unit)."""

EXIT_NOT_CONFIRMED, LEAST_CONFIRMED = 1, 0.95
ROUND_GAMES = 256
"""Games that are played and searched together; between rounds the search can end."""
_FINDING, _OF_OWN_GAMES = options.without("check"), options.without("check", "games")


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
        arg("FILE", "(default: the player against itself)"),
        _FINDING,
        READ,
    ] = ()
    """Record files of finished games."""
    player: Annotated[
        str, arg("PLAYER", "(default: a model that ships for the rules, else heuristic-search:wjx)")
    ] = ""
    """Player that searches, named as in docs/players.md; the searches have simulations of their
    own."""
    rules: Annotated[options.RulesText, _FINDING] = ""
    out: Written = None
    """File to write the puzzles to, a record a line; compressed if it ends in .gz."""
    check: File = None
    """File of puzzles to check in place of finding some: by exact play on solved boards, else by a
    search of 16 times the simulations."""
    count: Annotated[AtLeastOne, _FINDING] = 50
    """Puzzles to keep, spread over difficulties."""
    shallow: Annotated[Whole, _FINDING] = 16
    """Simulations of the search that says level."""
    deep: Whole = 512
    """Simulations of the search that says that one move wins; 16 times as many confirm it."""
    level: Annotated[Real, _FINDING] = 0.2
    """How far from an even chance a level position may be."""
    wins: Real = 0.8
    """Least win chance of the solution."""
    others: Real = 0.6
    """Most win chance of the best other move."""
    skipped: Annotated[Real, _FINDING] = 0.5
    """Share of each game that is left out at its beginning, where one move seldom decides."""
    own_games: Annotated[AtLeastOne, _OF_OWN_GAMES] = 5000
    """Most games that the player plays against itself where no file is given."""
    own_simulations: Annotated[AtLeastOne, _OF_OWN_GAMES] = 1
    """Simulations of a move in those games; weak players leave more to find."""
    opening_plies: Annotated[Count, _OF_OWN_GAMES] = 4
    """Random plies that each of those games begins with."""
    seed: Annotated[RandomSeed, _OF_OWN_GAMES] = 0

    def run(self) -> int:
        """Returns the exit code: 1 where a check confirms less than 95 %."""
        from train.review.puzzle_check import PuzzleOptions

        shallow = self.shallow if self.check is None else 1
        with usage_errors():
            how = PuzzleOptions(
                shallow, self.deep, self.level, self.wins, self.others, self.skipped
            )
        if self.check is not None and self.out is None:
            return self._check(self.check, how)
        if self.out is not None and self.check is None:
            return self._find(self.out, how)
        raise UsageError("puzzles: needs either --out FILE or --check FILE")

    def _find(self, out: Path, how: PuzzleOptions) -> int:
        """Find puzzles in one round of games after another, and write those found so far."""
        from train.api.players import rules_for
        from train.review.puzzle_search import find_puzzles
        from train.runtime.display import Display
        from train.runtime.interrupts import follow

        names = [self.player] if self.player else []
        player = self._player_for(rules_for(names, self._rules_text()))
        puzzles: list[Puzzle] = []
        answer = "the puzzles found so far are kept"
        try:
            with (
                follow(Display(), "puzzles", self.count, "found", answer=answer) as work,
                _steps(work) as on_progress,
                contextlib.suppress(_InterruptedSearchError),
            ):
                work(0)
                for puzzles, games in find_puzzles(
                    player,
                    self._rounds(player, on_progress),
                    how,
                    most=self.count,
                    counts_played=bool(self.games),
                    on_progress=on_progress,
                ):
                    work(len(puzzles))
                    work.task.keep(f"{games} games searched")
                    if not work.display.is_live:
                        work.display.say(f"{len(puzzles)} puzzles in {games} games")
        except Exception:
            if puzzles:
                _write(out, puzzles)
            raise
        _write(out, puzzles)
        if len(puzzles) < self.count and not work.should_stop():
            print(f"there are no more in these games; asked for {self.count}")
        return options.exit_code(work.should_stop(), f"{answer}; the same command starts anew")

    def _rounds(self, player: Player, on_progress: OnStep) -> Iterator[RecordedGames]:
        """The games to search, some at a time: those of the files, or the player's own."""
        from train.data.record_dataset import RecordedGames, make_examples, read_recorded_games
        from train.review.own_games import own_rounds

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
        recorded = read_recorded_games(self.games, player.rules, keys=())
        starts = range(0, len(recorded.records), ROUND_GAMES)
        parts = [slice(first, first + ROUND_GAMES) for first in starts]
        rounds = [RecordedGames(recorded.records[part], recorded.places[part]) for part in parts]
        for each in rounds:
            make_examples(each)  # A game that cannot be replayed is told before hours of search.
        yield from rounds

    def _check(self, path: Path, how: PuzzleOptions) -> int:
        from train.review.puzzle_check import check_puzzles
        from train.review.puzzle_file import read_puzzles
        from train.runtime.display import Display
        from train.runtime.interrupts import follow

        puzzles = read_puzzles(path)
        if not puzzles:
            raise UsageError(f"{path}: holds no puzzle")
        player = self._player_for(puzzles[0].record.rules)
        with follow(Display()) as work, _steps(work) as on_progress:
            checked = check_puzzles(player, puzzles, how, on_progress=on_progress)
        for number, each in enumerate(checked, start=1):
            if not each.is_confirmed:
                print(f"puzzle {number}: {_refuted(each)}")
        confirmed = sum(each.is_confirmed for each in checked)
        print(f"{confirmed} of {len(checked)} confirmed ({confirmed / len(checked):.0%})")
        return 0 if confirmed >= LEAST_CONFIRMED * len(checked) else EXIT_NOT_CONFIRMED

    def _rules_text(self) -> str | Rules:
        """The rules that are asked for, or those of the first game of the files."""
        from wallgo_jax.formats import files, records

        if self.rules or self.player:
            return self.rules
        for path in self.games:
            try:
                return next(record.rules for record in records.read(path))
            except (*files.UNREADABLE, ValueError, StopIteration):
                return ""  # The reader of all games says what is wrong.
        return ""

    def _player_for(self, rules: Rules) -> Player:
        from train.review.player import default_player, make_analysis_player

        name = self.player or f"{default_player(rules)}@{self.deep}"
        return make_analysis_player(name, rules)


def _write(out: Path, puzzles: list[Puzzle]) -> None:
    from train.review.puzzle_file import write_puzzles

    write_puzzles(out, puzzles)
    options.say_written(out, f"{len(puzzles)} puzzle{'s'[: len(puzzles) != 1]}")


def _refuted(each: CheckedPuzzle) -> str:
    """Why a check does not confirm a puzzle."""
    from wallgo_jax.notation import format_action

    said = f"{format_action(each.puzzle.solution, grid=each.puzzle.grid)} is not confirmed"
    if each.chance is None or each.next_best is None or each.best is None:
        return said
    best = format_action(each.best, grid=each.puzzle.grid)
    return f"{said}: {best} wins {each.chance:.0%}, without the solution {each.next_best:.0%}"


@contextlib.contextmanager
def _steps(work: Follower) -> Iterator[OnStep]:
    """A bar for each step of work that tells its steps as it comes to them; a signal ends it."""
    with contextlib.ExitStack() as stack:
        bars: dict[str, Task] = {}

        def on_progress(step: str, done: int, total: int, unit: str = "simulations") -> None:
            if work.should_stop():
                raise _InterruptedSearchError
            if step not in bars:
                stack.close()
                bars.clear()
                bars[step] = stack.enter_context(work.display.task(step, total, unit))
            bars[step](done)

        yield on_progress
