"""Ratings as tables for the console and as JSON-ready figures."""

from typing import Any

from train.metrics.text_table import Table
from train.ratings.pool import Measured
from train.ratings.results_cache import record_of


def rating_table(measured: Measured, *, title: str, caption: str) -> Table:
    """The pool, strongest first."""
    rows, cells = rating_rows(measured), []
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        ahead = measured.ratings.superiority(row["player"], below["player"]) if below else None
        interval = "fixed" if row["is_anchor"] else f"{row['low']:.0f} to {row['high']:.0f}"
        iteration = "" if row["iteration"] is None else str(row["iteration"])
        figures = f"{row['elo']:.0f}", interval, str(row["games"]), f"{row['score']:.1%}"
        cells.append([row["player"], iteration, *figures, "" if ahead is None else f"{ahead:.1%}"])
    heads = ("player", "iteration", "Elo", "95 % interval", "games", "score", "ahead of the next")
    return Table(title, heads, cells, caption)


def rating_rows(measured: Measured) -> list[dict[str, Any]]:
    """One row for each player, strongest first; `low` to `high` is the 95 % interval."""
    ratings = measured.ratings
    rows = [
        {
            "player": entrant.name,
            "run": entrant.run,
            "iteration": entrant.iteration,
            "elo": float(ratings.elo[place]),
            "low": float(ratings.low[place]),
            "high": float(ratings.high[place]),
            "games": int(ratings.games[place]),
            "score": float(ratings.score[place]),
            "is_anchor": entrant.name == ratings.anchor,
            "identity": entrant.identity,
        }
        for place, entrant in enumerate(measured.entrants)
    ]
    return sorted(rows, key=lambda row: -row["elo"])


def rating_record(measured: Measured) -> dict[str, Any]:
    """A measured pool as JSON-ready figures."""
    return {
        "games": measured.games,
        "anchor": measured.ratings.anchor,
        "is_interrupted": measured.is_interrupted,
        "players": rating_rows(measured),
        "results": [record_of(result) | {"games": result.games} for result in measured.results],
    }
