"""The command that lets many players meet (`tournament`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from train.cli.common import options
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from train.arena.tournament import Meeting, Play, Score
    from train.runtime.display import Display, Task

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
    """Games of a meeting of two players, half of them with each colour; with more than two at a
    table at least so many, in every order of the players."""
    heats: int = 0
    """Players of a heat before an elimination (its last start behind); 0 for no heats."""
    records: options.OptionalFile = None
    """File to write the games to, a JSON object a line; compressed if it ends in .gz."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.arena import tournament
        from train.cli.games import seats
        from train.runtime import display as display_lib

        rules = self.rules_for(self.players)
        options.check_seed("tournament", self.seed)
        if rules.players > 2:
            return seats.run_tournament(self, rules)
        options.check_games("tournament", rules, games=self.games, opening_plies=self.opening_plies)
        if self.heats and (self.format == "round-robin" or self.heats < 2):
            raise UsageError("tournament: heats are of 2 or more, and before an elimination")
        players = [*map(self.player_maker(rules), self.players)]
        names = [player.name for player in players]
        by_name = dict(zip(names, players, strict=True))
        options.check_files(self.records, self.json, inputs=self.inputs)
        display, met, stop = display_lib.Display(), [], None
        try:
            tournament.check_field(names, self.games // 2)
            with (
                display,
                display.match(self.format, self._expected_games()) as task,
                interrupts("the meetings that are over are kept", show=display.note) as request,
            ):
                play = self._make_play(by_name, rules, display, task, request)
                noting = _noting(play, met, request.keeps_work)
                noting = tournament.counting_pairs(noting)
                found = self._play(names, noting, display, name_of(rules))
        except (KeyboardInterrupt, UsageError) as error:
            if not met:
                raise
            found, stop = self._show_stopped(names, met, display, name_of(rules)), error
        except ValueError as error:
            raise UsageError(str(error)) from None
        if self.records is not None:
            options.say_written(self.records, "games")
        if self.json is not None:
            options.write_json(self.json, self._asked(rules) | found)
        if isinstance(stop, UsageError):
            raise stop
        return EXIT_INTERRUPTED if stop else 0

    def _make_play(
        self,
        players: dict[str, Any],
        rules: Rules,
        display: Display,
        task: Task,
        should_stop: Callable[[], bool],
    ) -> Play:
        """Plays, shows and records a meeting; stopped, it raises KeyboardInterrupt."""
        from train.arena import match
        from train.arena.report import match_line
        from train.arena.tournament import score_of
        from train.ratings.pool import MAX_BATCH

        done = 0

        def play(first: str, second: str, pairs: int, before: int) -> Score:
            nonlocal done
            if should_stop():
                raise KeyboardInterrupt
            began = task.seconds
            task.compile()
            result = match.play_meeting(
                players[first],
                players[second],
                rules,
                match.MatchOptions(
                    games=2 * pairs,
                    batch=min(2 * pairs, MAX_BATCH),
                    opening_plies=self.opening_plies,
                    should_stop=should_stop,
                ),
                seed=self.seed,
                before=before,
                on_progress=lambda games: task(done + games),
            )
            if len(result.games) < 2 * pairs:
                raise KeyboardInterrupt
            display.say(match_line(result, seconds=task.seconds - began))
            if self.records is not None:
                options.write_records(self.records, result, append=done > 0)
            done += 2 * pairs
            return score_of(result)

        return play

    def _play(self, names: list[str], play: Play, display: Display, rules: str) -> dict[str, Any]:
        from train.arena import tournament
        from train.ratings import tables

        pairs = self.games // 2
        caption = (
            f"{self.games} games a meeting · seed {self.seed} · "
            f"{self.opening_plies} random opening plies"
        )
        if self.format == "round-robin":
            met = tournament.round_robin(names, play, pairs=pairs)
            rows = tournament.standings(names, met)
            title = f"Round robin on {rules}"
            display.console.print(tables.cross_table(rows, met, title=title, caption=caption))
            return _record(met) | {"table": [tables.standing_record(row) for row in rows]}
        behind, met = [], []
        if self.heats:
            standings, met = tournament.heats(names, play, size=self.heats, pairs=pairs)
            for number, rows in enumerate(standings, start=1):
                title = f"Heat {number} on {rules}, by territory"
                table = tables.cross_table(rows, met, title=title, caption=caption)
                display.console.print(table)
            names, behind = tournament.seeds_of(standings)
        played = tournament.double_elimination(names, play, pairs=pairs, starts_behind=behind)
        title = f"Double elimination on {rules}"
        display.console.print(tables.bracket_tree(played, title=title, caption=caption))
        return _record([*met, *played.meetings]) | {"places": list(played.places)}

    def _show_stopped(
        self, names: list[str], met: list[Meeting], display: Display, rules: str
    ) -> dict[str, Any]:
        """Print the table of the meetings before a signal or an error; returns it as figures."""
        from train.arena import tournament
        from train.ratings import tables

        rows = tournament.standings(names, met)
        games = sum(sum(meeting.score[:3]) for meeting in met)
        caption = f"stopped after {games} of {self._expected_games()} games · seed {self.seed}"
        title = f"{self.format}, stopped, on {rules}"
        display.console.print(tables.cross_table(rows, met, title=title, caption=caption))
        return _record(met) | {
            "is_stopped": True,
            "table": [tables.standing_record(row) for row in rows],
        }

    def _expected_games(self) -> int:
        count = len(self.players)
        if self.format == "round-robin":
            return self.games * count * (count - 1) // 2
        in_heats = count * (self.heats - 1) // 2 if self.heats else 0
        return self.games * (in_heats + 2 * count - 2)

    def _asked(self, rules: Rules) -> dict[str, Any]:
        return {
            "format": self.format,
            "rules": rules.to_dict(),
            "rules_name": name_of(rules),
            "seed": self.seed,
            "games_a_meeting": self.games,
            "heats": self.heats,
            "opening_plies": self.opening_plies,
        }


def _noting(play: Play, met: list[Meeting], keeps_work: Callable[[], None]) -> Play:
    """Wrap `play`: note each finished meeting, and say that there is work to keep."""
    from train.arena.tournament import Meeting

    def play_and_note(first: str, second: str, pairs: int, before: int) -> Score:
        score = play(first, second, pairs, before)
        met.append(Meeting("stopped", len(met) + 1, first, second, score, None))
        keeps_work()
        return score

    return play_and_note


def _record(met: Sequence[Meeting]) -> dict[str, Any]:
    from train.ratings.tables import meeting_record

    return {"meetings": [meeting_record(meeting) for meeting in met]}
