"""The command that lets many players meet (`tournament`)."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from train.cli import options
from train.cli.options import Positional, arg
from train.runtime.errors import UsageError

Format = Literal["round-robin", "double-elimination"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tournament(options.MatchSettings):
    """Play a tournament of any players, and print its table."""

    EXAMPLES = (
        "tournament random greedy wjx ethen",
        "tournament wjx ethen greedy random --format double-elimination --heats 2",
        "tournament random greedy wjx ethen --rules playwallgo-3p",
    )

    players: Annotated[Positional[tuple[str, ...]], arg("PLAYER ...", "(required)")]
    """Players, as docs/players.md names them; in an elimination without heats, strongest first."""
    format: Format = "round-robin"
    """Each player meets each, or is out after two losses; with more than two at a table, all
    tables meet."""
    games: int = 2
    """Games of a meeting at least, so that each opening is played in every order of the players:
    half of them with each colour."""
    heats: int = 0
    """Players of a heat before an elimination (its last start behind); 0 for no heats."""
    records: options.Records = None

    def run(self) -> int:
        """Returns the exit code."""
        from train.api import games
        from train.runtime.display import Display

        players = self.players_of(self.players)
        result = games.tournament(
            players,
            form=self.format,
            games=self.games,
            heats=self.heats,
            opening_plies=self.opening_plies,
            seed=self.seed,
            records=self.records,
            progress=Display(),
        )
        over = f"the {len(result.meetings)} meetings that are over count"
        kept = f"{over}; the same command starts anew"
        code = options.finish(result, self.json, (self.records, "games"), kept=kept)
        if isinstance(result.stop, UsageError):
            raise result.stop
        return code
