"""Matches: each opening is played once in every seating.

A seating is an order of the entrants. An entrant is a player that a match names; it
may hold several seats. Two entrants have two seatings at two seats, three have six at three, and a
player against two of another kind has three:

    entrants   A B B        seatings   A B B    B A B    B B A

In each tick an entrant gets up to its share of a device's boards, those where it is to move, so no
network runs on boards where an opponent is to move.

N boards, Q openings, S seatings, G = Q S games, P seats, E entrants, D devices; see
`train.arena.match_programs`.
"""

import dataclasses
import functools
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from train.arena import host_match, match_programs
from train.arena.match_openings import OpeningOptions
from train.arena.match_programs import MatchState, Seatings, seatings_of
from train.arena.result import MatchResult, join
from train.arena.sprt import UNDECIDED, decide
from train.config.sprt import Sprt
from train.players.basic import Player
from train.runtime.devices import broadcast_boards, local_devices
from train.runtime.errors import check_two_players
from train.runtime.host import fetch
from wallgo_jax.game import referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, make_variant

Seat = TypeVar("Seat")
_FROM_THE_START = OpeningOptions()
_LEAST_GAMES = 512  # of a device; shorter matches share one program


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """Number of games of a match, and how they are played."""

    games: int  # the least number; rounded up so that every opening is played in every seating
    batch: int = 400
    """Games in parallel on all devices together; rounded up to a multiple of the seats on each
    device."""
    opening: OpeningOptions = _FROM_THE_START  # how the games of each opening begin
    should_stop: Callable[[], bool] = lambda: False
    """Asked every few plies; where it says True the match ends with the games that are over."""


class Entrants(NamedTuple):
    """The entrants of a match, and how many seats each holds."""

    players: tuple[Player, ...]
    seats: tuple[int, ...]

    @property
    def seatings(self) -> Seatings:
        """The distinct orders in which they sit."""
        return seatings_of(self.seats)


def entrants_of(players: Sequence[Player]) -> Entrants:
    """Players of one name are one entrant; entrants stand in the order of their first seat. Two
    players are always two entrants: a match of one with itself measures the seats."""
    if len(players) == 2:
        return Entrants(tuple(players), (1, 1))
    by_name = {player.name: player for player in reversed(players)}
    names = [player.name for player in players]
    distinct = dict.fromkeys(names)
    return Entrants(tuple(by_name[name] for name in distinct), tuple(map(names.count, distinct)))


def games_of(players: Sequence[Player], games: int) -> int:
    """The games of a match of at least this many: each opening is played in every seating."""
    seatings = len(entrants_of(players).seatings.entrants)
    return -(-games // seatings) * seatings


def fill_seats(given: Sequence[Seat], rules: Rules) -> list[Seat]:
    """The players of all seats: as given, or, of two, the second at every seat but one.

    Raises:
      ValueError: in one line, how many players are wanted.
    """
    players = rules.players
    if len(given) == players:
        return list(given)
    if len(given) == 2:
        return [given[0], *[given[1]] * (players - 1)]
    raise ValueError(
        f"match: {len(given)} players are named, the rules are for {players}: name {players}"
        + (f", or 2 for one player against {players - 1} of the other" if players > 2 else "")
    )


OnGames = Callable[[int], None]


def play_match(
    players: Sequence[Player],
    rules: Rules,
    options: MatchOptions,
    *,
    key: jax.Array,
    on_progress: OnGames = lambda games_done: None,
) -> MatchResult:
    """Play a match of as many players as the rules have seats.

    Args:
      players: of all seats; of more than two, those of one name are one entrant. The result is from
        the side of the first.
      rules: to play.
      options: how many games, and how.
      key: consumed; decides the openings and all that the players draw.
      on_progress: called with the number of games done so far, first when all is compiled.

    Raises:
      UsageError: a program is to play with more than one other, the opening plies are as many as a
        whole game's, or the match needs more memory than there is.
    """
    check_players(players, rules)
    match_programs.check_opening(rules, options.opening.plies)
    entrants, games = entrants_of(players), games_of(players, options.games)
    how: dict[str, Any] = {"games": games, "key": key, "on_progress": on_progress}
    how["should_stop"] = options.should_stop
    if any(map(host_match.is_external, players)):
        played, forfeits = host_match.play_on_host(
            entrants.players, rules, opening=options.opening, boards=options.batch, **how
        )
        return _read(played, entrants, rules, games, forfeits)
    played = match_programs.play_to_end(
        _programs_of(entrants, rules, options),
        tuple(player.variables for player in entrants.players),
        games // len(entrants.seatings.entrants),
        **how,
    )
    return _read(played, entrants, rules, games)


def play_in_rounds(
    players: Sequence[Player],
    rules: Rules,
    options: MatchOptions,
    test: Sprt | None,
    *,
    key: jax.Array,
    on_progress: OnGames = lambda games_done: None,
) -> MatchResult:
    """Play a match: all games at once, or with a test of two players in rounds of a batch, until
    the test is decided.

    Args:
      test: of two players; None plays all games at once.
      key: consumed; each round gets a key of its own, so one round is another match than
        `play_match` with the same key. More than two players have no rounds.

    The rest is as in `play_match`.
    """
    if rules.players > 2:
        return play_match(players, rules, options, key=key, on_progress=on_progress)
    games = games_of(players, options.games)
    size = games if test is None else games_of(players, options.batch)
    result: MatchResult | None = None
    for done in range(0, games, size):
        played = play_match(
            players,
            rules,
            dataclasses.replace(options, games=min(size, games - done)),
            key=jax.random.fold_in(key, done),
            on_progress=lambda more, done=done: on_progress(done + more),
        )
        result = played if result is None else join(result, played)
        is_decided = test and decide(test, result.pair_counts).decision != UNDECIDED
        if is_decided or options.should_stop():
            break
    assert result is not None
    return result


def compile_match(players: Sequence[Player], rules: Rules, options: MatchOptions) -> None:
    """Compile what `play_match` of players like these calls, whatever their weights.

    Raises:
      UsageError: as `play_match`.
    """
    entrants = entrants_of(players)
    if not any(map(host_match.is_external, players)):
        variables = tuple(player.variables for player in entrants.players)
        options = dataclasses.replace(options, games=games_of(players, options.games))
        programs = _programs_of(entrants, rules, options)
        match_programs.compile_ahead_of(programs, variables)


def check_players(players: Sequence[Player], rules: Rules) -> None:
    """Refuse other programs in games of more than two players with a UsageError."""
    for player in filter(host_match.is_external, players):
        check_two_players(rules, f"match: {player.name}")


def play_meeting(
    players: Sequence[Player],
    rules: Rules,
    options: MatchOptions,
    *,
    seed: int,
    before: int = 0,
    on_progress: OnGames = lambda games_done: None,
) -> MatchResult:
    """Play a meeting of a tournament, whose games are the same whatever was played before it.

    Args:
      seed: of the tournament, from 0 to 2³¹ - 1.
      before: openings that two players have played in it; more than two meet once.

    The rest is as in `play_match`.
    """
    key = key_of_names(sorted(player.name for player in players), seed)
    if rules.players == 2:
        key = jax.random.fold_in(key, before)
    return play_match(players, rules, options, key=key, on_progress=on_progress)


def key_of_names(names: Sequence[str], seed: int) -> jax.Array:
    """The key of what players of these names, in this order, play in a tournament of this seed."""
    who = zlib.crc32("\n".join(names).encode()) % 2**31
    return jax.random.fold_in(jax.random.key(seed), who)


def _programs_of(
    entrants: Entrants, rules: Rules, options: MatchOptions
) -> match_programs.MatchPrograms:
    devices, seatings = local_devices().count, len(entrants.seatings.entrants)
    openings = -(-options.games // (seatings * devices))  # openings of a device
    share = min(-(-options.batch // devices), openings * seatings)
    return match_programs.make_programs(
        tuple(player.act for player in entrants.players),
        entrants.seats,
        rules,
        boards=-(-share // rules.players) * rules.players,
        # Powers of two, so that matches share programs.
        capacity=max(_LEAST_GAMES // seatings, 1 << (openings - 1).bit_length()),
        opening=options.opening,
    )


def _read(
    match: MatchState,
    entrants: Entrants,
    rules: Rules,
    games: int,
    forfeits: tuple[str, ...] = (),
) -> MatchResult:
    """Read the games on the host, lane by lane, there opening by opening, the lane's seatings of
    each in order; `forfeits` are in that order."""
    arrays = match.rewards, *_cells(match.last, rules), match.actions, match.last.terminated
    devices, seatings = match.rewards.sharding.num_devices, entrants.seatings
    lanes, of_lane = seatings.lanes, seatings.of_lane
    count = games // (lanes * of_lane)  # of openings
    share = -(-count // devices)

    def in_order(x: np.ndarray) -> np.ndarray:
        """[D * lanes * Q * R, ...], device by device, to [games, ...]."""
        by_lane = x.reshape(devices, lanes, -1, of_lane, *x.shape[1:]).swapaxes(0, 1)[:, :, :share]
        in_lanes = by_lane.reshape(lanes, -1, *x.shape[1:])[:, : count * of_lane]
        return in_lanes.reshape(-1, *x.shape[1:])

    rewards, cells, regions, actions, is_over = map(in_order, fetch(arrays))
    seats = seatings.entrants.reshape(lanes, 1, of_lane, -1).repeat(count, axis=1)
    result = MatchResult(
        names=tuple(player.name for player in entrants.players),
        rules=rules,
        seats=seats.reshape(games, -1),
        rewards=np.asarray(rewards),
        cells=np.asarray(cells),
        regions=np.asarray(regions),
        opening=np.tile(np.repeat(np.arange(count), of_lane), lanes),
        games=tuple(tuple(map(int, game[game != NO_ACTION])) for game in actions),
        forfeits=forfeits,
    )
    return result if is_over.all() else result.of_games(np.flatnonzero(is_over))


@functools.partial(jax.jit, static_argnames=("rules",))
def _cells(position: Position, rules: Rules) -> tuple[jax.Array, jax.Array]:
    """int32[G, P] cells of each player, and of its largest region."""
    states = State(broadcast_boards(make_variant(rules), position.ply.shape[0]), position)
    return jax.vmap(referee.territory)(states), jax.vmap(referee.largest_region)(states)
