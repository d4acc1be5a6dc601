"""The result of a match, and of several matches of the same players together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from train.arena import report, sprt
from train.arena.figures import MatchFigures, wilson_interval
from train.arena.sprt import Verdict
from train.config.sprt import Sprt
from train.runtime.display import Table
from train.runtime.files import writing
from train.runtime.results import Result
from wallgo_jax.formats import records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, repr=False)
class MatchResult(Result, MatchFigures):
    """A match, game by game, with its figures, its table and its picture.

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
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

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
    def on_stop(self) -> str:
        """Message printed after an interrupt."""
        return f"the {len(self.games)} games that are over count; {super().on_stop}"

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes: win rates with intervals, territory, lengths."""
        test = self.test
        verdict = self.verdict
        tested = {"sprt": sprt.verdict_record(test, verdict) if test and verdict else None}
        return {**self.settings, **(tested if self.settings else {}), **report.match_record(self)}

    def table(self, *, caption: str | None = None) -> Table:
        """Its figures as a table of rich."""
        if caption is None:
            caption = self.caption
            verdict = self.verdict
            if self.test is not None:
                caption += f" · SPRT {self.test.elo0:g},{self.test.elo1:g}"
            is_decided = verdict is not None and verdict.decision != sprt.UNDECIDED
            if len(self.games) < self.total and not is_decided:
                caption = f"stopped after {len(self.games)} of {self.total} games · {caption}"
        return report.match_table([self], caption=caption, has_entrants=self.rules.players > 2)

    def shown(self) -> list[Any]:
        """What `match` prints: the table, games lost by forfeit, the test."""
        test = self.test
        verdict = self.verdict
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

    def figure(self) -> Figure:
        """Win rates as a figure of matplotlib: the first player's in all games and with each colour
        that it had, at more than two seats each player's."""
        from train.metrics.intervals import Interval, rates_figure

        games = len(self.games)
        players = self.rules.players
        if players > 2:
            of_each = [self.of(number) for number in range(len(self.names))]
            rows = [Interval(of.name, of.win_rate, *of.interval) for of in of_each]
            return rates_figure(rows, players, f"{games} games at one table")
        rows = [Interval("all games", self.win_rate, *self.interval)]
        for seat, name in enumerate(("as Red", "as Blue")):
            rate = self.of(0).win_rate_at(seat)
            games_at = int((self.seats[:, seat] == 0).sum())
            if rate is not None:
                rows.append(Interval(name, rate, *wilson_interval(rate, games_at)))
        title = f"{self.first} against {self.second}"
        return rates_figure(rows, 2, title, label=f"win rate of {self.first} in {games} games")


def join(one: MatchResult, other: MatchResult) -> MatchResult:
    """Two matches of the same players under the same rules as one, the first one's games first."""
    other = dataclasses.replace(other, opening=other.opening + one.opening.max() + 1)
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in ("seats", "rewards", "cells", "regions", "opening")
    }
    forfeits = one.forfeits + other.forfeits if one.forfeits and other.forfeits else one.forfeits
    return dataclasses.replace(one, **joined, games=one.games + other.games, forfeits=forfeits)
