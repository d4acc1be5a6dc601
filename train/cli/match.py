"""The commands that measure one player: against another (`match`), on a solved board
(`accuracy`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from train.arena.config import Sprt, parse_sprt
from train.cli import options
from train.runtime.errors import UsageError

if TYPE_CHECKING:
    from train.arena.result import MatchResult

SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'
_PlayerName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAYER")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(options.MatchSettings):
    """Play a match between two players, named as in docs/players.md."""

    first: _PlayerName
    """Player that the result is for."""
    second: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OPPONENT")]
    """Player that it meets."""
    games: int = 400
    """Games to play, half of them with each colour."""
    batch: int = 400
    """Games played in parallel."""
    records: Path | None = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""
    sprt: str = ""
    """ELO0,ELO1 such as 0,20: stop after a batch as soon as a sequential test tells whether the
    first player's lead is ELO0 or ELO1 points; empty to play all games."""

    def run(self) -> int:
        """Returns the exit code."""
        import jax

        from train.arena import match, report
        from train.loop import run_directory
        from train.runtime.display import Display

        rules = self.rules_for((self.first, self.second))
        options.check_seed("match", self.seed)
        try:
            match.check_rules(rules)
            test = parse_sprt(self.sprt) if self.sprt else None
            how = match.MatchOptions(
                games=self.games,
                batch=self.batch,
                opening_plies=self.opening_plies,
                round_games=self.batch if test else self.games,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        first, second = map(self.player_maker(rules), (self.first, self.second))
        if self.records is not None:
            run_directory.make_directory(self.records.parent)
        display = Display()
        with display, display.match(f"{first.name} against {second.name}", self.games) as task:
            result = match.play_rounds(
                first,
                second,
                rules,
                how,
                key=jax.random.key(self.seed),
                is_decided=lambda found: test is not None and _is_decided(test, found),
                on_progress=task,
            )
        caption = f"seed {self.seed} · {self.opening_plies} random opening plies"
        if test is not None:
            caption += f" · SPRT {self.sprt}: {_decision(test, result)}"
        display.console.print(report.match_table([result], caption=caption))
        if self.records is not None:
            options.write_records(self.records, result)
        if self.json is not None:
            asked = {"seed": self.seed, "opening_plies": self.opening_plies, "sprt": self.sprt}
            options.write_json(self.json, asked | report.match_record(result))
        return 0


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """Measure how often a player keeps the value of the game, over all positions of a solved
    board."""

    player: _PlayerName
    """Player to measure, named as in docs/players.md."""
    rules: Annotated[
        str, tyro.conf.arg(help_behavior_hint=f"(default: the player's own, else {SOLVED_RULES})")
    ] = ""
    """Rules of a board that can be solved as a whole, as a JSON object."""
    batch: int = 512
    """Positions evaluated in parallel."""
    seed: int = 0
    """Random seed."""
    json: Path | None = None
    """File to write the figures to, as JSON."""

    def run(self) -> int:
        """Returns the exit code."""
        from rich.console import Console

        from train.analysis import value_accuracy

        options.check_seed("accuracy", self.seed)
        if self.batch < 1:
            raise UsageError(f"accuracy: batch ({self.batch}) must be at least 1")
        rules = options.read_rules_for(self.rules, [self.player], default=SOLVED_RULES)
        found = value_accuracy.value_accuracy(self.player, rules, batch=self.batch, seed=self.seed)
        Console().print(value_accuracy.accuracy_table(found))
        if self.json is not None:
            options.write_json(self.json, value_accuracy.accuracy_record(found))
        return 0


def _is_decided(test: Sprt, result: MatchResult) -> bool:
    from train.arena.sprt import UNDECIDED

    return _decision(test, result) != UNDECIDED


def _decision(test: Sprt, result: MatchResult) -> str:
    """Describe the state of a sequential test after the games so far."""
    from train.arena.elo import pair_counts
    from train.arena.sprt import decide

    return decide(test, pair_counts(result.outcome)).decision
