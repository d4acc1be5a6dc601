"""Results of matches, tournaments and ratings: each knows its table, its summary and its figure."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rich.text import Text

from train.arena import report, sprt
from train.arena.elo import Ratings
from train.arena.result import MatchResult, wilson_interval
from train.arena.sprt import Verdict
from train.arena.tournament import Elimination, StandingsRow, TournamentMatch
from train.config.sprt import Sprt
from train.metrics.intervals import Interval, intervals_figure, ratings_figure
from train.metrics.rows import METRICS_FILE, Row, read_rows
from train.ratings.pool import MeasuredPool
from train.runtime.display import Table, to_dataframe
from train.runtime.errors import UsageError
from train.runtime.files import writing
from wallgo_jax.formats import records
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import Rules, name_of


class Result:
    """A result of the interface: it knows its table, its figures as JSON, its rows and its picture.

    `table()`, `summary()`, `figure()` and `rows`, and `is_interrupted`, whether a signal ended the
    work, are those of each kind of result.
    """

    kept = "the same command starts anew"
    """What a command says of the work that a signal ended."""
    rows: Any
    table: Any

    def shown(self) -> list[Any]:
        """What the command prints."""
        return [self.table()]

    def to_dataframe(self) -> Any:
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows if isinstance(self.rows, list) else self.rows())


@dataclasses.dataclass(frozen=True, repr=False)
class PlayedMatch(Result, MatchResult):
    """A match with its table, its summary and its figure.

    Attributes:
      settings: seed and openings, as `match --json` names them.
      caption: how the games were played, in words.
      test: a sequential test that could end it.
      total: games that it would have without a stop.
      is_interrupted: a signal ended it.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    caption: str = ""
    test: Sprt | None = None
    total: int = 0
    is_interrupted: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """What the sequential test says, if there is one."""
        return None if self.test is None else sprt.decide(self.test, self.pair_counts)

    def __repr__(self) -> str:
        if len(self.names) > 2:
            each = [self.of(number) for number in range(len(self.names))]
            rates = ", ".join(f"{of.name} {of.win_rate:.1%}" for of in each)
            return f"<{len(self.games)} games of {self.rules.players}, {self.draws} drawn: {rates}>"
        low, high = self.interval
        return (
            f"<{self.first} against {self.second}: {self.win_rate:.1%} ({low:.1%} to {high:.1%}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost>"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each game, at more than two seats for each seat of each game."""
        if self.rules.players == 2:
            games = zip(self.seats, self.outcome, self.games, self.territory, strict=True)
            return [
                {"game": number, "red": self.names[seats[0]], "outcome": int(outcome)}
                | {"plies": len(actions), "territory": int(own), "territory_of_second": int(other)}
                for number, (seats, outcome, actions, (own, other)) in enumerate(games)
            ]
        places = self.places
        return [
            {"game": game, "seat": seat, "player": self.names[self.seats[game, seat]]}
            | {"reward": float(self.rewards[game, seat]), "place": int(places[game, seat])}
            | {"territory": int(self.cells[game, seat]), "plies": len(actions)}
            for game, actions in enumerate(self.games)
            for seat in range(self.rules.players)
        ]

    @property
    def kept(self) -> str:
        """What a command says of the work that a signal ended."""
        return f"the {len(self.games)} games that are over count; {super().kept}"

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes: win rates with intervals, territory, lengths."""
        test, verdict = self.test, self.verdict
        tested = {"sprt": sprt.verdict_record(test, verdict) if test and verdict else None}
        return {**self.settings, **(tested if self.settings else {}), **report.match_record(self)}

    def table(self, *, caption: str | None = None) -> Any:
        """Its figures as a table of rich."""
        if caption is None:
            caption, verdict = self.caption, self.verdict
            if self.test is not None:
                caption += f" · SPRT {self.test.elo0:g},{self.test.elo1:g}"
            is_decided = verdict is not None and verdict.decision != sprt.UNDECIDED
            if len(self.games) < self.total and not is_decided:
                caption = f"stopped after {len(self.games)} of {self.total} games · {caption}"
        return report.match_table([self], caption=caption, has_entrants=self.rules.players > 2)

    def shown(self) -> list[Any]:
        """What `match` prints: the table, games that were lost without the rules, the test."""
        test, verdict = self.test, self.verdict
        lines = [Text(line) for line in report.forfeit_lines(self)]
        said = [sprt.in_words(test, verdict)] if test and verdict else []
        return [self.table(), *lines, *said]

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
            of_each = [self.of(number) for number in range(len(self.names))]
            rows = [Interval(of.name, of.win_rate, *of.interval) for of in of_each]
            return _rates_figure(rows, players, f"{games} games at one table")
        rows = [Interval("all games", self.win_rate, *self.interval)]
        for seat, name in enumerate(("as Red", "as Blue")):
            rate, games_at = self.of(0).win_rate_at(seat), int((self.seats[:, seat] == 0).sum())
            if rate is not None:
                rows.append(Interval(name, rate, *wilson_interval(rate, games_at)))
        title = f"{self.first} against {self.second}"
        return _rates_figure(rows, 2, title, label=f"win rate of {self.first} in {games} games")


@dataclasses.dataclass(frozen=True)
class Series(Result):
    """Matches that were read from record files.

    Attributes:
      matches: one for each rule set and group of players.
      unfinished: games that are not over and count in none.
    """

    matches: tuple[PlayedMatch, ...]
    unfinished: int = 0
    is_interrupted = False

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes."""
        matches = [match.summary() for match in self.matches]
        return {"matches": matches, "unfinished": self.unfinished}

    def shown(self) -> list[Any]:
        """What `match FILE` prints: a table for each rule set and first player."""
        tables: dict[Any, list[PlayedMatch]] = {}
        for match in self.matches:
            several = match.names if match.rules.players > 2 else match.first
            tables.setdefault((match.rules, several), []).append(match)
        caption = f"{self.unfinished} games that are not over do not count"
        return [
            report.match_table(
                each,
                caption=caption if self.unfinished else "",
                has_entrants=each[0].rules.players > 2,
            )
            for each in tables.values()
        ]


@dataclasses.dataclass(frozen=True, repr=False)
class TournamentResult(Result):
    """A tournament.

    Attributes:
      form: of the tournament, one of `train.api.arguments.FORMS`.
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
    tables: Sequence[PlayedMatch] = ()
    heats: Sequence[Sequence[StandingsRow]] = ()
    elimination: Elimination | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    total: int = 0
    stop: BaseException | None = None

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
    def kept(self) -> str:
        """What a command says of the work that a signal ended."""
        return f"the {len(self.meetings)} meetings that are over count; {super().kept}"

    def summary(self) -> dict[str, Any]:
        """What `tournament --json` writes: meetings or matches, and standings or places."""
        summary: dict[str, Any] = {"format": self.form, **_rules_record(self.rules)}
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

    def shown(self) -> list[Any]:
        """What `tournament` prints, as tables and trees of rich."""
        table, rules, settings = report.standings_table, name_of(self.rules), self.settings
        each = f"{settings['games_a_meeting']} games a meeting"
        caption = f"stopped after {self.games} of {self.total} games" if self.stop else each
        caption += f" · seed {settings['seed']} · {settings['opening_plies']} random opening plies"
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

    def figure(self) -> Any:
        """The standings as a figure of matplotlib: shares of the points, with intervals."""
        rows = [
            Interval(row.name, row.share, *wilson_interval(row.share, row.score.games))
            for row in self.standings
        ]
        return _rates_figure(rows, self.rules.players, "Tournament")


@dataclasses.dataclass(frozen=True, repr=False)
class RatedPool(Result):
    """Players rated in one pool.

    Attributes:
      measured: with all games of each pairing or table.
      rules: of the games.
      settings: seed and numbers of games, as `elo --json` names them.
      cache: file that keeps the games, if one does.
      heading: of the table and of curves.
    """

    measured: MeasuredPool
    rules: Rules
    settings: Mapping[str, Any]
    cache: Path | None = None
    heading: str = "Elo"

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
        """A dict for each player, the strongest first; `low` to `high` is the 95 % interval."""
        ratings, figures = self.ratings, ("elo", "low", "high", "games", "score")
        rows = [
            {"player": entrant.name, "run": entrant.run, "iteration": entrant.iteration}
            | {key: getattr(ratings, key)[place].item() for key in figures}
            | {"is_anchor": entrant.name == ratings.anchor, "identity": entrant.identity}
            for place, entrant in enumerate(self.measured.entrants)
        ]
        return sorted(rows, key=lambda row: -row["elo"])

    @property
    def kept(self) -> str:
        """What a command says of the work that a signal ended."""
        where = f" in {self.cache}" if self.cache else ""
        return f"the games of finished pairings are kept{where}; the same command goes on"

    @property
    def is_interrupted(self) -> bool:
        """A signal ended it."""
        return self.measured.is_interrupted

    def summary(self) -> dict[str, Any]:
        """What `elo --json` writes: the ratings, and the games of each pairing or table."""
        measured = self.measured
        record = {
            "games": measured.games,
            "anchor": measured.ratings.anchor,
            "is_interrupted": measured.is_interrupted,
            "players": self.rows,
            "results": [each._asdict() | {"games": each.games} for each in measured.results],
        }
        return {**_rules_record(self.rules), **self.settings, **record}

    @property
    def title(self) -> str:
        """What the table and the figure are headed with."""
        return f"{self.heading} on {name_of(self.rules)}"

    @property
    def caption(self) -> str:
        """What was played, in words."""
        settings, measured, budget = self.settings, self.measured, self.settings["simulations"]
        searchers = (
            row["run"] or row["player"].startswith("search:")
            for row in self.rows
            if row["player"].endswith(f"@{budget}") or row["run"]
        )
        searches = f"{budget} simulations · " if budget and any(searchers) else ""
        return (
            f"{self.zero} · {measured.games} games, {measured.new} of them new · "
            f"seed {settings['seed']} · {searches}{settings['opening_plies']} random opening plies"
        )

    def table(self) -> Table:
        """The ratings as a table of rich, the strongest player first."""
        cells = []
        for row in self.rows:
            interval = "fixed" if row["is_anchor"] else f"{row['low']:.0f} to {row['high']:.0f}"
            iteration = "" if row["iteration"] is None else str(row["iteration"])
            figures = f"{row['elo']:.0f}", interval, str(row["games"]), f"{row['score']:.1%}"
            cells.append([row["player"], iteration, *figures])
        heads = ("player", "iteration", "Elo", "95 % interval", "games", "score")
        return Table(self.title, heads, cells, self.caption)

    def figure(self, *, axis: Literal["iteration", "positions"] = "iteration") -> Any:
        """The Elo curves of the runs as a figure of matplotlib, over iterations or training
        positions; without runs, each rating with its 95 % interval."""
        runs = {row["run"]: row["player"].rpartition("/")[0] for row in self.rows if row["run"]}
        if not runs:
            rated = [Interval(r["player"], r["elo"], r["low"], r["high"]) for r in self.rows]
            title = f"Elo, {self.zero}"
            return intervals_figure(rated, title=title, x_label="Elo points, 95 % intervals")
        x_label, x_of = "iteration", lambda run, iterations: iterations
        if axis == "positions":
            x_label, x_of = "training positions", positions_after
        labels = {"title": self.title, "x_label": x_label}
        return ratings_figure(self.rows, runs, x_of=x_of, **labels)


def metrics_of(run: Path) -> list[Row]:
    """The metrics of a run so far.

    Raises:
      UsageError: there are none.
    """
    path = run / METRICS_FILE
    rows = read_rows(path)
    if not rows:
        raise UsageError(f"{path}: has no iteration yet")
    return rows


def positions_after(run: Path | str, iterations: Sequence[int]) -> list[float]:
    """Positions that a run had played by the end of each of these iterations.

    Raises:
      UsageError: its metrics do not say.
    """
    rows = metrics_of(Path(run))
    if not all(isinstance(row.get("positions"), int | float) for row in rows):
        path = Path(run) / METRICS_FILE
        named = argument("axis", "positions")
        raise UsageError(f"{path}: does not tell positions played, which {named} needs")
    return [sum(row["positions"] for row in rows if row["iteration"] <= n) for n in iterations]


def _rules_record(rules: Rules) -> dict[str, Any]:
    return {"rules": rules.to_dict(), "rules_name": name_of(rules)}


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
