"""Matches of three and four players as tables and records."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from train.arena.seats.result import SeatedResult
from wallgo_jax.game.rules import name_of

_COLOURS = ("Red", "Blue", "Green", "Yellow")
_ORDINALS = ("first", "second", "third", "fourth")


def seats_table(result: SeatedResult, *, caption: str) -> Table:
    """A match as a table, a column for each entrant."""
    table = Table(
        title=Text(f"{len(result.games)} games on {name_of(result.rules)}"),
        caption=caption,
        caption_justify="left",
    )
    table.add_column("")
    columns = []
    for entrant, name in enumerate(result.names):
        table.add_column(Text(name), justify="right", overflow="fold")
        columns.append(_figures(result, entrant))
    for row in columns[0]:
        table.add_row(row, *(column[row] for column in columns))
    return table


def opponents_table(results: Sequence[SeatedResult], *, caption: str) -> Table:
    """A table of matches of one entrant, a column for each opponent, figures from its side."""
    first = results[0]
    table = Table(
        title=Text(f"{first.names[0]} on {name_of(first.rules)}"),
        caption=caption,
        caption_justify="left",
    )
    table.add_column("")
    for result in results:
        table.add_column(Text(f"against {others(result)}"), justify="right")
    columns = [_figures(result, 0) for result in results]
    for row in columns[0]:
        table.add_row(row, *(column[row] for column in columns))
    return table


def others(result: SeatedResult) -> str:
    """The entrants beside the first one, each with its seats."""
    counted = [(name, result.seats_of(e)) for e, name in enumerate(result.names) if e]
    return ", ".join(name if seats == 1 else f"{seats} {name}" for name, seats in counted)


def seats_line(result: SeatedResult, *, seconds: float) -> str:
    """A match in one line: win rate with its 95 % interval, from the first entrant's side."""
    low, high = result.interval(0)
    return (
        f"{result.names[0]} against {others(result) or 'itself'}: {result.win_rate(0):.1%} "
        f"({100 * low:.1f} to {high:.1%}), {result.wins(0)} won, {result.draws} drawn, "
        f"{result.losses(0)} lost, {seconds:.1f} s"
    )


def _figures(result: SeatedResult, entrant: int) -> dict[str, str]:
    players, seats = result.rules.players, result.seats_of(entrant)
    reward, error = result.reward(entrant)
    shares = result.place_shares(entrant)
    figures = {
        "seats": str(seats),
        "won, drawn, lost": f"{result.wins(entrant)}, {result.draws}, {result.losses(entrant)}",
        f"win rate, draws 1/{players}": f"{result.win_rate(entrant):.2%}",
        "95 % interval": _interval(result.interval(entrant)),
        "won of those decided": _rate(result.decided_rate(entrant)),
        "95 % interval of it": _interval(result.decided_interval(entrant)),
        "reward": f"{reward:+.3f} ± {error:.3f}",
    }
    places = zip(_ORDINALS, shares, strict=False)
    figures |= {f"{name} place": f"{share:.1%}" for name, share in places}
    figures |= {
        f"win rate as {colour}": _rate(result.win_rate_at(entrant, seat))
        for seat, colour in enumerate(_COLOURS[:players])
    }
    return figures | {
        "territory, cells": f"{result.mean_territory(entrant):.1f}",
        "plies a game": f"{result.mean_length:.1f}",
        "distinct games": str(result.distinct_games),
    }


def _rate(rate: float) -> str:
    return "-" if math.isnan(rate) else f"{rate:.2%}"


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.1%} to {ends[1]:.1%}"


def seats_record(result: SeatedResult) -> dict[str, Any]:
    """A match as JSON-ready figures, from the first entrant's side as far as they are those of
    `train.arena.report.match_record`; figures of `entrants` are of one seat, but for wins and
    losses."""
    players = range(result.rules.players)
    return {
        "first": result.names[0],
        "second": others(result),
        "rules": name_of(result.rules),
        "games": len(result.games),
        "wins": result.wins(0),
        "draws": result.draws,
        "losses": result.losses(0),
        "win_rate": result.win_rate(0),
        "interval_95": list(result.interval(0)),
        "mean_length": result.mean_length,
        "distinct_games": result.distinct_games,
        "seat_win_rates": [result.seat_win_rate(seat) for seat in players],
        "entrants": [_entrant_record(result, e, name) for e, name in enumerate(result.names)],
    }


def _entrant_record(result: SeatedResult, entrant: int, name: str) -> dict[str, Any]:
    reward, error = result.reward(entrant)
    is_decided = result.draws < len(result.games)
    return {
        "player": name,
        "seats": result.seats_of(entrant),
        "wins": result.wins(entrant),
        "losses": result.losses(entrant),
        "win_rate": result.win_rate(entrant),
        "interval_95": list(result.interval(entrant)),
        "decided_win_rate": result.decided_rate(entrant) if is_decided else None,
        "decided_interval_95": list(result.decided_interval(entrant)),
        "reward": reward,
        "reward_interval_95": None if error != error else [reward - error, reward + error],
        "places": result.place_shares(entrant),
        "territory": result.mean_territory(entrant),
        "win_rate_by_seat": [
            _number(result.win_rate_at(entrant, seat)) for seat in range(result.rules.players)
        ],
    }


def _number(value: float) -> float | None:
    """A number, or None for NaN, which JSON does not have."""
    return None if value != value else value
