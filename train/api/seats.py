"""Games of three and four players: matches at one table, tournaments of tables."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from train.api.common.tables import check_whole, key_of, progress_bar, to_dataframe
from train.api.games import AnyRules, Opponent
from train.api.players import Player, make_players
from train.arena.match_programs import key_of_names
from train.arena.result import wilson_interval
from train.arena.seats.match import SeatOptions, games_of, play_seats
from train.arena.seats.report import seats_record
from train.arena.seats.result import SeatedResult
from train.arena.seats.seating import check_rules, fill_seats
from train.arena.seats.tournament import TableStanding, standings, tables_of, tournament_record
from train.metrics.intervals import Interval, intervals_figure
from train.ratings.pool import MAX_BATCH
from train.runtime.errors import UsageError, usage_errors


class SeatedMatch(SeatedResult):
    """A match of three or four players with its table and its figure."""

    def __repr__(self) -> str:
        rates = ", ".join(
            f"{name} {self.win_rate(entrant):.1%}" for entrant, name in enumerate(self.names)
        )
        return f"<{len(self.games)} games of {self.rules.players}, {self.draws} drawn: {rates}>"

    def to_dataframe(self) -> Any:
        """A table of pandas with a line for each seat of each game."""
        places = self.places
        return to_dataframe(
            [
                {
                    "game": game,
                    "seat": seat,
                    "player": self.names[self.seats[game, seat]],
                    "reward": float(self.rewards[game, seat]),
                    "place": int(places[game, seat]),
                    "territory": int(self.territory[game, seat]),
                    "plies": len(actions),
                }
                for game, actions in enumerate(self.games)
                for seat in range(self.rules.players)
            ]
        )

    def summary(self) -> dict[str, Any]:
        """What `match --json` writes: rates with intervals, places, rewards, territory."""
        return seats_record(self)

    def figure(self) -> Any:
        """Each player's win rate as a figure of matplotlib, a draw counted as 1 / P."""
        rows = [
            Interval(name, self.win_rate(entrant), *self.interval(entrant))
            for entrant, name in enumerate(self.names)
        ]
        return _rates_figure(rows, self.rules.players, f"{len(self.games)} games at one table")


def seated_match(
    players: Sequence[Opponent],
    *,
    games: int = 400,
    rules: AnyRules | None = None,
    batch: int = 400,
    opening_plies: int = 2,
    seed: int = 0,
    progress: bool = False,
) -> SeatedMatch:
    """Play a match of three or four; the games are those of `python -m train match` with as many
    players.

    Args:
      players: one for each seat, or two: the first against the second at all other seats. Each
        opening is played in all orders of the seats.
      games: at least so many, rounded up to whole rotations of the seats.
      rules: of three or four players; by default those that a trained player has learned.
      batch: games in parallel.
      opening_plies: random plies that all games of an opening start with.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    made = _made("seated_match", players, rules)
    check_whole("seated_match", games=games, batch=batch, opening_plies=opening_plies)
    with usage_errors():
        check_rules(made[0].rules)
        names = fill_seats([player.name for player in made], made[0].rules)
        how = SeatOptions(games, batch, opening_plies)
    by_name, first = {}, {}
    for given, player in zip(players, made, strict=True):
        by_name.setdefault(player.name, player.registered)
        known = first.setdefault(player.name, given)
        if known is not given and not (isinstance(known, str) and isinstance(given, str)):
            raise UsageError(f"seated_match: two different players are named {player.name!r}")
    seated = [by_name[name] for name in names]
    title = " · ".join(names)
    with progress_bar(title, games_of(seated, games), is_shown=progress) as on_progress:
        found = play_seats(
            seated,
            made[0].rules,
            how,
            key=key_of("seated_match", seed),
            on_progress=on_progress,
        )
    return SeatedMatch(**vars(found))


@dataclasses.dataclass(frozen=True, repr=False)
class SeatedTournament:
    """A round robin of tables.

    Attributes:
      standings: a row a player, by mean reward.
      tables: the matches, in the order of play.
    """

    standings: tuple[TableStanding, ...]
    tables: tuple[SeatedMatch, ...]

    def __repr__(self) -> str:
        rewards = ", ".join(f"{row.name} {row.reward:+.3f}" for row in self.standings)
        return f"<tournament of {len(self.tables)} tables: {rewards}>"

    def summary(self) -> dict[str, Any]:
        """What `tournament --json` writes: the standings, and every table."""
        return tournament_record(self.standings, self.tables)

    def to_dataframe(self) -> Any:
        """The standings as a table of pandas."""
        rows = [{**row._asdict(), "places": list(row.places)} for row in self.standings]
        return to_dataframe(rows)

    def figure(self) -> Any:
        """Win rates as a figure of matplotlib, a draw counted as 1 / P, with intervals."""
        players = self.tables[0].rules.players
        rows = []
        for row in self.standings:
            rate = row.win_rate(players)
            rows.append(Interval(row.name, rate, *wilson_interval(rate, row.games)))
        return _rates_figure(rows, players, f"Tournament at tables of {players}")


def seated_tournament(
    players: Sequence[Opponent],
    *,
    rules: AnyRules | None = None,
    games: int = 24,
    opening_plies: int = 2,
    seed: int = 0,
    progress: bool = False,
) -> SeatedTournament:
    """Play every table of different players; the games are those of `python -m train tournament`.

    Args:
      players: at least as many as the rules have seats.
      rules: as in `seated_match`.
      games: of a table, rounded up to whole rotations of the seats.
      opening_plies: as in `seated_match`.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: as `seated_match`, or a player stands there twice.
    """
    made = _made("seated_tournament", players, rules)
    key_of("seated_tournament", seed)
    check_whole("seated_tournament", games=games, opening_plies=opening_plies)
    played = made[0].rules
    with usage_errors():
        check_rules(played)
        how = SeatOptions(games, min(max(games, 1), MAX_BATCH), opening_plies)
        tables = tables_of([player.name for player in made], played.players)
    by_name = {player.name: player.registered for player in made}
    each = games_of([by_name[name] for name in tables[0]], games)
    found: list[SeatedMatch] = []
    with progress_bar("tables", each * len(tables), is_shown=progress) as on_progress:
        for table in tables:
            result = play_seats(
                [by_name[name] for name in table], played, how, key=key_of_names(table, seed)
            )
            found.append(SeatedMatch(**vars(result)))
            on_progress(each * len(found))
    return SeatedTournament(tuple(standings(found)), tuple(found))


def _made(what: str, players: Sequence[Opponent], rules: AnyRules | None) -> list[Player]:
    if isinstance(players, str) or not isinstance(players, Sequence):
        raise UsageError(f"{what}: players must be a list, not {players!r}")
    if len(players) < 2:
        raise UsageError(f"{what}: {len(players)} players are too few")
    return list(make_players(list(players), rules))


def _rates_figure(rows: Sequence[Interval], players: int, title: str) -> Any:
    return intervals_figure(
        rows,
        title=title,
        x_label=f"win rate, a draw as 1/{players}, 95 % intervals",
        middle=1 / players,
        is_share=True,
    )
