"""Measures a pool of players: checkpoints and anchors meet, two or more at a table, in games that
are played or cached.

The state of a measurement is nothing but the batches played so far, and who meets next depends on
that alone: a measurement that was broken off, or gets a larger budget, goes on as if it had never
stopped.

Too many players for all to meet all play first the meetings that connect them, then, one after the
other, the one whose games say most about the ratings. By the normal approximation a pairing of `n`
games with expected score `p` between players whose lead has variance `v` is worth `½ · log(1 + n ·
p · (1 − p) · v)` nats (Lindley, "On a Measure of the Information Provided by an Experiment", 1956;
Chaloner & Verdinelli, "Bayesian Experimental Design: A Review", 1995, on D-optimality): games go
where players are close and their distance is uncertain. At a table with win chances `p` and the
covariance `C` of the players' log-odds they are worth `½ · log det(1 + n · (diag p − p pᵀ) · C)`.

N players.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import softmax

from train.arena import elo, match
from train.arena.elo import ELO, Ratings, choice_information, expected_score
from train.arena.figures import Counts, count_games
from train.arena.match_openings import OpeningOptions
from train.arena.result import MatchResult
from train.checkpoints import store
from train.config import HeuristicsConfig, config_to_dict
from train.players import registry
from train.players.basic import Player
from train.players.names import read_name
from train.players.networks import network_config
from train.ratings.results_cache import ResultsCache
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.env import VERSION
from wallgo_jax.game.rules import Rules

Pairing = tuple[str, ...]


def skeleton(runs: Sequence[Sequence[str]], anchors: Sequence[str]) -> list[Pairing]:
    """The pairings that are always played; they connect all players.

    Each generation of a run meets the next, each anchor the next, the first generation every
    anchor, the last one the last anchor; the last generations of runs meet one another in turn.

    Args:
      runs: players of each run, oldest first.
      anchors: weakest first.
    """
    filled = [run for run in runs if run]
    pairs: list[Pairing] = []
    for line in (*filled, anchors):
        pairs += itertools.pairwise(line)
    for run in filled:
        pairs += [(run[0], anchor) for anchor in anchors]
        pairs += [(run[-1], anchor) for anchor in anchors[-1:]]
    pairs += itertools.pairwise([run[-1] for run in filled])
    return list(dict.fromkeys(pairs))


def chain(names: Sequence[str], seats: int) -> list[Pairing]:
    """Tables of neighbours that connect all players, each sharing a player with the next."""
    starts = range(0, max(1, len(names) - 1), seats - 1)
    last = len(names) - seats
    return list(dict.fromkeys(tuple(names[min(s, last) : min(s, last) + seats]) for s in starts))


def information_gain(ratings: Ratings, games: int) -> np.ndarray:
    """Expected information of further games of each pairing, in nats, [N, N]; −inf on the
    diagonal."""
    cov = ratings.covariance / ELO**2
    diagonal = np.diag(cov)
    variance = np.maximum(diagonal[:, None] + diagonal[None, :] - 2 * cov, 0)
    lead = ratings.elo[:, None] - ratings.elo[None, :]
    # An uncertain lead is nearer to an even one than it looks (MacKay, "The Evidence Framework
    # Applied to Classification Networks", 1992).
    expected = expected_score(lead / np.sqrt(1 + np.pi / 8 * variance))
    gain = 0.5 * np.log1p(games * expected * (1 - expected) * variance)
    np.fill_diagonal(gain, -np.inf)
    return gain


def most_informative(ratings: Ratings, seats: int, games: int) -> Pairing:
    """Choose the pairing, or the table of more seats, with the largest gain, the first of equals in
    the pool's order."""
    if seats == 2:
        gain = np.round(information_gain(ratings, games), 9)
        chosen = np.unravel_index(int(np.argmax(gain)), gain.shape)
        return tuple(ratings.names[int(player)] for player in chosen)
    tables = np.array(list(itertools.combinations(range(len(ratings.names)), seats)))
    chances = softmax(ratings.elo[tables] / ELO, axis=1)
    covariance = ratings.covariance[tables[:, :, None], tables[:, None, :]] / ELO**2
    grown = np.eye(seats) + games * choice_information(chances) @ covariance
    gain = np.round(np.linalg.slogdet(grown)[1], 9)
    return tuple(ratings.names[player] for player in tables[int(np.argmax(gain))])


CACHE_FILE, TABLES_FILE = "elo-games.jsonl", "elo-tables.jsonl"
"""Files of the games of two players, and of more."""
MAX_BATCH = 400


class Entrant(NamedTuple):
    """A player of the pool."""

    name: str  # as it is shown, unlike all others
    identity: str  # key of its games; equal for equal weights wherever they lie
    player: Player | None  # None where it need not play
    run: str | None = None
    iteration: int | None = None


class PoolProgress(NamedTuple):
    """The progress of a measurement."""

    games: int  # played or found
    unconnected: int  # games left before all players are connected
    ratings: Ratings | None  # None until all are connected
    newest: tuple[str, ...]  # the last checkpoint of each run


class MeasuredPool(NamedTuple):
    """A pool with its ratings."""

    entrants: tuple[Entrant, ...]
    ratings: Ratings
    results: tuple[Counts, ...]  # all batches of the same players as one, by names
    games: int
    new: int
    is_interrupted: bool


PlayBatch = Callable[[Sequence[Entrant], int], MatchResult]
"""(who meets, number of the batch) -> a batch of games."""
MakePlayer = Callable[[str, Rules], Player]


def entrants_of_run(
    run: Path,
    rules: Rules,
    *,
    name: str,
    simulations: int,
    count: int = 0,
    make_player: MakePlayer = registry.make_player,
) -> list[Entrant]:
    """A run's checkpoints as players, oldest first, and the oldest of those with the same weights,
    as before a run's first step of learning.

    Args:
      run: its directory.
      rules: what they will play.
      name: of the run, for tables and pictures.
      simulations: of their search; 0 for the raw policy.
      count: how many checkpoints at the most; 0 for all.
      make_player: from a name to a player.

    Raises:
      UsageError: the run has no checkpoint, or one cannot play these rules.
    """
    iterations = store.iterations_of(run)
    if not iterations:
        raise UsageError(f"{run}: no checkpoint here (looked for {store.WEIGHTS}/ITERATION)")
    if 0 < count < len(iterations):  # evenly spread, with the first and the last
        places = np.linspace(0, len(iterations) - 1, max(count, 2)).round().astype(int)
        iterations = [iterations[place] for place in places]
    entrants: dict[str, Entrant] = {}
    for iteration in iterations:
        path = run / store.WEIGHTS / str(iteration)
        called = f"search:{path}@{simulations}" if simulations else f"net:{path}"
        player = make_player(called, rules)
        key = identity(called, player, how_it_plays(called, None))
        entrants.setdefault(key, Entrant(f"{name}/{iteration}", key, player, str(run), iteration))
    return list(entrants.values())


def entrant_of_name(name: str, rules: Rules, *, heuristics: HeuristicsConfig) -> Entrant:
    """The player of one of the registry's names, whose `ethen` and `wjx` have these weights.

    Raises:
      UsageError: as `train.players.registry.make_player`.
    """
    player = registry.make_player(name, rules, heuristics=heuristics)
    key = identity(player.name, player, how_it_plays(player.name, heuristics))
    return Entrant(player.name, key, player)


def identity(name: str, player: Player, options: Any = None) -> str:
    """Return the key of a player's games: its name, with a checksum in place of weights' path.

    Args:
      name: of the player, as in the registry.
      player: who it is.
      options: JSON-ready, what else decides how it plays.
    """
    leaves = jax.tree_util.tree_flatten_with_path(fetch(player.variables))[0]
    if not leaves and options is None:
        return name
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
    for path, leaf in leaves:
        array = np.ascontiguousarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    key = name
    if leaves:
        read = read_name(name)
        budget = read.budget_text if read.has_budget else ""
        key = f"{read.kind}:{budget}{read.options_text}"
    return f"{key}#{digest.hexdigest()[:32]}"


def how_it_plays(name: str, heuristics: HeuristicsConfig | None) -> Any:
    """Options that decide how a player plays, besides its name and its weights."""
    read = read_name(name)
    if read.kind == "pretrained":
        return read.target
    if read.has_network:
        config = config_to_dict(network_config(read))
        decides = ("network",) if read.kind == "net" else ("network", "search")
        return {key: config[key] for key in decides}
    weighed = getattr(heuristics, read.target or read.kind, None)
    return None if weighed is None else dataclasses.asdict(weighed)


def settings_of(rules: Rules, *, opening_plies: int, seed: int) -> dict[str, Any]:
    """Terms that batches are played on, besides the players."""
    settings = {"rules": rules.to_dict(), "opening_plies": opening_plies, "seed": seed}
    return settings | {"env_version": VERSION}


def make_play(
    rules: Rules,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    on_games: match.OnGames = lambda games: None,
) -> PlayBatch:
    """Make a function that plays batches of at least `games` games.

    Their randomness follows from the seed, the identities and the batch's number. `on_games` is
    called with the number of games of the batch done so far, first when all is compiled.
    """
    how = match.MatchOptions(games, min(games, MAX_BATCH), OpeningOptions(opening_plies))

    def play(entrants: Sequence[Entrant], number: int) -> MatchResult:
        key = match.key_of_names([each.identity for each in entrants], seed)
        players = [each.player._replace(name=each.name) for each in entrants if each.player]
        key = jax.random.fold_in(key, number)
        return match.play_match(players, rules, how, key=key, on_progress=on_games)

    return play


def measure(
    entrants: Sequence[Entrant],
    results: ResultsCache,
    play: PlayBatch,
    *,
    seats: int = 2,
    games: int,
    budget: int | None,
    is_over: Callable[[], bool] = lambda: False,
    anchor: str | None = None,
    on_progress: Callable[[PoolProgress], None] = lambda progress: None,
) -> MeasuredPool:
    """Connect all players, then play the most informative meetings, until the budget is used up
    or it is over.

    Ctrl-C ends it sooner.

    Args:
      entrants: the pool: checkpoints by run and age, then anchors, weakest first.
      results: cache of games known already, which new ones are added to.
      play: plays a batch.
      seats: of a game.
      games: of a batch, rounded up so that each opening is played in every seating.
      budget: games in all, known ones counted; None for no limit.
      is_over: asked before each meeting of connected players.
      anchor: name of the player whose rating is 0; None for a mean of 0.
      on_progress: called before each batch.

    Raises:
      UsageError: the pool is too small, has two players alike, or is too large for the budget.
      KeyboardInterrupt: it came before all were connected; the message says what is kept.
    """
    pool = _Pool(entrants, results, seats)
    games = -(-games // math.factorial(seats)) * math.factorial(seats)
    first_ones = pool.first_ones()
    if budget is not None and len(first_ones) * games > budget:
        raise UsageError(
            f"elo: a budget of {budget} games is too small: {len(first_ones)} meetings of {games} "
            "games are needed to connect all players"
        )
    known, is_interrupted = pool.games, False

    def rate(*, has_intervals: bool = True) -> Ratings:
        counts = pool.results()
        return elo.fit([*pool.entrants], counts, anchor=anchor, has_intervals=has_intervals)

    def meet(meeting: Pairing, unconnected: int, ratings: Ratings | None) -> None:
        newest = tuple(run[-1] for run in pool.runs.values())
        on_progress(PoolProgress(pool.games, unconnected, ratings, newest))
        pool.play(meeting, play)

    try:
        for meeting in first_ones:
            if not pool.batches(meeting):
                meet(meeting, games * sum(not pool.batches(each) for each in first_ones), None)
        while (budget is None or pool.games + games <= budget) and not is_over():
            ratings = rate(has_intervals=False)
            meet(most_informative(ratings, seats, games), 0, ratings)
    except KeyboardInterrupt:
        is_interrupted = True
    try:
        ratings = rate()
    except ValueError:
        raise KeyboardInterrupt(
            f"{pool.games} games are kept, which do not connect all players; the same command goes "
            "on"
        ) from None
    counts, played = tuple(pool.results()), pool.games
    return MeasuredPool(tuple(entrants), ratings, counts, played, played - known, is_interrupted)


class _Pool:
    """Entrants and their results.

    Attributes:
      entrants: by name.
      runs: names of the checkpoints of each run, by its directory.
    """

    def __init__(self, entrants: Sequence[Entrant], results: ResultsCache, seats: int) -> None:
        if len(entrants) < seats:
            raise UsageError(f"elo: a pool needs at least {seats} players, one for each seat")
        self._cache, self._seats = results, seats
        self.entrants: dict[str, Entrant] = {}
        self.runs: dict[str, list[str]] = {}
        self._by_identity: dict[str, Entrant] = {}
        for entrant in entrants:
            other = self._by_identity.setdefault(entrant.identity, entrant)
            namesake = self.entrants.setdefault(entrant.name, entrant)
            if namesake is not entrant or other is not entrant:
                both = f"{other.name!r} and {entrant.name!r}"
                raise UsageError(f"elo: {both} are the same player, or in the pool twice")
            if entrant.run is not None:
                self.runs.setdefault(entrant.run, []).append(entrant.name)

    def first_ones(self) -> list[Pairing]:
        """The meetings that connect all players, which are always played."""
        if self._seats > 2:
            return chain(list(self.entrants), self._seats)
        anchors = [name for name, entrant in self.entrants.items() if entrant.run is None]
        return skeleton(list(self.runs.values()), anchors)

    def _identities(self, meeting: Pairing) -> tuple[str, ...]:
        """The players' identities in the order that their games are noted in, whatever the pool."""
        return tuple(sorted(self.entrants[name].identity for name in meeting))

    def batches(self, meeting: Pairing) -> list[Counts]:
        """The batches that some players have played."""
        return self._cache.of(self._identities(meeting))

    def play(self, meeting: Pairing, play: PlayBatch) -> None:
        """Play and note the next batch of some players."""
        identities = self._identities(meeting)
        seated = [self._by_identity[identity] for identity in identities]
        result = play(seated, self._cache.next_number(identities))
        self._cache.add(count_games(result, identities))

    def results(self) -> list[Counts]:
        """All batches of the same players as one, by names, in the order of the pool."""
        meetings = itertools.combinations(self.entrants, self._seats)
        merged = [
            functools.reduce(Counts.plus, each) for each in map(self.batches, meetings) if each
        ]
        names = {identity: entrant.name for identity, entrant in self._by_identity.items()}
        return [each._replace(players=tuple(names[i] for i in each.players)) for each in merged]

    @property
    def games(self) -> int:
        """Games that the pool has played."""
        return sum(counts.games for counts in self.results())
