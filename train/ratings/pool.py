"""Measures a pool of players: checkpoints and anchors meet in chosen pairings, played or cached.

The state of a measurement is nothing but the batches played so far, and the next pairing depends on
that alone: a measurement that was broken off, or gets a larger budget, goes on as if it had never
stopped.
"""

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.arena import elo, match
from train.arena.elo import Ratings
from train.arena.result import MatchResult
from train.checkpoints import store
from train.config import config_to_dict
from train.config.heuristics import HeuristicsConfig
from train.players import registry
from train.players.basic import Player
from train.ratings import pairings
from train.ratings.results_cache import Batch, ResultsCache
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.env import VERSION
from wallgo_jax.game.rules import Rules

CACHE_FILE = "elo-games.jsonl"
MAX_BATCH = 400
_OF_SEARCH = ("network", "search")
_SEEDS = 2**31


class Entrant(NamedTuple):
    """A player of the pool."""

    name: str  # as it is shown, unlike all others
    identity: str  # key of its games; equal for equal weights wherever they lie
    player: Player | None  # None where it need not play
    run: str | None = None
    iteration: int | None = None


class Progress(NamedTuple):
    """The progress of a measurement."""

    games: int  # played or found
    ratings: Ratings | None  # None until all are connected
    newest: tuple[str, ...]  # the last checkpoint of each run


class Measured(NamedTuple):
    """A pool with its ratings."""

    entrants: tuple[Entrant, ...]
    ratings: Ratings
    results: tuple[Any, ...]
    """Two names and their games, a Batch with all batches as one; for more than two players the
    `train.arena.seats.plackett_luce.TableResult` of each table."""
    games: int
    new: int
    is_interrupted: bool


Play = Callable[[Entrant, Entrant, int], MatchResult]
"""(first, second, number of the batch) -> a batch of games."""
OnGames = Callable[[int], None]
MakePlayer = Callable[[str, Rules], Player]


def spread_over(iterations: Sequence[int], count: int) -> list[int]:
    """Choose at most `count`, evenly spread, with the first and the last; 0 chooses all."""
    if count == 0 or len(iterations) <= count:
        return list(iterations)
    places = np.linspace(0, len(iterations) - 1, max(count, 2)).round().astype(int)
    return [iterations[place] for place in places]


def entrants_of_run(
    run: Path,
    rules: Rules,
    *,
    name: str,
    simulations: int,
    count: int = 0,
    make_player: MakePlayer = registry.make_player,
) -> list[Entrant]:
    """A run's checkpoints as players, oldest first.

    Of checkpoints with the same weights, as those before a run's first step of learning, the oldest
    is taken.

    Args:
      run: its directory.
      rules: what they will play.
      name: of the run, for tables and pictures.
      simulations: of their search; 0 for the raw policy.
      count: how many checkpoints at the most; 0 for all.
      make_player: from a name to a player.

    Raises:
      UsageError: there is no checkpoint, or one cannot play these rules.
    """
    if not run.is_dir():
        raise UsageError(f"{run}: no such run directory")
    iterations = store.iterations_of(run)
    if not iterations:
        raise UsageError(f"{run}: no checkpoint here (looked for {store.WEIGHTS}/ITERATION)")
    found: list[Entrant] = []
    for iteration in spread_over(iterations, count):
        path = run / store.WEIGHTS / str(iteration)
        called = f"search:{path}@{simulations}" if simulations else f"net:{path}"
        player = make_player(called, rules)
        known_by = identity(called, player, _how_it_plays(called, None))
        if known_by not in {entrant.identity for entrant in found}:
            found.append(Entrant(f"{name}/{iteration}", known_by, player, str(run), iteration))
    return found


def entrants_of_names(
    names: Iterable[str],
    rules: Rules,
    *,
    heuristics: HeuristicsConfig,
    make_player: MakePlayer = registry.make_player,
) -> list[Entrant]:
    """Players by the registry's names.

    Args:
      names: of the players.
      rules: what they will play.
      heuristics: weights that `make_player` gives `ethen` and `wjx`.
      make_player: from a name to a player.

    Raises:
      UsageError: an unknown one.
    """
    found = []
    for name in names:
        player = make_player(name, rules)
        known_by = identity(player.name, player, _how_it_plays(player.name, heuristics))
        found.append(Entrant(player.name, known_by, player))
    return found


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
    known_by = name
    if leaves:
        read = registry.read_name(name)
        budget = read.budget_text if read.has_budget else ""
        known_by = f"{read.kind}:{budget}{read.options_text}"
    return f"{known_by}#{digest.hexdigest()[:32]}"


def _how_it_plays(name: str, heuristics: HeuristicsConfig | None) -> Any:
    """Options that decide how a player plays, besides its name and its weights."""
    read = registry.read_name(name)
    if read.kind == "pretrained":
        return read.target
    if read.has_network:
        config = config_to_dict(registry.network_config(read))
        return {key: config[key] for key in (("network",) if read.kind == "net" else _OF_SEARCH)}
    weighed = getattr(heuristics, read.target or read.kind, None)
    return None if weighed is None else dataclasses.asdict(weighed)


def settings_of(rules: Rules, *, opening_plies: int, seed: int) -> dict[str, Any]:
    """Terms that batches are played on, besides the players."""
    return {
        "rules": rules.to_dict(),
        "opening_plies": opening_plies,
        "seed": seed,
        "env_version": VERSION,
    }


def make_play(
    rules: Rules,
    *,
    games: int,
    opening_plies: int,
    seed: int,
    on_games: OnGames = lambda games: None,
    play_match: Any = match.play_match,
) -> Play:
    """Make a function that plays batches of `games` games.

    Their randomness follows from the seed, the two identities and the batch's number. `on_games` is
    called with the number of games of the batch done so far, first when all is compiled.
    """

    how = match.MatchOptions(games=games, batch=min(games, MAX_BATCH), opening_plies=opening_plies)

    def play(first: Entrant, second: Entrant, number: int) -> MatchResult:
        who = zlib.crc32(f"{first.identity}\n{second.identity}".encode()) % _SEEDS
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), who), number)
        return play_match(first.player, second.player, rules, how, key=key, on_progress=on_games)

    return play


def measure(
    entrants: Sequence[Entrant],
    results: ResultsCache,
    play: Play,
    *,
    games: int,
    budget: int,
    anchor: str | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Measured:
    """Play the skeleton, then the most informative pairings, until the budget is used up.

    Ctrl-C ends it sooner.

    Args:
      entrants: the pool: checkpoints by run and age, then anchors, weakest first.
      results: cache of games known already, which new ones are added to.
      play: plays a batch.
      games: of a batch.
      budget: games in all, known ones counted.
      anchor: name of the player whose rating is 0; None for a mean of 0.
      on_progress: called before each batch.

    Raises:
      UsageError: the pool is too small, has two players alike, is too large for the budget, or was
        interrupted before all were connected.
    """
    pool = _Pool(entrants, results)
    first_ones = pool.skeleton()
    if len(first_ones) * games > budget:
        raise UsageError(
            f"elo: a budget of {budget} games is too small: {len(first_ones)} pairings of {games} "
            "games are needed to connect all players"
        )
    known, is_interrupted = pool.games, False
    try:
        for pair, ratings in _pairs_to_play(pool, first_ones, games, budget, anchor):
            on_progress(Progress(pool.games, ratings, pool.newest()))
            pool.play(pair, play)
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


def _pairs_to_play(
    pool: "_Pool", first_ones: Sequence[pairings.Pair], games: int, budget: int, anchor: str | None
) -> Iterator[tuple[pairings.Pair, Ratings | None]]:
    """Yield the next pairing with the ratings that chose it, until the budget is used up.

    Each must be played before the next is asked for.
    """
    for pair in first_ones:
        if not pool.has_met(*pair):
            yield pair, None
    while pool.games + games <= budget:
        ratings = pool.rate(anchor, has_intervals=False)
        yield pairings.most_informative(ratings, games), ratings


class _Pool:
    """Entrants and their results."""

    def __init__(self, entrants: Sequence[Entrant], results: ResultsCache) -> None:
        if len(entrants) < 2:
            raise UsageError("elo: a pool of fewer than 2 players cannot be rated")
        self._entrants = {entrant.name: entrant for entrant in entrants}
        seen: dict[str, str] = {}
        for entrant in entrants:
            other = seen.setdefault(entrant.identity, entrant.name)
            if self._entrants[entrant.name] is not entrant:
                raise UsageError(f"elo: player {entrant.name!r} is in the pool twice")
            if other != entrant.name:
                raise UsageError(f"elo: {other!r} and {entrant.name!r} are the same player")
        self._cache = results

    @property
    def games(self) -> int:
        """Games that the pool has played."""
        return sum(batch.games for _, _, batch in self.results())

    def skeleton(self) -> list[pairings.Pair]:
        """The pairings that are always played."""
        anchors = [entrant.name for entrant in self._entrants.values() if entrant.run is None]
        return pairings.skeleton(self._runs(), anchors)

    def newest(self) -> tuple[str, ...]:
        """The last checkpoint of each run."""
        return tuple(run[-1] for run in self._runs())

    def _runs(self) -> list[list[str]]:
        runs: dict[str, list[str]] = {}
        for entrant in self._entrants.values():
            if entrant.run is not None:
                runs.setdefault(entrant.run, []).append(entrant.name)
        return list(runs.values())

    def has_met(self, first: str, second: str) -> bool:
        """Whether two players have a batch of games."""
        return bool(self._cache.between(*self._identities(first, second)))

    def play(self, pair: pairings.Pair, play: Play) -> None:
        """Play and note the next batch of two players."""
        first, second = self._in_order(*pair)
        known = self._cache.between(first.identity, second.identity)
        number = 1 + max((batch.number for batch in known), default=-1)
        result = play(first, second, number)
        own, other = result.territory.sum(axis=0)
        self._cache.add(
            Batch(
                first=first.identity,
                second=second.identity,
                number=number,
                pairs=elo.pair_counts(result.outcome),
                wins=result.wins,
                draws=result.draws,
                losses=result.losses,
                territory=(int(own), int(other)),
            )
        )

    def results(self) -> list[tuple[str, str, Batch]]:
        """All batches of two players as one, in the order of the pool."""
        names = list(self._entrants)
        found = []
        for place, name in enumerate(names):
            for opponent in names[place + 1 :]:
                first, second = self._in_order(name, opponent)
                known = self._cache.between(first.identity, second.identity)
                if known:
                    found.append((first.name, second.name, _sum_of(known)))
        return found

    def rate(self, anchor: str | None, *, has_intervals: bool = True) -> Ratings:
        """The pool's ratings; without intervals it is quicker."""
        results = [elo.Result(a, b, batch.pairs) for a, b, batch in self.results()]
        return elo.fit(list(self._entrants), results, anchor=anchor, has_intervals=has_intervals)

    def _in_order(self, first: str, second: str) -> tuple[Entrant, Entrant]:
        """Two players in the order that their games are noted in, whatever the pool."""
        one, other = self._entrants[first], self._entrants[second]
        return (one, other) if one.identity < other.identity else (other, one)

    def _identities(self, first: str, second: str) -> tuple[str, str]:
        one, other = self._in_order(first, second)
        return one.identity, other.identity


def _sum_of(batches: Sequence[Batch]) -> Batch:
    first = batches[0]
    return first._replace(
        number=len(batches),
        pairs=tuple(map(sum, zip(*(batch.pairs for batch in batches), strict=True))),
        wins=sum(batch.wins for batch in batches),
        draws=sum(batch.draws for batch in batches),
        losses=sum(batch.losses for batch in batches),
        territory=(
            sum(batch.territory[0] for batch in batches),
            sum(batch.territory[1] for batch in batches),
        ),
    )
