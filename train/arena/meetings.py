"""Plays tournaments, and tells their results."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.arena import report, tournament
from train.arena.figures import wilson_interval
from train.arena.match import MatchOptions, games_of, play_meeting
from train.arena.match_openings import OpeningOptions
from train.arena.result import MatchResult
from train.arena.tournament import Elimination, Score, StandingsRow, TournamentMatch
from train.players.basic import Player
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.interrupts import Follower, Shown, follow
from train.runtime.results import Result
from train.runtime.showing import sparing
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUND_ROBIN = "round-robin"
ELIMINATION = "double-elimination"
_MOST_BOARDS = 400


@dataclasses.dataclass(frozen=True, repr=False)
class TournamentResult(Result):
    """A tournament.

    Attributes:
      form: `ROUND_ROBIN` or `ELIMINATION`.
      rules: what was played.
      standings: a row a player, the first place first; points in a round robin, places in an
        elimination.
      meetings: in the order of play.
      tables: the matches, in the order of play; a meeting that was level has several.
      heats: the standings of each heat before an elimination.
      elimination: the bracket, if there was one.
      settings: seed and numbers of games, as `tournament --json` names them.
      total: games that it would have without a stop.
      stop: what ended a command's tournament before all had met.
    """

    form: str
    rules: Rules
    standings: Sequence[StandingsRow] = ()
    meetings: Sequence[TournamentMatch] = ()
    tables: Sequence[MatchResult] = ()
    heats: Sequence[Sequence[StandingsRow]] = ()
    elimination: Elimination | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    total: int = 0
    stop: BaseException | None = None
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        table = ", ".join(f"{row.name} {row.points:.4g}" for row in self.standings)
        return f"<tournament of {len(self.meetings)} meetings: {table}>"

    @property
    def games(self) -> int:
        """Games of all meetings."""
        return sum(len(result.games) for result in self.tables)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each row of the standings."""
        return [report.standing_record(row) for row in self.standings]

    @property
    def on_stop(self) -> str:
        """Message printed after an interrupt."""
        return f"the {len(self.meetings)} meetings that are over count; {super().on_stop}"

    def summary(self) -> dict[str, Any]:
        """What `tournament --json` writes: meetings or matches, and standings or places."""
        summary: dict[str, Any] = {"format": self.form, "rules": self.rules.to_dict()}
        summary["rules_name"] = name_of(self.rules)
        summary |= {**self.settings, **({"is_stopped": True} if self.stop else {})}
        if self.rules.players > 2:
            summary["tables"] = [table.summary() for table in self.tables]
        else:
            summary["meetings"] = [report.meeting_record(meeting) for meeting in self.meetings]
        if self.elimination is not None:
            return summary | {"places": list(self.elimination.places)}
        return summary | {"table": self.rows}

    @property
    def is_interrupted(self) -> bool:
        """A signal ended it."""
        return isinstance(self.stop, KeyboardInterrupt)

    @property
    def failure(self) -> UsageError | None:
        """The error that ended it."""
        return self.stop if isinstance(self.stop, UsageError) else None

    @property
    def caption(self) -> str:
        """How the games were played, in words."""
        settings = self.settings
        each = f"{settings['games_a_meeting']} games a meeting"
        played = f"stopped after {self.games} of {self.total} games" if self.stop else each
        seed = settings["seed"]
        plies = settings["opening_plies"]
        return f"{played} · seed {seed} · {plies} random opening plies"

    def shown(self) -> list[Any]:
        """What `tournament` prints, as tables and trees of rich."""
        table = report.standings_table
        rules = name_of(self.rules)
        caption = self.caption
        in_heats = [meeting for meeting in self.meetings if meeting.bracket.startswith("heat")]
        heats = [
            table(rows, in_heats, title=f"Heat {n} on {rules}, by territory", caption=caption)
            for n, rows in enumerate(self.heats, start=1)
        ]
        if self.elimination is not None:
            title = f"Double elimination on {rules}"
            return [*heats, report.bracket_tree(self.elimination, title=title, caption=caption)]
        title = f"{self.form}, stopped, on {rules}" if self.stop else f"Round robin on {rules}"
        return [*heats, table(self.standings, self.meetings, title=title, caption=caption)]

    def figure(self) -> Figure:
        """The standings as a figure of matplotlib: shares of the points, with intervals."""
        from train.metrics.intervals import Interval, rates_figure

        rows = [
            Interval(row.name, row.share, *wilson_interval(row.share, row.score.games))
            for row in self.standings
        ]
        return rates_figure(rows, self.rules.players, "Tournament")


@dataclasses.dataclass(frozen=True)
class TournamentOptions:
    """How a tournament is played; the fields are the options of `train.tournament`."""

    form: str
    games: int
    heats: int
    opening_plies: int
    seed: int
    records: Path | None


def check_form(names: Sequence[str], rules: Rules, how: TournamentOptions) -> None:
    """Refuse players and heats that the form does not have.

    Raises:
      ValueError: in one line, what is wrong.
    """
    if how.heats == 1 or (how.heats and how.form != ELIMINATION):
        raise ValueError("heats need 2 or more players and an elimination after them")
    if how.form == ELIMINATION and rules.players > 2:
        raise ValueError(f"only a round robin can seat {rules.players}")
    tournament.check_entrants(names, rules.players)


def play_tournament(
    players: Mapping[str, Player], rules: Rules, how: TournamentOptions, progress: Shown
) -> TournamentResult:
    """Play a tournament of players by their names, in an elimination the strongest first.

    Raises:
      KeyboardInterrupt: a signal came, and `progress` is no command's console, which gets the
        meetings that are over.
      UsageError: likewise, a player failed.
    """
    names = list(players)
    seats = rules.players
    size = how.heats
    each = games_of([*players.values()][:seats], how.games)
    expected = math.comb(len(names), seats)
    if how.form == ELIMINATION:
        expected = (len(names) * (size - 1) // 2 if size else 0) + 2 * len(names) - 2
    result = TournamentResult(
        how.form,
        rules,
        settings={
            "seed": how.seed,
            "games_a_meeting": how.games,
            "heats": size,
            "opening_plies": how.opening_plies,
        },
        total=each * expected,
    )
    stop: BaseException | None = None
    answer = "the meetings that are over are kept"
    with follow(progress, how.form, result.total, answer=answer) as work:
        meetings = _Meetings(players, rules, how, work)
        try:
            places = _play_form(how, names, each // math.factorial(seats), meetings)
        except (KeyboardInterrupt, UsageError) as error:
            if not (isinstance(progress, Display) and meetings.met):
                raise
            stop = error
            places = {"standings": tournament.standings(names, meetings.met)}
    over = {"meetings": tuple(meetings.met), "tables": tuple(meetings.results)}
    written = {} if how.records is None else {how.records: "games"}
    return dataclasses.replace(result, **over | places, stop=stop, written=written)


@dataclasses.dataclass
class _Meetings:
    """Plays the matches of a tournament one by one, and keeps those that are over; players who meet
    again play other openings."""

    players: Mapping[str, Player]
    rules: Rules
    how: TournamentOptions
    work: Follower
    before: Counter[frozenset[str]] = dataclasses.field(default_factory=Counter)  # openings
    met: list[TournamentMatch] = dataclasses.field(default_factory=list)
    results: list[MatchResult] = dataclasses.field(default_factory=list)

    def play(self, names: tuple[str, ...], openings: int) -> tuple[Score, ...]:
        """Play a match; KeyboardInterrupt if it is stopped."""
        work = self.work
        games = openings * math.factorial(len(names))
        if work.should_stop():
            raise KeyboardInterrupt
        began = work.task.seconds
        done = sum(len(result.games) for result in self.results)
        work.task.compile()
        opening = OpeningOptions(self.how.opening_plies)
        played = play_meeting(
            [self.players[name] for name in names],
            self.rules,
            MatchOptions(games, min(games, _MOST_BOARDS), opening, should_stop=work.should_stop),
            seed=self.how.seed,
            before=self.before[frozenset(names)],
            on_progress=lambda more: work.task(done + more),
        )
        if len(played.games) < games:
            raise KeyboardInterrupt
        self.before[frozenset(names)] += openings
        if self.how.records is not None:
            with sparing(
                self.how.records, "the tournament goes on, and some games are missing there"
            ):
                played.write(self.how.records, append=bool(self.results))
        self.results.append(played)
        scores = tournament.scores_of(played)
        self.met.append(TournamentMatch("stopped", len(self.met) + 1, names, scores, None))
        work.display.say(report.match_line(played, seconds=work.task.seconds - began))
        work.should_stop.keeps_work()
        return scores


def _play_form(
    how: TournamentOptions, names: list[str], openings: int, meetings: _Meetings
) -> dict[str, Any]:
    """Play all meetings of a form; returns what its result says of them."""
    rules = meetings.rules
    play = meetings.play
    if how.form == ROUND_ROBIN:
        met = tournament.round_robin(names, play, openings=openings, seats=rules.players)
        return {"standings": tournament.standings(names, met), "meetings": tuple(met)}
    groups = []
    met = []
    seeds = names
    behind = []
    if how.heats:
        groups, met = tournament.heats(names, play, size=how.heats, openings=openings)
        seeds, behind = tournament.seeds_of(groups)
    bracket = tournament.double_elimination(seeds, play, openings=openings, starts_behind=behind)
    by_place = {row.name: row for row in tournament.standings(names, bracket.meetings)}
    return {
        "standings": [by_place[name] for name in bracket.places],
        "meetings": (*met, *bracket.meetings),
        "heats": groups,
        "elimination": bracket,
    }
