"""A pool of rated players as a result: its table, its figures and its picture."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from train.arena.elo import Ratings
from train.metrics.intervals import Interval, intervals_figure, ratings_figure
from train.metrics.rows import positions_after
from train.ratings.pool import MeasuredPool
from train.runtime.display import Table
from train.runtime.results import Result
from wallgo_jax.game.rules import Rules, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

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
        ratings = self.ratings
        figures = ("elo", "low", "high", "games", "score")
        rows = [
            {"player": entrant.name, "run": entrant.run, "iteration": entrant.iteration}
            | {key: getattr(ratings, key)[place].item() for key in figures}
            | {"is_anchor": entrant.name == ratings.anchor, "identity": entrant.identity}
            for place, entrant in enumerate(self.measured.entrants)
        ]
        return sorted(rows, key=lambda row: -row["elo"])

    @property
    def on_stop(self) -> str:
        """Message printed after an interrupt."""
        where = f" in {self.cache}" if self.cache else ""
        return f"the games of finished pairings are kept{where}; the same command goes on"

    @property
    def is_interrupted(self) -> bool:
        """A signal ended it."""
        return self.measured.is_interrupted

    def summary(self) -> dict[str, Any]:
        """What `elo --json` writes: the ratings, and the games of each pairing or table."""
        measured = self.measured
        rules = {"rules": self.rules.to_dict(), "rules_name": name_of(self.rules)}
        record = {
            "games": measured.games,
            "anchor": measured.ratings.anchor,
            "is_interrupted": measured.is_interrupted,
            "players": self.rows,
            "results": [each._asdict() | {"games": each.games} for each in measured.results],
        }
        return {**rules, **self.settings, **record}

    @property
    def title(self) -> str:
        """What the table and the figure are headed with."""
        return f"{self.heading} on {name_of(self.rules)}"

    @property
    def caption(self) -> str:
        """What was played, in words."""
        settings = self.settings
        measured = self.measured
        budget = self.settings["simulations"]
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

    def figure(self, *, axis: Literal["iteration", "positions"] = "iteration") -> Figure:
        """The Elo curves of the runs as a figure of matplotlib, over iterations or training
        positions; without runs, each rating with its 95 % interval."""
        runs = {row["run"]: row["player"].rpartition("/")[0] for row in self.rows if row["run"]}
        if not runs:
            rated = [Interval(r["player"], r["elo"], r["low"], r["high"]) for r in self.rows]
            title = f"Elo, {self.zero}"
            return intervals_figure(rated, title=title, x_label="Elo points, 95 % intervals")
        if axis == "positions":
            return ratings_figure(
                self.rows,
                runs,
                title=self.title,
                x_label="training positions",
                x_of=positions_after,
            )
        return ratings_figure(self.rows, runs, title=self.title, x_label="iteration")
