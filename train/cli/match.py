"""The commands that measure one player: against another (`match`), against the truth (`truth`)."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax
import tyro
from rich.console import Console

from train.analysis import value_accuracy
from train.arena import match as match_lib
from train.arena.config import Sprt, parse_sprt
from train.arena.elo import pair_counts
from train.arena.sprt import UNDECIDED, decide
from train.cli import options
from train.loop import metrics, run_directory
from train.runtime.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(options.MatchSettings):
    """Play a match between two players; see README, players, for their names."""

    first: tyro.conf.Positional[str]
    """Player whose side the result takes."""
    second: tyro.conf.Positional[str]
    """Its opponent."""
    games: int = 400
    """How many, half of them with each colour."""
    batch: int = 400
    """Games at once."""
    records: Path | None = None
    """Write the games to this file, a JSON object a line; compressed if it ends in .gz."""
    sprt: str = ""
    """Stop as soon as it is decided whether the first player's lead is ELO0 or ELO1 points,
    ELO0,ELO1 such as 0,20; looked at after each batch."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        rules = options.read_rules(self.rules)
        options.check_seed("match", self.seed)
        try:
            match_lib.check_match(
                rules, games=self.games, batch=self.batch, opening_plies=self.opening_plies
            )
            test = parse_sprt(self.sprt) if self.sprt else None
        except ValueError as error:
            raise UsageError(str(error)) from None
        first, second = map(self.player_maker(rules), (self.first, self.second))
        if self.records is not None:
            run_directory.make_directory(self.records.parent)
        display = metrics.Display()
        with display, display.match(f"{first.name} against {second.name}", self.games) as tick:
            result = match_lib.play_rounds(
                first,
                second,
                rules,
                games=self.games,
                key=jax.random.key(self.seed),
                is_decided=lambda found: test is not None and _verdict(test, found) != UNDECIDED,
                round_games=self.batch if test else self.games,
                batch=self.batch,
                opening_plies=self.opening_plies,
                on_progress=tick,
            )
        caption = f"seed {self.seed} · {self.opening_plies} random opening plies"
        if test is not None:
            caption += f" · SPRT {self.sprt}: {_verdict(test, result)}"
        display.console.print(metrics.match_table([result], caption=caption))
        if self.records is not None:
            options.write_records(self.records, result)
        if self.json is not None:
            asked = {"seed": self.seed, "opening_plies": self.opening_plies, "sprt": self.sprt}
            options.write_json(self.json, asked | metrics.match_record(result))
        return 0


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """How often a player keeps the value of the game, over every position of a solved board."""

    player: tyro.conf.Positional[str]
    """Player that is asked; see README, players."""
    rules: str = '{"size": 3, "stones": 1, "order": [0, 1]}'
    """Rules of a board that is solved as a whole, as a JSON object."""
    batch: int = value_accuracy.DEFAULT_BATCH
    """Positions at once."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Write the figures to this file as well."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        options.check_seed("truth", self.seed)
        if self.batch < 1:
            raise UsageError(f"truth: batch ({self.batch}) must be at least 1")
        found = value_accuracy.value_accuracy(
            self.player, options.read_rules(self.rules), batch=self.batch, seed=self.seed
        )
        Console().print(value_accuracy.accuracy_table(found))
        if self.json is not None:
            options.write_json(self.json, value_accuracy.accuracy_record(found))
        return 0


def _verdict(test: Sprt, result: match_lib.MatchResult) -> str:
    """What the test says of a match so far."""
    return decide(test, pair_counts(result.outcome)).decision
