"""The commands that review games (`review`), find puzzles and check them (`puzzles`), and calibrate
win chances (`experiment calibrate`).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from train.cli import options
from train.cli.options import (
    READ,
    WRITTEN,
    AtLeastOne,
    Count,
    File,
    Positional,
    RandomSeed,
    Read,
    Written,
    arg,
)
from train.config import SHIPPED
from train.runtime.errors import UsageError, usage_errors
from wallgo_jax.cli.parsing import Flag

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

Theme = Literal["auto", "light", "dark"]
DEFAULT_SIMULATIONS = 256
LEAST_MEASURED = 256
"""Positions from which on an interrupted calibration is worth its figures."""


@dataclasses.dataclass(frozen=True)
class Review:
    """Review a game: search every position, grade every move, write a page and figures."""

    EXAMPLES = (
        "review out/games.jsonl --game 2",
        "review out/games.jsonl --player pretrained:wallzero-4stone@1024 --siblings 21",
    )

    source: Annotated[Positional[str], arg("GAME"), READ]
    """A record file, a file of moves or of an HKOI code, `-` for standard input, or the moves."""
    player: Annotated[
        str,
        arg(
            "PLAYER",
            "(default: a model that ships for the rules, else "
            f"heuristic-search:wjx, with {DEFAULT_SIMULATIONS} simulations)",
        ),
    ] = ""
    """Player that searches, named as in docs/players.md."""
    rules: Annotated[
        options.SourceRules, arg(hint=f"(default: the game's, else {options.DEFAULT_RULES})")
    ] = ""
    game: options.GameNumber = 1
    transfer: Flag = False
    """Let a network review rules that it was not trained on."""
    calibration: Read = None
    """File that `experiment calibrate --json` wrote, in place of the calibration in the model's
    card."""
    siblings: Annotated[int | None, arg("PLY", "")] = None
    """Ply whose step is compared with each of its walls."""
    out: Annotated[Path, arg("FILE"), WRITTEN] = Path("out/review.html")
    """Page to write."""
    json: Annotated[options.Json, arg(hint="(default: beside the page)")] = None
    records: Written = None
    """File to write the game's record to, with the value of each ply, as the replay page shows."""
    theme: Theme = "auto"
    """Colours of the page; `auto` is as the reader's system is set."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.reviews import load_source, review_game
        from train.runtime.display import Display
        from wallgo_jax.cli.sources import SourceRequest
        from wallgo_jax.formats import records
        from wallgo_jax.game.rules import PRESETS

        if self.out.suffix.lower() != ".html":
            raise UsageError(f"--out {self.out}: the page's ending must be .html")
        default = PRESETS[options.DEFAULT_RULES]
        request = SourceRequest(self.source, self.rules, game=self.game, default_rules=default)
        loaded = load_source(request)
        figures = self.json or self.out.with_suffix(".json")
        options.check_files(self.out, figures, self.records)
        review = review_game(
            loaded,
            self.player,
            transfer=self.transfer,
            calibration=self.calibration,
            siblings=self.siblings,
            progress=Display(),
        )
        review.write(self.out, theme=self.theme)
        if self.records is not None:
            records.write(self.records, [review.record])
        page = self.out, f"{len(loaded.game.actions)} plies"
        return options.finish(review, figures, page, (self.records, "1 game"))


@dataclasses.dataclass(frozen=True)
class Calibrate:
    """Measure whether a player's win chances come true, before and after search, and fit them."""

    EXAMPLES = (
        "calibrate pretrained:wallzero-4stone@256 --png out/reliability.png",
        "calibrate models/mine@64 --games out/games.jsonl.gz --card",
    )

    player: options.ShippedPlayer = SHIPPED
    """Player that searches, named as in docs/players.md."""
    games: Annotated[tuple[Path, ...], arg("FILE", "(default: it plays against itself)"), READ] = ()
    """Record files of finished games."""
    rules: options.RulesText = ""
    own_games: Annotated[int, options.without("games"), Field(ge=2)] = 400
    """Games that it plays against itself where no file is given."""
    own_simulations: Annotated[int, options.without("games"), Field(ge=2)] = 32
    """Simulations of a move in those games."""
    opening_plies: Annotated[Count, options.without("games")] = 4
    """Random plies that each of those games begins with."""
    positions: Annotated[int, Field(ge=2)] = 4000
    """Positions that are searched, drawn from all games."""
    seed: RandomSeed = 0
    card: Flag = False
    """Write the calibration into the card of the exported folder or of the model."""
    json: Written = None
    """File to write the figures to, as JSON, which `review --calibration` reads."""
    png: options.Picture = None
    """File to draw the reliability curves to: .png, .svg or .pdf."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.players import rules_for
        from train.checkpoints.exported import CALIBRATION_KEY, add_to_card
        from train.review import own_games, reliability
        from train.review.player import card_folder, make_analysis_player
        from train.runtime.display import Display
        from train.runtime.interrupts import follow

        folder = card_folder(self.player) if self.card else None
        rules = rules_for([self.player], self.rules)
        if rules.players != 2:
            raise UsageError("calibrate: win chances are calibrated for two players")
        player, display = make_analysis_player(self.player, rules), Display()
        simulations = player.search.simulations
        with follow(display, answer="the positions searched so far are measured") as work:
            if self.games:
                recorded = own_games.read_games(self.games, player)
            else:
                with display.task("own games", self.own_games, "games") as task:
                    recorded = own_games.play_own_games(
                        player,
                        games=self.own_games,
                        simulations=self.own_simulations,
                        opening_plies=self.opening_plies,
                        seed=self.seed,
                        on_progress=task,
                    )
            plies = sum(len(record.actions) for record in recorded.records)
            total = min(self.positions, plies) * simulations
            with display.task("searching positions", total, "simulations") as task:

                def on_progress(done: int) -> None:
                    if done >= LEAST_MEASURED * simulations:
                        work.should_stop.keeps_work()
                    task(done)

                measured = reliability.measure_reliability(
                    player,
                    recorded,
                    positions=self.positions,
                    seed=self.seed,
                    on_progress=on_progress,
                    should_stop=work.should_stop,
                )
        display.console.print(measured.table())
        options.write_json(self.json, measured.to_dict())
        if self.png is not None:
            measured.draw(self.png)
            options.say_written(self.png, "reliability curves")
        if folder is not None and not work.should_stop():
            add_to_card(folder, {CALIBRATION_KEY: measured.calibration._asdict()})
            options.say_written(folder / "card.json", "calibration")
        kept = "the positions searched so far are measured; the same command starts anew"
        return options.exit_code(work.should_stop(), kept)


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
    shallow: Annotated[int, _FINDING] = 16
    """Simulations of the search that says level."""
    deep: int = 512
    """Simulations of the search that says that one move wins; 16 times as many confirm it."""
    level: Annotated[float, _FINDING] = 0.2
    """How far from an even chance a level position may be."""
    wins: float = 0.8
    """Least win chance of the solution."""
    others: float = 0.6
    """Most win chance of the best other move."""
    skipped: Annotated[float, _FINDING] = 0.5
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
