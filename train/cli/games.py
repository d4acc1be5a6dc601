"""The commands that measure players: two of them or a table (`match`), all of them (`tournament`),
in one pool (`elo`), and in positions whose value is known or proven (`accuracy`).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from train.api.arguments import (
    SOLVED_RULES,
    AccuracyArguments,
    EloArguments,
    Games,
    MatchArguments,
    TournamentArguments,
)
from train.cli import options
from train.cli.options import (
    READ,
    AtLeastOne,
    Count,
    File,
    Positional,
    Read,
    Shared,
    WeightsFile,
    Written,
    arg,
)
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.fields import Real
from train.runtime.files import names_of_runs
from train.runtime.showing import sparing
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.api.results import PlayedMatch

EXIT_NOT_PASSED = 1
GATE = {"games": 20_000, "opening_plies": 4, "sprt": "-10,0"}
ANCHORS = ("random", "greedy", "wjx", "heuristic-search:wjx@64")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(Shared, MatchArguments):
    """Play a match between two players, or between three or four where the rules have so many
    seats. Players are named as in docs/players.md. In place of players, record files: the matches
    that they keep are told, and none is played."""

    EXAMPLES = (
        "match runs/quickstart",
        "match search:runs/quickstart@64 wjx --games 400",
        "match search:runs/a search:runs/b --games 4000 --sprt 0,20",
        "match runs/cpu@64 --gate",
        "match greedy wjx --rules wallzero-empty --records out/games.jsonl.gz",
        "match wjx greedy random --rules playwallgo-3p",
        "match my-games/*.jsonl",
        "match heuristic-search:wjx@16 wjx --rules playwallgo-4p",
    )

    first: Annotated[Positional[str], arg("PLAYER")]
    """Player that the result is for."""
    second: Annotated[
        Positional[str],
        arg("[OPPONENT]", "(default: the one that ships, with PLAYER's budget)"),
    ] = ""
    """Player that it meets; with three or four seats and no more names, at all other seats."""
    others: Annotated[Positional[tuple[str, ...]], arg("[OPPONENT ...]", "")] = ()
    """Players of further seats."""
    gate: Flag = False
    """Test that PLAYER is not weaker than OPPONENT. The exit code is 0 if it is not, and 1 if it is
    weaker or the games do not tell."""
    games: Annotated[  # type: ignore[assignment]
        Games | None, arg("INT", "(default: 400, with --gate 20000)")
    ] = None
    opening_plies: Annotated[  # type: ignore[assignment]
        Count | None, arg("INT", "(default: 2, with --gate 4)")
    ] = None
    sprt: Annotated[  # type: ignore[assignment]
        str | None, arg("ELO0,ELO1", "(default: none, with --gate -10,0)")
    ] = None
    openings: Read = None

    def run(self) -> int:
        """Returns the exit code."""
        from train.api import games as api
        from train.api.players import shipped_like
        from train.runtime.display import Display

        names = [self.first, *filter(None, (self.second, *self.others))]
        if Path(self.first).is_file() and ".jsonl" in Path(self.first).suffixes:
            return options.finish(api.series(names), self.json)
        if len(names) == 1:
            names.append(shipped_like(self.first, self.rules or None))
        if self.gate and self.sprt == "":
            raise UsageError("match: --gate needs a test: leave --sprt out, or name ELO0,ELO1")
        given: dict[str, Any] = self.arguments(MatchArguments)
        result = api.match(*names, **((GATE if self.gate else {}) | given), progress=Display())
        played = self.records, f"{len(result.games)} games"
        code = options.finish(result, self.json, played)
        passed = self._tell_gate(result) if self.gate else 0
        return code or passed

    def _tell_gate(self, result: PlayedMatch) -> int:
        """Print what the test says; returns the exit code."""
        from train.arena.sprt import STRONGER, WEAKER

        decision = result.verdict.decision if result.verdict else ""
        words = {
            STRONGER: "passed: {} is not weaker than {}",
            WEAKER: "not passed: {} is weaker than {}",
        }
        said = words.get(decision, "not passed: {} is not known to be as strong as {}")
        print(f"gate {said.format(result.first, result.second)}")
        return 0 if decision == STRONGER else EXIT_NOT_PASSED


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tournament(Shared, TournamentArguments):
    """Play a tournament of any players, and print its table."""

    EXAMPLES = (
        "tournament random greedy wjx ethen",
        "tournament wjx ethen greedy random --format double-elimination --heats 2",
        "tournament random greedy wjx ethen --rules playwallgo-3p",
    )

    players: Annotated[
        Positional[tuple[str, ...]], Field(min_length=2), arg("PLAYER ...", "(required)")
    ]
    """Players, as docs/players.md names them; in an elimination without heats, strongest first."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api import games as api
        from train.runtime.display import Display

        given: dict[str, Any] = self.arguments(TournamentArguments)
        result = api.tournament(self.players, **given, progress=Display())
        code = options.finish(result, self.json, (self.records, "games"))
        if isinstance(result.stop, UsageError):
            raise result.stop
        return code


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elo(Shared, EloArguments):
    """Rate the checkpoints of runs, other players and some anchors in one pool, with 95 %
    intervals. Games are kept: the same command plays on for as long, a larger budget adds only new
    games."""

    EXAMPLES = (
        "elo runs/quickstart --out out/elo",
        "elo runs/a runs/b --budget 8000 --zero wjx --png out/curve.png",
    )

    players: Annotated[
        Positional[tuple[str, ...]],
        arg("[RUN|PLAYER ...]", "(default: the anchors alone)"),
    ] = ()
    """Run directories, each for all its checkpoints, and other players (docs/players.md)."""
    minutes: Annotated[Real, options.without("budget")] = EloArguments.minutes
    anchors: Annotated[tuple[str, ...], arg("PLAYER ...")] = ANCHORS
    """Players that every pool has, the weakest first."""
    zero: Annotated[str, arg("PLAYER")] = "random"  # type: ignore[assignment]
    """Player whose rating is 0; if it is not in the pool, the mean rating is 0."""
    cache: File = None
    """File that keeps the games; by default in the first run's directory."""
    axis: Annotated[Literal["iteration", "positions"], options.only("png", "out")] = "iteration"
    """Horizontal axis of the curve: iterations or training positions."""
    out: Annotated[Path | None, arg("FOLDER", "")] = None
    """Directory for elo.json and elo.png, where no other files are named."""
    png: options.Picture = None
    """File to draw the curve into."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.players import rules_for
        from train.api.ratings import MEAN, elo
        from train.api.results import positions_after
        from train.checkpoints.weights import is_run
        from train.metrics.figure import save_figure
        from train.ratings import pool
        from train.runtime.display import Display

        rules = rules_for((*self.players, *self.anchors), self.rules)
        runs = [Path(text) for text in self.players if is_run(Path(text))]
        singles = [self._full(text) for text in self.players if not is_run(Path(text))]
        names = [*dict.fromkeys((*self.anchors, *singles))]
        json = self.json or (self.out and self.out / "elo.json")
        png = self.png or (self.out and self.out / "elo.png")
        for run in runs if self.axis == "positions" else ():
            positions_after(run, [])  # What the curve needs is read before the games.
        folder = next(iter(runs), self.out)
        if self.cache is None and folder is None:
            raise UsageError("elo: no run is named: --cache FILE says where games are to be kept")
        name = pool.CACHE_FILE if rules.players == 2 else pool.TABLES_FILE
        cache = self.cache or Path(folder or "") / name
        options.check_files(cache, json, png)
        is_there = self.zero in names or self.zero.rpartition("/")[0] in names_of_runs(runs)
        how = {"rules": rules, "cache": cache, "zero": self.zero if is_there else MEAN}
        given: dict[str, Any] = self.arguments(EloArguments) | how
        rated = elo([*runs, *names], **given, progress=Display())
        if png is not None:
            with sparing(png, "the ratings stand"):
                save_figure(rated.figure(axis=self.axis), png, caption=rated.caption)
        return options.finish(rated, json, (png, "curves"))

    def _full(self, text: str) -> str:
        """The name of a player that is no run; a bare path's budget is that of checkpoints."""
        from train.players.names import read_name

        kind, budget = ("search", f"@{self.simulations}") if self.simulations else ("net", "")
        name = read_name(text)
        if name.is_bare and not name.has_budget:
            return f"{kind}:{name.target}{budget}{name.options_text}"
        return name.text


PROVEN = 2000
_PROVING = options.only("prove")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accuracy(Shared, AccuracyArguments):
    """Measure how often a player keeps the value of the game: over all positions of a solved
    board, over sampled ones of a larger board, or over proven late positions of games. With
    --prove, prove late positions: their value, and all plays that keep it."""

    EXAMPLES = (
        "accuracy search:runs/tiny@64",
        "accuracy search:runs/tiny_4x4@64 --positions 5000",
        "accuracy --late out/late.jsonl",
        "accuracy runs/quickstart/checkpoints/* --late out/late.jsonl",
        "accuracy --prove out/games.jsonl.gz --late out/late.jsonl",
    )

    players: Annotated[
        Positional[tuple[str, ...]],
        arg("[PLAYER ...]", f"(default: {SHIPPED})"),
        options.without("prove"),
    ] = (SHIPPED,)
    """Players to measure, named as in docs/players.md; more than one with --late alone, which the
    default needs, too: its board is not solved."""
    rules: Annotated[
        str,
        arg("RULES", f"(default: the player's own, else {SOLVED_RULES})"),
        READ,
        options.without("prove", "late"),
    ] = ""
    """Rules of a board that can be solved: JSON object, or file (JSON or TOML)."""
    positions: Annotated[Count, arg(hint="")] = 0
    """Positions of random games to sample, each solved by alpha-beta (one stone each, at most 4x4
    cells), in place of all positions of a board that is solved as a whole (3x3); with --prove,
    proven positions to stop at (2,000)."""
    min_walls: Annotated[Count, options.only("positions"), options.without("prove", "late")] = 4
    late: File = None
    """File of proven late positions, to measure there instead; with --prove, the file that each
    game is added to once its positions are proven, where games that it has are skipped."""
    prove: Annotated[tuple[Path, ...], arg("FILE ...", ""), options.only("late")] = ()
    """Record files, such as `match --records` writes: prove late positions of their games, and
    measure nobody."""
    per_game: Annotated[AtLeastOne, _PROVING] = 4
    """Positions tried in each game that is proven."""
    max_plies_left: Annotated[AtLeastOne, _PROVING] = 12
    """Most plies before the end of its game that a position to prove is taken from."""
    node_limit: Annotated[AtLeastOne, _PROVING] = 50_000
    """Positions that one proof may look at."""
    sample: Annotated[Written, options.only("prove")] = None
    """File for a share of the proven positions, spread over plies left, with those first in which
    a play can err; may end in .gz."""
    sample_positions: Annotated[AtLeastOne, options.only("sample")] = 1000
    """Positions of that share."""
    batch: Annotated[AtLeastOne, options.without("prove")] = 512
    config: Annotated[WeightsFile, options.without("prove")] = None
    json: Annotated[options.Json, options.without("prove")] = None

    def run(self) -> int:
        """Returns the exit code."""
        if self.prove:
            return self._prove()
        if len(self.players) > 1 and self.late is None:
            raise UsageError("accuracy: more than one player needs --late")
        options.check_files(self.json, inputs=[self.late])
        return self._measure()

    def _measure(self) -> int:
        """Measure one player after another, and write the figures of those that are measured."""
        from train.analysis.accuracy import players_table
        from train.analysis.late_positions import load_late
        from train.api.measures import accuracy
        from train.runtime.display import Display

        given: dict[str, Any] = self.arguments(AccuracyArguments)
        if self.late is not None:
            given["late"] = load_late(self.late)
        results, code = [], 0
        for name in self.players:
            result = accuracy(name, **given, progress=Display())
            one = self.json if len(self.players) == 1 else None
            code = options.finish(result, one)
            results.append(result)
            if one is None:
                options.write_json(self.json, [result.summary() for result in results])
        if len(results) > 1:
            Display().console.print(players_table(results))
        return code

    def _prove(self) -> int:
        from train.analysis import late_positions, late_proofs
        from train.data.record_dataset import read_recorded_games
        from train.runtime.display import Display
        from train.runtime.interrupts import follow

        assert self.late is not None
        positions = self.positions or PROVEN
        recorded = read_recorded_games(self.prove, keys=())
        options.check_files(self.late, self.sample)
        # Games may be those of --late itself, which grows and loses nothing.
        options.check_files(self.sample, inputs=self.prove)
        how = late_proofs.ProofOptions(
            positions, self.per_game, self.max_plies_left, self.node_limit, self.seed
        )
        title, kept = "proving late positions", "the games that are proven are kept"
        with follow(Display(), title, positions, "positions", answer=kept) as work:

            def on_progress(proven: int) -> None:
                work.should_stop.keeps_work()
                work.task(proven)

            games = late_proofs.prove_games(
                recorded, self.late, how, on_progress=on_progress, should_stop=work.should_stop
            )
        work.display.console.print(late_proofs.proofs_table(games))
        if self.sample is not None:
            chosen = late_positions.spread(
                games,
                self.sample_positions,
                seed=self.seed,
                preferred=late_proofs.telling_positions(games),
            )
            late_positions.write_late(self.sample, chosen)
            proven = sum(len(game.proven) for game in chosen)
            options.say_written(self.sample, f"{proven} positions")
        goes_on = f"{kept} in {self.late}; the same command goes on"
        return options.exit_code(work.should_stop(), goes_on)
