"""Results of matches as tables and records."""

import collections
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from train.arena.result import MatchResult
from wallgo_jax.game.rules import name_of

_MOST_TOLD = 10


def match_table(results: Sequence[MatchResult], *, caption: str) -> Table:
    """A table of matches of one player, a column for each opponent, figures from its side."""
    first = results[0]
    table = Table(
        title=Text(f"{first.first} on {name_of(first.rules)}"),
        caption=caption,
        caption_justify="left",
    )
    table.add_column("")
    for result in results:
        table.add_column(Text(f"against {result.second}"), justify="right")
    for name, figure in _FIGURES:
        table.add_row(name, *(figure(result) for result in results))
    return table


def match_line(result: MatchResult, *, seconds: float) -> str:
    """A match in one line: win rate with its 95 % interval, from the first player's side."""
    low, high = result.interval
    forfeited = f"{result.forfeited} of them without the rules, " if result.forfeited else ""
    return (
        f"{result.first} against {result.second}: {result.win_rate:.1%} ({100 * low:.1f} to "
        f"{high:.1%}), {result.wins} won, {result.draws} drawn, {result.losses} lost, "
        f"{forfeited}{seconds:.1f} s"
    )


def forfeit_lines(result: MatchResult) -> list[str]:
    """A line for each way in which games were lost without the rules, the most frequent first."""
    found = collections.Counter(filter(None, result.forfeits)).most_common()
    lines = [f"{text} ({count} games)" if count > 1 else text for text, count in found]
    more = len(lines) - _MOST_TOLD
    return lines if more <= 0 else [*lines[:_MOST_TOLD], f"and {more} more"]


def _interval(result: MatchResult) -> str:
    low, high = result.interval
    return f"{low:.1%} to {high:.1%}"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.2%}"


def _territory(result: MatchResult) -> str:
    own, other = result.territory.mean(axis=0)
    return f"{own:.1f} : {other:.1f}"


def _territory_ratio(result: MatchResult) -> str:
    return f"{result.territory_ratio:.2f}" if result.territory[:, 1].any() else "-"


_FIGURES: tuple[tuple[str, Callable[[MatchResult], str]], ...] = (
    ("games", lambda result: str(len(result.outcome))),
    ("won, drawn, lost", lambda result: f"{result.wins}, {result.draws}, {result.losses}"),
    ("win rate", lambda result: f"{result.win_rate:.2%}"),
    ("95 % interval", _interval),
    ("win rate as Red", lambda result: _rate(result.win_rate_as(red=True))),
    ("win rate as Blue", lambda result: _rate(result.win_rate_as(red=False))),
    ("Red's win rate", lambda result: f"{result.red_win_rate:.2%}"),
    ("territory, cells", _territory),
    ("territory ratio", _territory_ratio),
    ("plies a game", lambda result: f"{result.mean_length:.1f}"),
    ("distinct games", lambda result: str(result.distinct_games)),
)


def match_record(result: MatchResult) -> dict[str, Any]:
    """A match as JSON-ready figures from the first player's side.

    `territory_ratio` is None where the second player had no territory at all, the win rate as a
    colour where there is no game with it, as in a match that was stopped.
    """
    return {
        "first": result.first,
        "second": result.second,
        "rules": name_of(result.rules),
        "games": len(result.outcome),
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "win_rate": result.win_rate,
        "interval_95": list(result.interval),
        "territory": [float(x) for x in result.territory.mean(axis=0)],
        "territory_ratio": result.territory_ratio if result.territory[:, 1].any() else None,
        "mean_length": result.mean_length,
        "win_rate_as_red": result.win_rate_as(red=True),
        "win_rate_as_blue": result.win_rate_as(red=False),
        "red_win_rate": result.red_win_rate,
        "distinct_games": result.distinct_games,
    } | ({"forfeits": [text for text in result.forfeits if text]} if result.forfeited else {})
