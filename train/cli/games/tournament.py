"""The command that lets many players meet (`tournament`)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from train.cli.common import options
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from train.api.games import PlayedMatch

Format = Literal["round-robin", "double-elimination"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tournament(options.MatchSettings):
    """Play a tournament of any players, and print its table."""

    EXAMPLES = (
        "tournament random greedy wjx ethen",
        "tournament wjx ethen greedy random --format double-elimination --heats 2",
        "tournament random greedy wjx ethen --rules playwallgo-3p",
    )

    players: Annotated[
        tyro.conf.Positional[tuple[str, ...]],
        tyro.conf.arg(metavar="PLAYER ...", help_behavior_hint="(required)"),
    ]
    """Players, as docs/players.md names them; in an elimination without heats, strongest first."""
    format: Format = "round-robin"
    """Each player meets each, or is out after two losses; with more than two at a table, all
    tables meet."""
    games: int = 2
    """Games of a meeting at least, so that each opening is played in every order of the players:
    half of them with each colour."""
    heats: int = 0
    """Players of a heat before an elimination (its last start behind); 0 for no heats."""
    records: options.OptionalFile = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api import games
        from train.arena import report
        from train.cli.games.watching import Watching
        from train.runtime.display import Display

        rules = self.rules_for(self.players)
        players = self.players_of(self.players, rules)
        options.check_files(self.records, self.json, inputs=self.inputs)
        display, line = Display(), report.match_line if rules.players == 2 else report.table_line
        watch = Watching(display, "the meetings that are over", line=line, on_result=self._record)
        found = games.tournament(
            players,
            rules=rules,
            form=self.format,
            games=self.games,
            heats=self.heats,
            opening_plies=self.opening_plies,
            seed=self.seed,
            progress=watch,
        )
        caption = f"seed {self.seed} · {self.opening_plies} random opening plies"
        each = f"stopped after {found.games} of {watch.total}" if found.stop else str(self.games)
        caption = f"{each} games{'' if found.stop else ' a meeting'} · {caption}"
        for shown in found.shown(caption=caption):
            display.console.print(shown)
        if self.records is not None:
            options.say_written(self.records, "games")
        if self.json is not None:
            options.write_json(self.json, self._asked(rules) | found.summary())
        if isinstance(found.stop, UsageError):
            raise found.stop
        return EXIT_INTERRUPTED if found.stop else 0

    def _record(self, result: PlayedMatch, is_first: bool) -> None:
        if self.records is not None:
            result.write(self.records, append=not is_first)

    def _asked(self, rules: Rules) -> dict[str, object]:
        return {
            "format": self.format,
            "rules": rules.to_dict(),
            "rules_name": name_of(rules),
            "seed": self.seed,
            "games_a_meeting": self.games,
            "heats": self.heats,
            "opening_plies": self.opening_plies,
        }
