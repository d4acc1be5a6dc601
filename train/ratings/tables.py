"""Ratings and tournaments as tables for the console and as JSON-ready figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from train.arena.seats.plackett_luce import TableResult
from train.arena.tournament import (
    FINAL,
    LOSERS,
    WINNERS,
    Elimination,
    Meeting,
    Score,
    Standing,
    score_between,
)
from train.ratings.pool import Measured

_BRACKETS = {WINNERS: "winners' bracket", LOSERS: "losers' bracket", FINAL: "final"}


def rating_table(measured: Measured, *, title: str, caption: str) -> Table:
    """The pool, strongest first."""
    table = Table(title=Text(title), caption=caption, caption_justify="left")
    table.add_column("player", overflow="fold")
    for name in ("iteration", "Elo", "95 % interval", "games", "score", "ahead of the next"):
        table.add_column(name, justify="right")
    rows = rating_rows(measured)
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        ahead = measured.ratings.superiority(row["player"], below["player"]) if below else None
        table.add_row(
            Text(row["player"]),
            "" if row["iteration"] is None else str(row["iteration"]),
            f"{row['elo']:.0f}",
            "fixed" if row["is_anchor"] else f"{row['low']:.0f} to {row['high']:.0f}",
            str(row["games"]),
            f"{row['score']:.1%}",
            "" if ahead is None else f"{ahead:.1%}",
        )
    return table


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
        "results": [_result_record(result) for result in measured.results],
    }


def _result_record(result: Any) -> dict[str, Any]:
    if isinstance(result, TableResult):
        return {
            "players": list(result.players),
            "games": round(result.games),
            "wins": list(result.wins),
        }
    first, second, batch = result
    return {
        "first": first,
        "second": second,
        "pairs": list(batch.pairs),
        "wins": batch.wins,
        "draws": batch.draws,
        "losses": batch.losses,
        "territory": list(batch.territory),
    }


def cross_table(
    rows: Sequence[Standing], meetings: Sequence[Meeting], *, title: str, caption: str
) -> Table:
    """A round robin: places, totals, and points against each opponent in the order of places."""
    table = Table(title=Text(title), caption=caption, caption_justify="left")
    table.add_column("", justify="right")
    table.add_column("player", overflow="fold")
    for name in ("points", "won, drawn, lost", "territory"):
        table.add_column(name, justify="right")
    for place in range(1, len(rows) + 1):
        table.add_column(str(place), justify="right")
    for place, row in enumerate(rows, start=1):
        against = [score_between(meetings, row.name, other.name) for other in rows]
        cells = ["" if score is None else f"{score.points:g}" for score in against]
        cells[place - 1] = "·"
        table.add_row(str(place), Text(row.name), f"{row.points:g}", *_totals(row.score), *cells)
    return table


def bracket_tree(played: Elimination, *, title: str, caption: str) -> Tree:
    """A double elimination, round by round, and its first places."""
    tree = Tree(Text(title))
    for bracket, name in _BRACKETS.items():
        met = [meeting for meeting in played.meetings if meeting.bracket == bracket]
        if not met:
            continue
        branch = tree.add(Text(name))
        for number in sorted({meeting.round for meeting in met}):
            twig = branch.add(Text(f"round {number}"))
            for meeting in met:
                if meeting.round == number:
                    twig.add(_meeting_line(meeting))
    places = tree.add(Text("places"))
    for place, name in enumerate(played.places, start=1):
        behind = "  (began in the losers' bracket)" if name in played.starts_behind else ""
        places.add(Text(f"{place}. {name}{behind}"))
    tree.add(Text(caption, style="dim"))
    return tree


def meeting_record(meeting: Meeting) -> dict[str, Any]:
    """A meeting as JSON-ready figures."""
    return {
        "bracket": meeting.bracket,
        "round": meeting.round,
        "first": meeting.first,
        "second": meeting.second,
        **score_record(meeting.score),
        "winner": meeting.winner,
    }


def score_record(score: Score) -> dict[str, Any]:
    """A score as JSON-ready figures."""
    return {
        "wins": score.wins,
        "draws": score.draws,
        "losses": score.losses,
        "territory": [score.own, score.other],
    }


def standing_record(row: Standing) -> Mapping[str, Any]:
    """A row of a table as JSON-ready figures."""
    return {"player": row.name, "points": row.points, **score_record(row.score)}


def _totals(score: Score) -> tuple[str, str]:
    return f"{score.wins}, {score.draws}, {score.losses}", f"{score.own} : {score.other}"


def _meeting_line(meeting: Meeting) -> Text:
    score = meeting.score
    line = Text()
    for name, points in ((meeting.first, score.points), (meeting.second, score.reversed().points)):
        style = "bold" if name == meeting.winner else ""
        line.append(f"{' – ' if line else ''}{name} {points:g}", style=style)
    line.append(f"   territory {score.own} : {score.other}   → {meeting.winner}")
    return line
