"""Puzzles found in games, and checked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from train.api.arguments import AnyRules, Files, Progress, ReadFile, WrittenFile, arg
from train.api.signatures import verb, without
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import AtLeastOne, Count, Real, Seed, Whole

if TYPE_CHECKING:
    from train.data.record_dataset import RecordedGames
    from train.players.basic import Player
    from train.review.puzzle_results import CheckedPuzzles, FoundPuzzles
    from train.runtime.display import Task
    from train.runtime.interrupts import Follower
    from wallgo_jax.game.rules import Rules

ROUND_GAMES = 256
"""Games that are played and searched together; between rounds the search can end."""
OnStep = Callable[..., None]
"""(step, parts done, parts, unit)."""


class _InterruptedSearchError(Exception):
    """Ends a search for puzzles with those found before."""


@verb
def find_puzzles(
    *,
    out: Annotated[WrittenFile | None, arg("FILE", "")] = None,
    games: Annotated[Files, arg("FILE", "(default: the player against itself)")] = (),
    player: Annotated[
        str | None,
        arg("PLAYER", "(default: a model that ships for the rules, else heuristic-search:wjx)"),
    ] = None,
    rules: AnyRules | None = None,
    count: AtLeastOne = 50,
    shallow: Whole = 16,
    deep: Whole = 512,
    level: Real = 0.2,
    wins: Real = 0.8,
    others: Real = 0.6,
    skipped: Real = 0.5,
    own_games: Annotated[AtLeastOne, without("games")] = 5000,
    own_simulations: Annotated[AtLeastOne, without("games")] = 1,
    opening_plies: Annotated[Count, without("games")] = 4,
    seed: Annotated[Seed, without("games")] = 0,
    progress: Progress = False,
) -> FoundPuzzles:
    """Find puzzles in games: positions that look level until one move turns out to win.

    Args:
      out: file to write the puzzles to, a record a line; compressed if it ends in .gz.
      games: record files of finished games.
      player: player that searches, named as in docs/players.md; `shallow` and `deep` set its
        simulations.
      rules: preset's name, JSON object, or file (JSON or TOML).
      count: number of puzzles to keep, spread over difficulties.
      shallow: simulations of the shallow search, which judges a puzzle's position level.
      deep: simulations of the deep search, which finds that one move wins; a search with 16 times
        as many confirms it.
      level: how far from an even chance a level position may be, as a chance.
      wins: smallest win chance of the solution.
      others: largest win chance of the best other move.
      skipped: share of each game, from its beginning, that is left out, because one move seldom
        decides there.
      own_games: largest number of games that the player plays against itself if no file is given.
      own_simulations: simulations of a move in those games; weaker players miss more.
      opening_plies: random plies with which each of those games starts.
      seed: random seed.
      progress: show bars.

    Raises:
      UsageError: a player, a file or a number is not allowed.

    Example:
      `train.find_puzzles(count=5, own_games=256).puzzles`
    """
    from train.api.players import rules_for
    from train.review import puzzle_search
    from train.review.puzzle_check import PuzzleOptions
    from train.review.puzzle_file import Puzzle, write_puzzles
    from train.review.puzzle_results import FoundPuzzles
    from train.runtime.files import check_writable
    from train.runtime.interrupts import follow

    with usage_errors("find_puzzles"):
        how = PuzzleOptions(
            shallow=shallow, deep=deep, level=level, wins=wins, others=others, skipped=skipped
        )
    file = None if out is None else Path(out)
    if file is not None:
        check_writable(file)
    records = [Path(each) for each in games]
    asked = _rules_of(records) if rules is None and player is None else rules
    searching = _analyst(player, rules_for([player] if player else [], asked), deep)

    def rounds(on_progress: OnStep) -> Iterator[RecordedGames]:
        if records:
            return _recorded_rounds(records, searching.rules)
        from train.review.own_games import own_rounds

        return own_rounds(
            searching,
            games=own_games,
            boards=ROUND_GAMES,
            simulations=own_simulations,
            opening_plies=opening_plies,
            seed=seed,
            on_progress=lambda done: on_progress("own games", done, own_games, "games"),
        )

    puzzles: list[Puzzle] = []
    searched = 0
    answer = "the puzzles found so far are kept"
    try:
        with (
            follow(progress, "puzzles", count, "found", answer=answer) as work,
            _steps(work) as on_progress,
            contextlib.suppress(_InterruptedSearchError),
        ):
            work(0)
            for puzzles, searched in puzzle_search.find_puzzles(
                searching,
                rounds(on_progress),
                how,
                most=count,
                counts_played=bool(records),
                on_progress=on_progress,
            ):
                work(len(puzzles))
                work.task.keep(f"{searched} games searched")
                if not work.display.is_live:
                    work.display.say(f"{len(puzzles)} puzzles in {searched} games")
    finally:
        # What was found before an error is kept, too.
        if file is not None and puzzles:
            write_puzzles(file, puzzles)
    if file is not None and not puzzles:
        write_puzzles(file, puzzles)
    held = f"{len(puzzles)} puzzle{'' if len(puzzles) == 1 else 's'}"
    written = {} if file is None else {file: held}
    return FoundPuzzles(tuple(puzzles), searched, count, work.should_stop(), written)


@verb
def check_puzzles(
    file: ReadFile,
    *,
    player: Annotated[
        str | None,
        arg("PLAYER", "(default: a model that ships for the rules, else heuristic-search:wjx)"),
    ] = None,
    deep: Whole = 512,
    wins: Real = 0.8,
    others: Real = 0.6,
    progress: Progress = False,
) -> CheckedPuzzles:
    """Check puzzles: by exact play on solved boards, else by a search of 16 times the simulations
    that found them. The exit code is 0 if at least 95 % are confirmed, else 1.

    Args:
      file: file of puzzles.
      player: player that searches, named as in docs/players.md.
      deep: simulations of the search that found them.
      wins: smallest win chance of the solution.
      others: largest win chance of the best other move.
      progress: show bars.

    Raises:
      UsageError: the file holds no puzzle, or a number is not allowed.

    Example:
      `train.check_puzzles("out/puzzles.jsonl").confirmed`
    """
    from train.review import puzzle_check
    from train.review.puzzle_file import read_puzzles
    from train.review.puzzle_results import CheckedPuzzles
    from train.runtime.interrupts import follow

    with usage_errors("check_puzzles"):
        how = puzzle_check.PuzzleOptions(shallow=1, deep=deep, wins=wins, others=others)
    puzzles = read_puzzles(Path(file))
    if not puzzles:
        raise UsageError(f"{file}: holds no puzzle")
    searching = _analyst(player, puzzles[0].record.rules, deep)
    with follow(progress) as work, _steps(work) as on_progress:
        checked = puzzle_check.check_puzzles(searching, puzzles, how, on_progress=on_progress)
    return CheckedPuzzles(tuple(checked))


def _recorded_rounds(files: list[Path], rules: Rules) -> Iterator[RecordedGames]:
    """The games of record files, some at a time."""
    from train.data.record_dataset import RecordedGames, make_examples, read_recorded_games

    recorded = read_recorded_games(files, rules, keys=())
    starts = range(0, len(recorded.records), ROUND_GAMES)
    parts = [slice(first, first + ROUND_GAMES) for first in starts]
    rounds = [RecordedGames(recorded.records[part], recorded.places[part]) for part in parts]
    for each in rounds:
        make_examples(each)  # A game that cannot be replayed is told before hours of search.
    yield from rounds


def _rules_of(files: list[Path]) -> Rules | None:
    """The rules of the first game of the files."""
    from wallgo_jax.formats import files as formats
    from wallgo_jax.formats import records

    for path in files:
        try:
            return next(record.rules for record in records.read(path))
        except (*formats.UNREADABLE, ValueError, StopIteration):
            return None  # The reader of all games says what is wrong.
    return None


def _analyst(name: str | None, rules: Rules, deep: int) -> Player:
    from train.review.player import default_player, make_analysis_player

    return make_analysis_player(name or f"{default_player(rules)}@{deep}", rules)


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
