"""The commands that match one player with others: `match`, and `gate` with the one that ships."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import tyro

from train.cli.common import options
from train.config import SHIPPED
from train.config.sprt import parse_sprt
from train.runtime.errors import UsageError, usage_errors
from train.runtime.interrupts import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from train.api.games import PlayedMatch
    from train.arena.openings import OpeningOptions
    from train.runtime.display import Display
    from wallgo_jax.game.rules import Rules

EXIT_NOT_PASSED = 1
_PlayerName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAYER")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchCommand(options.MatchSettings):
    """A match that is shown: options, and how it is played."""

    games: int = 400
    """Games to play at least, so that each opening is played in every order of the players: half of
    them with each colour."""
    batch: int = 400
    """Games played in parallel; a sequential test looks at the result after each batch."""
    sprt: Annotated[str, tyro.conf.arg(metavar="ELO0,ELO1", help_behavior_hint="")] = ""
    """Stop once a sequential test tells which lead in Elo points is likelier, such as 0,20."""
    players_place: options.Flag = False
    """Let the players place all stones; the random plies come after."""
    openings: options.OptionalFile = None
    """File of positions to start from in place of random plies: the ends of recorded games, or
    diagrams; each is played in every seating."""
    records: options.OptionalFile = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""

    def play(self, names: Sequence[str]) -> tuple[PlayedMatch, bool]:
        """Play and show a match of players; returns it, and whether a signal stopped it.

        Args:
          names: of the players; the one that ships meets a single one.
        """
        from train.api import games
        from train.arena.match import fill_seats, games_of
        from train.cli.games.watching import Watching
        from train.runtime.display import Display

        rules = self.rules_for(names)
        if len(names) == 1 and rules.players == 2:
            names = [*names, _shipped_like(names[0], rules)]
            rules = self.rules_for(names)
        with usage_errors():
            names = fill_seats(names, rules)
        opening = self.opening(rules)
        players = self.players_of(names, rules)
        total = games_of([player.registered for player in players], self.games)
        options.check_files(self.records, self.json, inputs=self.inputs)
        display = Display()
        watch = Watching(display, "the games that are over")
        result = games.match(
            *players,
            rules=rules,
            games=self.games,
            batch=self.batch,
            opening_plies=self.opening_plies,
            players_place=self.players_place,
            openings=opening.positions,
            seed=self.seed,
            sprt=self.sprt,
            progress=watch,
        )
        self._show(result, total, display, opening)
        return result, watch.is_stopped

    @property
    def inputs(self) -> tuple[str | Path | None, ...]:
        """What may name a file that is read."""
        return *super().inputs, self.openings

    def opening(self, rules: Rules) -> OpeningOptions:
        """How the games open.

        Raises:
          UsageError: two ways are asked for, or the file cannot be used.
        """
        from train.arena.openings import choose_opening

        found = choose_opening(
            self.opening_plies, players_place=self.players_place, path=self.openings, rules=rules
        )
        if self.records is not None and found.positions and not found.positions.has_games:
            raise UsageError("match: --records needs --openings of games: a diagram has no plies")
        return found

    def _show(
        self, result: PlayedMatch, games: int, display: Display, opening: OpeningOptions
    ) -> None:
        """Print the table, and write what was asked for."""
        from train.arena import report, sprt

        caption = f"seed {self.seed} · {opening.text}"
        test = parse_sprt(self.sprt) if self.sprt else None
        verdict = None if test is None else sprt.verdict_of(test, result)
        if test is not None:
            caption += f" · SPRT {self.sprt}"
        is_decided = verdict is not None and verdict.decision != sprt.UNDECIDED
        if len(result.games) < games and not is_decided:
            caption = f"stopped after {len(result.games)} of {games} games · {caption}"
        display.console.print(result.table(caption=caption))
        for line in report.forfeit_lines(result):
            display.console.print(line, highlight=False, markup=False)
        if test is not None and verdict is not None:
            display.console.print(sprt.in_words(test, verdict), highlight=False)
        if self.records is not None:
            result.write(self.records)
            options.say_written(self.records, f"{len(result.games)} games")
        if self.json is not None:
            asked = {
                "seed": self.seed,
                "opening_plies": opening.plies,
                "players_place": opening.players_place,
                "openings": None if self.openings is None else str(self.openings),
                "sprt": sprt.verdict_record(test, verdict) if test and verdict else None,
            }
            options.write_json(self.json, asked | result.summary())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(MatchCommand):
    """Play a match between two players, or between three or four where the rules have so many
    seats. Players are named as in docs/players.md."""

    EXAMPLES = (
        "match runs/quickstart",
        "match search:runs/quickstart@64 wjx --games 400",
        "match search:runs/a search:runs/b --games 4000 --sprt 0,20",
        "match greedy wjx --rules wallzero-empty --records out/games.jsonl.gz",
        "match wjx greedy random --rules playwallgo-3p",
        "match heuristic-search:wjx@16 wjx --rules playwallgo-4p",
    )

    first: _PlayerName
    """Player that the result is for."""
    second: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(
            metavar="[OPPONENT]",
            help_behavior_hint="(default: the one that ships, with PLAYER's budget)",
        ),
    ] = ""
    """Player that it meets; with three or four seats and no more names, at all other seats."""
    others: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="[OPPONENT ...]", help_behavior_hint=""),
    ] = ()
    """Players of further seats."""

    def run(self) -> int:
        """Returns the exit code."""
        names = filter(None, (self.first, self.second, *self.others))
        return EXIT_INTERRUPTED if self.play([*names])[1] else 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gate(MatchCommand):
    """Test that a player is not weaker than the one that ships, by a sequential test. The exit code
    is 0 if it is not, and 1 if it is weaker or the games do not tell."""

    EXAMPLES = (
        "gate runs/cpu@64",
        "gate runs/cpu@1s --sprt=-20,0",
        "gate 'pretrained:wallzero-4stone@64?symmetries=8' --games 2000",
    )

    player: _PlayerName
    """Player to test, named as in docs/players.md."""
    against: Annotated[
        str,
        tyro.conf.arg(
            metavar="OPPONENT",
            help_behavior_hint="(default: the one that ships, with PLAYER's budget)",
        ),
    ] = ""
    """Player that it must not be weaker than."""
    games: int = 20_000
    """Games at most, half of them with each colour."""
    opening_plies: int = 4
    """Random plies that both games of a pair start with."""
    sprt: Annotated[str, tyro.conf.arg(metavar="ELO0,ELO1")] = "-10,0"
    """Leads in Elo points of a player that is weaker, and of one that is not."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.arena.sprt import STRONGER, UNDECIDED, verdict_of

        with usage_errors():
            test = parse_sprt(self.sprt)
        against = self.against or _shipped_like(self.player, self.rules_for((self.player,)))
        rules = self.rules_for((self.player, against))
        if rules.players > 2:
            raise UsageError(f"gate: a test of two players, the rules are for {rules.players}")
        result, is_interrupted = self.play([self.player, against])
        decision = verdict_of(test, result).decision
        words = {
            STRONGER: "passed: {} is not weaker than {}",
            UNDECIDED: "not passed: {} is not known to be as strong as {}",
        }
        found = words.get(decision, "not passed: {} is weaker than {}")
        print(f"gate {found.format(result.first, result.second)}")
        if is_interrupted:
            return EXIT_INTERRUPTED
        return 0 if decision == STRONGER else EXIT_NOT_PASSED


def _shipped_like(player: str, rules: Rules) -> str:
    """The name of the player that ships for some rules, else of the one for four stones, with the
    budget of a player: search, time or none."""
    from train.checkpoints import pretrained
    from train.players import registry

    model = pretrained.model_for(rules)
    shipped = SHIPPED if model is None else f"pretrained:{model}"
    name = registry.read_name(player)
    return f"net:{shipped}" if name.kind == "net" else f"{shipped}{name.budget_text}"
