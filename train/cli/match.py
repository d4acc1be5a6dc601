"""The command that matches players (`match`), and tests one against the one that ships."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from train.cli import options
from train.cli.options import Positional, arg
from train.config.sprt import parse_sprt
from train.runtime.errors import UsageError, usage_errors

if TYPE_CHECKING:
    from train.api.results import PlayedMatch

EXIT_NOT_PASSED = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(options.MatchSettings):
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
    gate: options.Flag = False
    """Test that PLAYER is not weaker than OPPONENT. The exit code is 0 if it is not, and 1 if it is
    weaker or the games do not tell."""
    games: Annotated[int | None, arg("INT", "(default: 400, with --gate 20000)")] = None
    """Games to play at least, so that each opening is played in every order of the players: half of
    them with each colour."""
    opening_plies: Annotated[  # type: ignore[assignment]
        int | None, arg("INT", "(default: 2, with --gate 4)")
    ] = None
    """Random plies that all games of an opening start with."""
    batch: int = 400
    """Games played in parallel; a sequential test looks at the result after each batch."""
    sprt: Annotated[str | None, arg("ELO0,ELO1", "(default: none, with --gate -10,0)")] = None
    """Stop once a sequential test tells which lead in Elo points is likelier, such as 0,20."""
    players_place: options.Flag = False
    """Let the players place all stones; the random plies come after."""
    openings: Annotated[options.OptionalFile, options.READ] = None
    """File of positions to start from in place of random plies: the ends of recorded games, or
    diagrams; each is played in every seating."""
    records: options.Records = None

    def run(self) -> int:
        """Returns the exit code."""
        from train.api import games as api
        from train.api.players import shipped_like
        from train.arena.openings import choose_opening
        from train.runtime.display import Display

        names = [self.first, *filter(None, (self.second, *self.others))]
        if Path(self.first).is_file() and ".jsonl" in Path(self.first).suffixes:
            return options.finish(api.series(names), self.json)
        if len(names) == 1:
            names.append(shipped_like(self.first, self.rules or None))
        default_games, default_plies, sprt = (20_000, 4, "-10,0") if self.gate else (400, 2, "")
        if self.gate and self.sprt is not None:
            with usage_errors():
                parse_sprt(self.sprt)
        players = self.players_of(names)
        plies = default_plies if self.opening_plies is None else self.opening_plies
        opening = choose_opening(
            plies, players_place=self.players_place, path=self.openings, rules=players[0].rules
        )
        if self.records is not None and opening.positions and not opening.positions.has_games:
            raise UsageError("match: --records needs --openings of games: a diagram has no plies")
        result = api.match(
            *players,
            games=default_games if self.games is None else self.games,
            batch=self.batch,
            opening_plies=plies,
            players_place=self.players_place,
            openings=self.openings,
            seed=self.seed,
            sprt=sprt if self.sprt is None else self.sprt,
            progress=Display(),
        )
        games = f"{len(result.games)} games"
        if self.records is not None:
            result.write(self.records)
        kept = f"the {games} that are over count; the same command starts anew"
        code = options.finish(result, self.json, (self.records, games), kept=kept)
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
