"""Tournaments at tables of three and four: every table of different players meets in all seatings.

P seats, N players.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from train.arena.result import wilson_interval
from train.arena.seats.report import seats_record
from train.arena.seats.result import SeatedResult
from wallgo_jax.game.rules import Rules, name_of


class TableStanding(NamedTuple):
    """A player's figures over all its tables."""

    name: str
    games: int
    wins: int
    draws: int
    reward: float  # mean
    places: tuple[float, ...]  # [P], shares of the games that it came first, second and so on
    territory: float  # cells, mean

    def win_rate(self, players: int) -> float:
        """Share of the games won, a draw counted as 1 / P."""
        return (self.wins + self.draws / players) / self.games


def tables_of(names: Sequence[str], seats: int) -> list[tuple[str, ...]]:
    """All tables of `seats` different players, in the order of names.

    Raises:
      ValueError: fewer players than seats, or a player named twice.
    """
    if len(names) < seats:
        raise ValueError(f"tournament: {len(names)} players; at least {seats} are wanted")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"tournament: player {twice[0]!r} is named twice")
    return list(itertools.combinations(names, seats))


def standings(results: Sequence[SeatedResult]) -> list[TableStanding]:
    """The players by mean reward, then by territory."""
    names = list(dict.fromkeys(name for result in results for name in result.names))
    rows = [_standing(name, [r for r in results if name in r.names]) for name in names]
    return sorted(rows, key=lambda row: (-row.reward, -row.territory))


def _standing(name: str, results: Sequence[SeatedResult]) -> TableStanding:
    """Tables have equally many games, so means of tables are means of games."""
    own = [(result, result.names.index(name)) for result in results]
    shares = zip(*(result.place_shares(entrant) for result, entrant in own), strict=True)
    return TableStanding(
        name,
        games=sum(len(result.games) for result in results),
        wins=sum(result.wins(entrant) for result, entrant in own),
        draws=sum(result.draws for result in results),
        reward=_mean([result.reward(entrant)[0] for result, entrant in own]),
        places=tuple(map(_mean, shares)),
        territory=_mean([result.mean_territory(entrant) for result, entrant in own]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def standings_table(rows: Sequence[TableStanding], rules: Rules, *, caption: str) -> Table:
    """A round robin of tables: places, rewards, win rates with their intervals."""
    table = Table(
        title=Text(f"Tables of {rules.players} on {name_of(rules)}"),
        caption=caption,
        caption_justify="left",
    )
    table.add_column("", justify="right")
    table.add_column("player", overflow="fold")
    for name in ("reward", "won, drawn, lost", "win rate", "95 %", "places", "cells"):
        table.add_column(name, justify="right")
    for place, row in enumerate(rows, start=1):
        rate = row.win_rate(rules.players)
        low, high = wilson_interval(rate, row.games)
        table.add_row(
            str(place),
            Text(row.name),
            f"{row.reward:+.3f}",
            f"{row.wins}, {row.draws}, {row.games - row.wins - row.draws}",
            f"{rate:.1%}",
            f"{100 * low:.1f} to {100 * high:.1f}",
            " ".join(f"{share:.0%}" for share in row.places),
            f"{row.territory:.1f}",
        )
    return table


def tournament_record(
    rows: Sequence[TableStanding], results: Sequence[SeatedResult]
) -> dict[str, Any]:
    """A tournament as JSON-ready figures."""
    return {
        "table": [{**row._asdict(), "places": list(row.places)} for row in rows],
        "tables": [seats_record(result) for result in results],
    }
