"""Matches of three and four players: each opening is played once in every seating.

In each tick an entrant gets up to its share of a device's boards, those where it is to move.

N boards, Q openings, S seatings, G = Q S games, P players, E entrants, D devices; see
`train.arena.seats.games`.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena import host_match, match_programs
from train.arena.active_games import GameLog
from train.arena.match_programs import MOST_PROGRAMS, Act, Programs, never, own_openings
from train.arena.openings import OpeningOptions, Openings, Positions, open_games
from train.arena.seats.games import SeatedMatch, boards_to_move, play_slots, set_up
from train.arena.seats.result import SeatedResult, keep_finished
from train.arena.seats.seating import check_rules, seatings_of
from train.players.basic import Player
from train.runtime.devices import AXIS, Devices, broadcast_boards, local_devices
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, make_variant

_LEAST_CAPACITY = 32  # openings; shorter matches share one program


@dataclasses.dataclass(frozen=True)
class SeatOptions:
    """Number of games of a match, and how they are played.

    Attributes:
      games: at least so many; rounded up so that every opening is played in every seating.
      batch: games in parallel on all devices together; rounded up to a multiple of the players on
        each device.
      opening_plies: random plies at the start, the same in all games of an opening.
      players_place: the players place the stones; the random plies come after.
      positions: of a file, which games start from in place of random plies.
      devices: share the boards; None for all devices of this process.
      should_stop: asked every few plies; where it says True the match ends with the games that are
        over.

    Raises:
      ValueError: a number is too small.
    """

    games: int
    batch: int = 400
    opening_plies: int = 0
    players_place: bool = False
    positions: Positions | None = None
    devices: Devices | None = None
    should_stop: Callable[[], bool] = never

    def __post_init__(self) -> None:
        for name, least in (("games", 1), ("batch", 1), ("opening_plies", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"match: {name} ({getattr(self, name)}) must be at least {least}")

    @property
    def opening(self) -> OpeningOptions:
        """How the games open."""
        return OpeningOptions(self.opening_plies, self.players_place, self.positions)


class Field(NamedTuple):
    """The entrants of a match and how many seats each holds."""

    entrants: tuple[Player, ...]
    seats: tuple[int, ...]

    @property
    def seatings(self) -> tuple[tuple[int, ...], ...]:
        """The distinct orders in which they sit, [S, P]."""
        return seatings_of(self.seats)


def field_of(players: Sequence[Player]) -> Field:
    """Players of one name are one entrant; entrants stand in the order of their first seat."""
    by_name: dict[str, Player] = {}
    counts: dict[str, int] = {}
    for player in players:
        by_name.setdefault(player.name, player)
        counts[player.name] = counts.get(player.name, 0) + 1
    return Field(tuple(by_name.values()), tuple(counts.values()))


def games_of(players: Sequence[Player], games: int) -> int:
    """The games of a match of at least this many: whole rotations of the seats."""
    seatings = len(field_of(players).seatings)
    return -(-games // seatings) * seatings


def play_seats(
    players: Sequence[Player],
    rules: Rules,
    options: SeatOptions,
    *,
    key: jax.Array,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> SeatedResult:
    """Play a match of as many players as the rules have seats.

    Args:
      players: of all seats; those of one name are one entrant.
      rules: for three or four players.
      options: how many games, and how.
      key: consumed; decides the openings and all that the players draw.
      on_progress: called with the number of games done so far, first when all is compiled.

    Raises:
      ValueError: the rules are for two players, or for another number than are named.
      UsageError: a player is another program, the opening plies are as many as a game's, or the
        match needs more memory than there is.
    """
    check_rules(rules)
    if len(players) != rules.players:
        raise ValueError(f"match: {len(players)} players at {rules.players} seats")
    match_programs.check_opening(rules, options.opening_plies)
    field = field_of(players)
    check_players(players, rules)
    games, seatings = games_of(players, options.games), len(field.seatings)
    match_programs.check_match_size(games=options.games, batch=options.batch)
    log = match_programs.play_to_end(
        _programs_of(field, rules, options),
        tuple(player.variables for player in field.entrants),
        games // seatings,
        games=games,
        devices=options.devices or local_devices(),
        key=key,
        on_progress=on_progress,
        should_stop=options.should_stop,
    )
    return _read(log, field, rules, games)


def check_players(players: Sequence[Player], rules: Rules) -> None:
    """Refuse other programs at a table of more than two with a UsageError."""
    for player in players:
        if rules.players > 2 and host_match.is_external(player):
            raise UsageError(f"match: {player.name}: other programs play games of two players")


def _programs_of(field: Field, rules: Rules, options: SeatOptions) -> Programs:
    devices, seatings = options.devices or local_devices(), len(field.seatings)
    own = -(-options.games // (seatings * devices.count))  # openings of a device
    share = min(-(-options.batch // devices.count), own * seatings)
    return _programs(
        tuple(player.act for player in field.entrants),
        field.seats,
        rules,
        devices,
        boards=-(-share // rules.players) * rules.players,
        capacity=match_programs.capacity_of(own, least=_LEAST_CAPACITY),
        opening=options.opening,
    )


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def _programs(
    acts: tuple[Act, ...],
    seats: tuple[int, ...],
    rules: Rules,
    devices: Devices,
    *,
    boards: int,
    capacity: int,
    opening: OpeningOptions,
) -> Programs:
    """Make the programs for N = `boards` boards and Q = `capacity` openings on each device."""
    variant, seated = make_variant(rules), np.array(seatings_of(seats))
    seatings = len(seated)
    own = functools.partial(own_openings, capacity=capacity, devices=devices)

    def begin(count: jax.Array, key: jax.Array) -> tuple[Openings, SeatedMatch]:
        openings = open_games(variant, *own(count), key, opening)
        return openings, set_up(openings, boards=boards, seatings=seatings, plies=rules.max_plies)

    def go_on(
        variables: Any, openings: Openings, match: SeatedMatch, count: jax.Array, key: jax.Array
    ) -> tuple[SeatedMatch, jax.Array]:
        def play_tick(match: SeatedMatch, key: jax.Array) -> SeatedMatch:
            keys = jax.random.split(key, len(acts))
            for entrant, act in enumerate(acts):
                share = boards * seats[entrant] // rules.players
                chosen, is_valid = boards_to_move(match, seated, entrant=entrant, boards=share)
                position = jax.tree.map(operator.itemgetter(chosen), match.active.position)
                states = State(broadcast_boards(variant, share), position)
                slots = act(variables[entrant], states, keys[entrant])
                match = play_slots(match, openings, states, chosen, slots, is_valid)
            return match

        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        match = match_programs.play_ticks(match, play_tick, key)
        is_done = match.log.position.terminated.reshape(capacity, seatings)
        is_done &= own(count)[1][:, None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    return match_programs.make_programs(begin, go_on, devices)


def _read(log: GameLog, field: Field, rules: Rules, games: int) -> SeatedResult:
    """Read the games on the host, opening by opening, the seatings of each in order."""
    (played, devices), seated = match_programs.read_log(log, rules), np.array(field.seatings)
    count = games // len(seated)
    share = -(-count // devices) * len(seated)

    def in_order(x: np.ndarray) -> np.ndarray:
        """[D * Q * S, ...], device by device, to [games, ...]."""
        by_device = x.reshape(devices, -1, *x.shape[1:])[:, :share]
        return by_device.reshape(-1, *x.shape[1:])[:games]

    rewards, cells, actions, is_over = map(in_order, played)
    result = SeatedResult(
        names=tuple(player.name for player in field.entrants),
        rules=rules,
        seats=np.tile(seated, (count, 1)),
        rewards=np.asarray(rewards),
        territory=np.asarray(cells),
        opening=np.repeat(np.arange(count), len(seated)),
        games=match_programs.actions_of(actions),
    )
    return result if is_over.all() else keep_finished(result, is_over)
