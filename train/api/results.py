"""Results of matches, tournaments and ratings: each knows its table, its record and its figure."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from train.api.common.tables import to_dataframe
from train.arena import report
from train.arena.elo import Ratings
from train.arena.result import MatchResult, wilson_interval
from train.arena.tournament import Elimination
from train.arena.tournament import StandingsRow as Standing
from train.arena.tournament import TournamentMatch as Meeting
from train.metrics.intervals import Interval, intervals_figure
from train.ratings import report as ratings_report
from train.ratings.pool import MeasuredPool as Measured
from train.runtime.files import writing
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules, name_of


class PlayedMatch(MatchResult):
    """A match with its table, its record and its figure."""

    def __repr__(self) -> str:
        if len(self.names) > 2:
            rates = ", ".join(f"{name} {self.of(e).win_rate:.1%}" for e, name in self._named())
            return f"<{len(self.games)} games of {self.rules.players}, {self.draws} drawn: {rates}>"
        low, high = self.interval
        return (
            f"<{self.first} against {self.second}: {self.win_rate:.1%} ({low:.1%} to {high:.1%}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost>"
        )

    def _named(self) -> list[tuple[int, str]]:
        return list(enumerate(self.names))

    def to_dataframe(self) -> Any:
        """A table of pandas with a line for each game, at more than two seats for each seat of
        each game."""
        return to_dataframe(
            self._game_rows() if self.rules.players == 2 else list(self._seat_rows())
        )

    def _game_rows(self) -> list[dict[str, Any]]:
        games = zip(self.seats, self.outcome, self.games, self.territory, strict=True)
        return [
            {
                "game": number,
                "red": self.names[seats[0]],
                "outcome": int(outcome),
                "plies": len(actions),
                "territory": int(own),
                "territory_of_second": int(other),
            }
            for number, (seats, outcome, actions, (own, other)) in enumerate(games)
        ]

    def _seat_rows(self) -> Iterator[dict[str, Any]]:
        places = self.places
        for game, actions in enumerate(self.games):
            for seat in range(self.rules.players):
                yield {
                    "game": game,
                    "seat": seat,
                    "player": self.names[self.seats[game, seat]],
                    "reward": float(self.rewards[game, seat]),
                    "place": int(places[game, seat]),
                    "territory": int(self.cells[game, seat]),
                    "plies": len(actions),
                }

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes: win rates with intervals, territory, lengths."""
        return report.match_record(self)

    def table(self, *, caption: str = "") -> Any:
        """What `match` prints, as a table of rich."""
        return report.match_table([self], caption=caption, has_entrants=self.rules.players > 2)

    def write(self, path: Path | str, *, append: bool = False) -> None:
        """Write the games, a JSON object a line, in place of a file or at its end.

        Raises:
          UsageError: the file cannot be written.
        """
        with writing(Path(path)):
            records.write(Path(path), report.game_records(self), append=append)

    def figure(self) -> Any:
        """Win rates as a figure of matplotlib: the first player's in all games and with each colour
        that it had, at more than two seats each player's."""
        games, players = len(self.games), self.rules.players
        if players > 2:
            of_each = [self.of(entrant) for entrant, _ in self._named()]
            rows = [Interval(of.name, of.win_rate, *of.interval) for of in of_each]
            return _rates_figure(rows, players, f"{games} games at one table")
        rows = [Interval("all games", self.win_rate, *self.interval)]
        for seat, name in enumerate(("as Red", "as Blue")):
            rate, games_at = self.of(0).win_rate_at(seat), int((self.seats[:, seat] == 0).sum())
            if rate is not None:
                rows.append(Interval(name, rate, *wilson_interval(rate, games_at)))
        title = f"{self.first} against {self.second}"
        return _rates_figure(rows, 2, title, label=f"win rate of {self.first} in {games} games")


@dataclasses.dataclass(frozen=True, repr=False)
class TournamentResult:
    """A tournament.

    Attributes:
      form: one of `FORMS`.
      rules: what was played.
      standings: a row a player, the first place first; points in a round robin, places in an
        elimination.
      meetings: in the order of play.
      tables: the matches, in the order of play; a meeting that was level has several.
      heats: the standings of each heat before an elimination.
      elimination: the bracket, if there was one.
      stop: what ended it before all had met, as the caller of `Watch.keeps_finished` asked.
    """

    form: str
    rules: Rules
    standings: tuple[Standing, ...]
    meetings: tuple[Meeting, ...]
    tables: tuple[PlayedMatch, ...]
    heats: tuple[tuple[Standing, ...], ...] = ()
    elimination: Elimination | None = None
    stop: BaseException | None = None

    def __repr__(self) -> str:
        table = ", ".join(f"{row.name} {row.points:.4g}" for row in self.standings)
        return f"<tournament of {len(self.meetings)} meetings: {table}>"

    @property
    def games(self) -> int:
        """Games of all meetings."""
        return sum(len(result.games) for result in self.tables)

    def to_dataframe(self) -> Any:
        """The standings as a table of pandas."""
        return to_dataframe([report.standing_record(row) for row in self.standings])

    def summary(self) -> dict[str, Any]:
        """What `tournament --json` writes: the meetings or matches, and the standings or places."""
        found: dict[str, Any] = {"is_stopped": True} if self.stop else {}
        if self.rules.players > 2:
            found["tables"] = [table.summary() for table in self.tables]
        else:
            met = [report.meeting_record(meeting) for meeting in self.meetings]
            found["meetings"] = met
        if self.elimination is not None:
            return found | {"places": list(self.elimination.places)}
        rows = [report.standing_record(row) for row in self.standings]
        return found | {"table": rows}

    def shown(self, *, caption: str = "") -> list[Any]:
        """What `tournament` prints, as tables and trees of rich."""
        table, rules = report.standings_table, name_of(self.rules)
        in_heats = [meeting for meeting in self.meetings if meeting.bracket.startswith("heat")]
        heats = [
            table(rows, in_heats, title=f"Heat {n} on {rules}, by territory", caption=caption)
            for n, rows in enumerate(self.heats, start=1)
        ]
        if self.elimination is not None:
            title = f"Double elimination on {rules}"
            bracket = report.bracket_tree(self.elimination, title=title, caption=caption)
            return [*heats, bracket]
        title = f"{self.form}, stopped, on {rules}" if self.stop else f"Round robin on {rules}"
        return [*heats, table(self.standings, self.meetings, title=title, caption=caption)]

    def figure(self) -> Any:
        """The standings as a figure of matplotlib: shares of the points, with intervals."""
        rows = [
            Interval(row.name, row.share, *wilson_interval(row.share, row.score.games))
            for row in self.standings
        ]
        return _rates_figure(rows, self.rules.players, "Tournament")


@dataclasses.dataclass(frozen=True, repr=False)
class RatedPool:
    """Players rated in one pool.

    Attributes:
      measured: with all games of each pairing or table.
    """

    measured: Measured

    def __repr__(self) -> str:
        ratings = ", ".join(f"{row['player']} {row['elo']:.0f}" for row in self.rows)
        return f"<ratings of {self.measured.games} games: {ratings}>"

    @property
    def ratings(self) -> Ratings:
        """Elo points with 95 % intervals and their covariance."""
        return self.measured.ratings

    @property
    def zero(self) -> str:
        """Whose rating is 0, in words."""
        return f"{self.ratings.anchor} = 0" if self.ratings.anchor else "mean = 0"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each player, the strongest first."""
        return ratings_report.rating_rows(self.measured)

    def to_dataframe(self) -> Any:
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows)

    def summary(self) -> dict[str, Any]:
        """What `elo --json` writes: the ratings, and the games of each pairing or table."""
        return ratings_report.rating_record(self.measured)

    def table(self, *, title: str = "Elo", caption: str = "") -> Any:
        """What `elo` prints, as a table of rich."""
        return ratings_report.rating_table(self.measured, title=title, caption=caption)

    def figure(
        self,
        *,
        title: str = "",
        x_label: str = "iteration",
        x_of: Callable[[str, list[int]], Sequence[float]] = lambda run, iterations: iterations,
    ) -> Any:
        """The Elo curves of the runs as a figure of matplotlib; without runs, each rating with its
        95 % interval.

        Args:
          title: of the figure; by default it says whose rating is 0.
          x_label: says what the horizontal axis of curves is.
          x_of: (run's directory, iterations) -> their places on that axis.
        """
        title = title or f"Elo, {self.zero}"
        runs = {row["run"]: row["player"].rpartition("/")[0] for row in self.rows if row["run"]}
        if runs:
            drawn, others = ratings_report.curves_of(self.rows, runs, x_of=x_of)
            return ratings_report.ratings_figure(
                drawn, others, title=title, x_label=x_label, y_label="Elo"
            )
        rows = [Interval(row["player"], row["elo"], row["low"], row["high"]) for row in self.rows]
        return intervals_figure(rows, title=title, x_label="Elo points, 95 % intervals")


def _rates_figure(rows: Sequence[Interval], players: int, title: str, *, label: str = "") -> Any:
    label = label or ("share of the points" if players == 2 else "win rate")
    drawn = "" if players == 2 else f", a draw as 1/{players}"
    return intervals_figure(
        rows,
        title=title,
        x_label=f"{label}{drawn}, 95 % intervals",
        middle=1 / players,
        is_share=True,
    )
