"""The commands that measure players, where the command line does more than the verb: `match`,
`elo` and `accuracy`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

from train.api.arguments import Games, arg
from train.api.games import match, series
from train.api.measures import accuracy
from train.api.ratings import MEAN, elo
from train.api.signatures import only
from train.cli import options
from train.cli.commands import made_from
from train.cli.options import Positional
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.fields import Count
from train.runtime.files import names_of_runs
from wallgo_jax.cli.parsing import Flag

GATE = {"games": 20_000, "opening_plies": 4, "sprt": "-10,0"}
ANCHORS = ("random", "greedy", "wjx", "heuristic-search:wjx@64")
_Match: Any = made_from(match, "match")
_Elo: Any = made_from(elo, "elo")
_Accuracy: Any = made_from(accuracy, "accuracy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchCommand(_Match):
    """Play a match between two players, or between three or four where the rules have so many
    seats. Players are named as in docs/players.md. With record files in place of players it
    prints the matches that they hold, and plays none."""

    gate: Flag = False
    """Test that PLAYER is not weaker than OPPONENT. The exit code is 0 if it is not, and 1 if it is
    weaker or the test is undecided."""
    games: Annotated[Games | None, arg("INT", "(default: 400, with --gate 20000)")] = None
    """Smallest number of games. It is rounded up so that each opening is played in every order of
    the players: half of the games with each colour."""
    opening_plies: Annotated[Count | None, arg("INT", "(default: 2, with --gate 4)")] = None
    """Random plies with which all games of an opening start."""
    sprt: Annotated[str | None, arg("ELO0,ELO1", "(default: none, with --gate -10,0)")] = None
    """Stop once a sequential test of two players has decided which of two Elo differences is
    likelier, such as 0,20."""

    def run(self) -> int:
        """Returns the exit code."""
        names = [self.first, *filter(None, (self.second, *self.others))]
        if Path(self.first).is_file() and ".jsonl" in Path(self.first).suffixes:
            if self.plot is not None:
                raise UsageError("match: --plot has no effect with record files; leave it out")
            return self.finish(series(names))
        if self.gate and self.sprt == "":
            raise UsageError("match: --gate needs a test: leave --sprt out, or name ELO0,ELO1")
        said = {name: getattr(self, name) for name in GATE if getattr(self, name) is not None}
        result = self.call(**(GATE if self.gate else {}) | said)
        code = self.finish(result)
        gate = _tell_gate(result) if self.gate else 0
        return code or gate


def _tell_gate(result: Any) -> int:
    """Print what a match's test says; returns the exit code."""
    from train.arena.sprt import STRONGER, WEAKER

    decision = result.verdict.decision if result.verdict else ""
    words = {
        STRONGER: "passed: {} is not weaker than {}",
        WEAKER: "not passed: {} is weaker than {}",
    }
    said = words.get(decision, "not passed: {} is not known to be as strong as {}")
    print(f"gate {said.format(result.first, result.second)}")
    return int(decision != STRONGER)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EloCommand(_Elo):
    """Rate the checkpoints of runs, other players and some anchors in one pool, with 95 %
    intervals. Games are kept: the same command plays for the same time again, and a larger budget
    adds only new games."""

    players: Annotated[
        Positional[tuple[str, ...]],
        arg("[RUN|PLAYER ...]", "(default: the anchors alone)"),
    ] = ()
    """Run directories, each for all its checkpoints, and other players (docs/players.md)."""
    anchors: Annotated[tuple[str, ...], arg("PLAYER ...")] = ANCHORS
    """Players that are in every pool, the weakest first."""
    zero: Annotated[str, arg("PLAYER")] = "random"
    """Player whose rating is 0; if it is not in the pool, the mean rating is 0."""
    cache: Annotated[Path | None, arg("FILE", "")] = None
    """File that keeps the games; by default in the first run's directory."""
    axis: Annotated[Literal["iteration", "positions"], only("plot", "out")] = "iteration"
    """Horizontal axis of the curve: iterations or training positions."""
    out: Annotated[Path | None, arg("FOLDER", "")] = None
    """Directory for elo.json and elo.png, if no other files are named."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.players import rules_for
        from train.checkpoints.weights import is_run
        from train.metrics.rows import positions_after
        from train.ratings import pool

        rules = rules_for((*self.players, *self.anchors), self.rules)
        runs = [Path(text) for text in self.players if is_run(Path(text))]
        singles = [self._full(text) for text in self.players if not is_run(Path(text))]
        names = [*dict.fromkeys((*self.anchors, *singles))]
        json = self.json or (self.out and self.out / "elo.json")
        plot = self.plot or (self.out and self.out / "elo.png")
        for run in runs if self.axis == "positions" else ():
            positions_after(run, [])  # What the curve needs is read before the games.
        folder = next(iter(runs), self.out)
        if self.cache is None and folder is None:
            raise UsageError("elo: no run is named: --cache FILE says where games are to be kept")
        name = pool.CACHE_FILE if rules.players == 2 else pool.TABLES_FILE
        cache = self.cache or Path(folder or "") / name
        options.check_files(cache, json, plot)
        is_there = self.zero in names or self.zero.rpartition("/")[0] in names_of_runs(runs)
        rated = self.call(
            players=[*runs, *names],
            rules=rules,
            cache=cache,
            zero=self.zero if is_there else MEAN,
        )
        return dataclasses.replace(self, json=json, plot=plot).finish(rated)

    def figure_of(self, result: Any) -> Any:
        """The curves, over the axis that is asked for."""
        return result.figure(axis=self.axis)

    def _full(self, text: str) -> str:
        """The name of a player that is no run; a bare path's budget is that of checkpoints."""
        from train.players.names import read_name

        kind, budget = ("search", f"@{self.simulations}") if self.simulations else ("net", "")
        name = read_name(text)
        if name.is_bare and not name.has_budget:
            return f"{kind}:{name.target}{budget}{name.options_text}"
        return name.text


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccuracyCommand(_Accuracy):
    """Measure how often players keep the value of the game: over all positions of a solved board,
    over sampled ones of a larger board, or over proven late positions of games."""

    player: Annotated[Positional[tuple[str, ...]], arg("[PLAYER ...]", f"(default: {SHIPPED})")] = (
        SHIPPED,
    )
    """Players to measure, named as in docs/players.md; more than one with --late alone, which the
    default needs, too: its board is not solved."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.analysis.accuracy import players_table
        from train.analysis.late_positions import load_late
        from train.runtime.display import Display

        if len(self.player) > 1 and self.late is None:
            raise UsageError("accuracy: more than one player needs --late")
        if len(self.player) > 1 and self.plot is not None:
            raise UsageError("accuracy: --plot is for one player, not several; leave it out")
        late = None if self.late is None else load_late(self.late)
        results = []
        code = 0
        for name in self.player:
            result = self.call(player=name, late=late)
            results.append(result)
            one = self if len(self.player) == 1 else dataclasses.replace(self, json=None)
            code = one.finish(result)
            if len(self.player) > 1:
                options.write_json(self.json, [each.summary() for each in results])
        if len(results) > 1:
            Display().console.print(players_table(results))
        return code
