"""Measures a pool of players in games of three and four: tables are chosen, played or cached.

The cache is a JSON-lines file like that of `train.ratings.results_cache`, a line a batch of games
of one table:

    {"players": [IDENTITY, ...], "settings": {...}, "batch": 0, "wins": [P numbers],
     "openings": 0, "spread": [[P numbers], ...]}

Tables are played that connect all players, then, one after the other, the table whose games say
most about the ratings. By the normal approximation n games of players with win chances p and the
covariance C of their log-odds are worth log det(1 + n (diag p - p p^T) C) / 2 nats (see
`train.ratings.pairings`).

N players, P seats.
"""

import itertools
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.special import softmax

from train.arena.elo import ELO, Ratings
from train.arena.seats.match import SeatOptions, check_players, play_seats
from train.arena.seats.plackett_luce import TableResult, add, choice_information, fit, table_result
from train.ratings.pool import MAX_BATCH, Entrant, Measured, Progress
from train.runtime.errors import UsageError
from train.runtime.files import append_json_line, read_json_lines
from wallgo_jax.game.rules import Rules

CACHE_FILE = "elo-tables.jsonl"
_SEEDS = 2**31

Table = tuple[str, ...]
PlayTable = Callable[[Sequence[Entrant], int], TableResult]
"""(entrants of a table, number of the batch) -> a batch of games, by their identities."""


def chain(names: Sequence[str], seats: int) -> list[Table]:
    """Tables of neighbours that connect all players, each sharing a player with the next."""
    starts = range(0, max(1, len(names) - 1), seats - 1)
    last = len(names) - seats
    return list(dict.fromkeys(tuple(names[min(s, last) : min(s, last) + seats]) for s in starts))


def most_informative(ratings: Ratings, seats: int, games: int) -> Table:
    """Choose the table with the largest gain, the first of equals in the pool's order."""
    tables = np.array(list(itertools.combinations(range(len(ratings.names)), seats)))
    chances = softmax(ratings.elo[tables] / ELO, axis=1)
    covariance = ratings.covariance[tables[:, :, None], tables[:, None, :]] / ELO**2
    grown = np.eye(seats) + games * choice_information(chances) @ covariance
    gain = np.round(np.linalg.slogdet(grown)[1], 9)
    return tuple(ratings.names[player] for player in tables[int(np.argmax(gain))])


class TableCache:
    """Batches of games in a file, of those played in given settings; more can be added.

    Args:
      path: the file; it, and the directory that it is in, may not be there yet.
      settings: JSON-ready; all that decides a batch besides its players and its number.

    Raises:
      UsageError: a line has another format, or the file cannot be read.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path, self._settings = path, json.loads(json.dumps(settings))
        self._batches: dict[Table, dict[int, TableResult]] = {}
        for number, line in enumerate(read_json_lines(path), start=1):
            try:
                batch, fields = _read_batch(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise UsageError(
                    f"{path}: line {number}: not a batch of games: "
                    f"{' '.join(reason.split())[:200]}; remove the line, or choose another file "
                    "with --cache"
                ) from None
            if fields["settings"] == self._settings:
                self._batches.setdefault(batch.players, {})[fields["batch"]] = batch

    def of(self, players: Table) -> list[TableResult]:
        """Return the batches of players, named in the order of the file."""
        return list(self._batches.get(players, {}).values())

    def next_number(self, players: Table) -> int:
        """The number of the players' next batch: above those of all that are kept."""
        return max(self._batches.get(players, {}), default=-1) + 1

    def add(self, batch: TableResult) -> None:
        """Append a batch to the file, as that of `next_number`.

        Raises:
          UsageError: it cannot be written.
        """
        number = self.next_number(batch.players)
        self._batches.setdefault(batch.players, {})[number] = batch
        append_json_line(
            self._path,
            {
                "players": list(batch.players),
                "settings": self._settings,
                "batch": number,
                "wins": list(batch.wins),
                "openings": batch.openings,
                "spread": [list(row) for row in batch.spread],
            },
        )


def _read_batch(fields: Any) -> tuple[TableResult, Any]:
    players, number, openings = fields["players"], fields["batch"], fields["openings"]
    if not isinstance(players, list) or not all(isinstance(name, str) for name in players):
        raise ValueError("players are not a list of names")
    if any(type(count) is not int or count < 0 for count in (number, openings)):
        raise ValueError("a count is not a whole number from 0 on")
    try:
        wins, spread = (np.array(fields[key], float) for key in ("wins", "spread"))
    except ValueError:
        raise ValueError("wins or spread are not numbers") from None
    count = len(players)
    if wins.shape != (count,) or spread.shape != (count, count) or count < 3:
        raise ValueError("wins and spread do not fit the players")
    if not (np.isfinite(wins).all() and np.isfinite(spread).all() and wins.min() >= 0):
        raise ValueError("wins or spread are not numbers that games can have")
    fields["settings"]
    return (
        TableResult(
            tuple(players),
            tuple(wins.tolist()),
            openings,
            tuple(map(tuple, spread.tolist())),
        ),
        fields,
    )


def make_play(
    rules: Rules,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    on_games: Callable[[int], None] = lambda games: None,
) -> PlayTable:
    """Make a function that plays batches of at least `games` games.

    Their randomness follows from the seed, the identities and the batch's number.
    """

    def play(entrants: Sequence[Entrant], number: int) -> TableResult:
        names = tuple(entrant.identity for entrant in entrants)
        who = zlib.crc32("\n".join(names).encode()) % _SEEDS
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), who), number)
        players = [
            entrant.player._replace(name=entrant.identity)
            for entrant in entrants
            if entrant.player is not None
        ]
        how = SeatOptions(games=games, batch=min(games, MAX_BATCH), opening_plies=opening_plies)
        return table_result(play_seats(players, rules, how, key=key, on_progress=on_games))

    return play


def measure(
    entrants: Sequence[Entrant],
    results: TableCache,
    play: PlayTable,
    rules: Rules,
    *,
    games: int,
    budget: int,
    anchor: str | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Measured:
    """Connect all players, then play the most informative tables, until the budget is used up.

    Ctrl-C ends it sooner. The arguments are those of `train.ratings.pool.measure`.

    Raises:
      UsageError: fewer players than seats, two players alike, another program, a budget too small,
        or an interrupt before all were connected.
    """
    pool = _TablePool(entrants, results, rules)
    orders = math.factorial(rules.players)
    games = -(-games // orders) * orders
    first_ones = chain([entrant.name for entrant in entrants], rules.players)
    if len(first_ones) * games > budget:
        raise UsageError(
            f"elo: a budget of {budget} games is too small: {len(first_ones)} tables of {games} "
            "games are needed to connect all players"
        )
    known, is_interrupted = pool.games, False
    try:
        for table in first_ones:
            if not pool.has_met(table):
                on_progress(Progress(pool.games, None, pool.newest))
                pool.play(table, play)
        while pool.games + games <= budget:
            ratings = pool.rate(anchor)
            on_progress(Progress(pool.games, ratings, pool.newest))
            pool.play(most_informative(ratings, rules.players, games), play)
    except KeyboardInterrupt:
        is_interrupted = True
    try:
        ratings = pool.rate(anchor)
    except ValueError:
        raise UsageError(
            f"elo: stopped after {pool.games} games, before all players were connected; these are "
            "kept: the same command goes on"
        ) from None
    return Measured(
        tuple(entrants),
        ratings,
        tuple(pool.results()),
        pool.games,
        pool.games - known,
        is_interrupted,
    )


class _TablePool:
    """Entrants and the results of their tables."""

    def __init__(self, entrants: Sequence[Entrant], results: TableCache, rules: Rules) -> None:
        if len(entrants) < rules.players:
            raise UsageError(
                f"elo: a pool of {len(entrants)} players; the rules are for {rules.players}, and "
                "each seat needs another player"
            )
        seen: dict[str, str] = {}
        for entrant in entrants:
            if entrant.identity in seen:
                raise UsageError(
                    f"elo: {seen[entrant.identity]!r} and {entrant.name!r} are the same player"
                )
            seen[entrant.identity] = entrant.name
        players = [entrant.player for entrant in entrants if entrant.player is not None]
        check_players(players, rules)
        self._entrants = {entrant.name: entrant for entrant in entrants}
        for entrant in entrants:
            if self._entrants[entrant.name] is not entrant:
                raise UsageError(f"elo: player {entrant.name!r} is in the pool twice")
        self._names, self._seats, self._cache = seen, rules.players, results
        runs = {entrant.run: entrant.name for entrant in entrants if entrant.run is not None}
        self.newest = tuple(runs.values())

    @property
    def games(self) -> int:
        """Games that the pool has played."""
        return round(sum(result.games for result in self.results()))

    def has_met(self, table: Table) -> bool:
        """Whether a table has a batch of games."""
        return bool(self._cache.of(self._identities(table)))

    def play(self, table: Table, play: PlayTable) -> None:
        """Play and note the next batch of a table."""
        identities = self._identities(table)
        seated = [self._entrants[self._names[identity]] for identity in identities]
        self._cache.add(play(seated, self._cache.next_number(identities)))

    def results(self) -> list[TableResult]:
        """All batches of a table as one, by names."""
        found = []
        for table in itertools.combinations(self._entrants, self._seats):
            identities = self._identities(table)
            batches = self._cache.of(identities)
            if batches:
                total = batches[0]
                for batch in batches[1:]:
                    total = add(total, batch)
                names = tuple(self._names[identity] for identity in identities)
                found.append(total._replace(players=names))
        return found

    def rate(self, anchor: str | None) -> Ratings:
        """The pool's ratings."""
        return fit(list(self._entrants), self.results(), anchor=anchor)

    def _identities(self, table: Table) -> Table:
        """A table's identities in the order that its games are noted in, whatever the pool."""
        return tuple(sorted(self._entrants[name].identity for name in table))
