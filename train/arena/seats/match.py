"""Matches of three and four players: each opening is played once in every seating.

In each tick an entrant gets up to its share of a device's boards, those where it is to move.

N boards, Q openings, S seatings, G = Q S games, P players, E entrants, D devices; see
`train.arena.seats.games`.
"""

import dataclasses
import functools
import operator
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena import host_match
from train.arena.active_games import GameLog, Openings, open_games
from train.arena.match import MOST_PROGRAMS
from train.arena.seats.games import SeatedMatch, boards_to_move, play_slots, set_up
from train.arena.seats.result import SeatedResult, keep_finished
from train.arena.seats.seating import check_rules, seatings_of
from train.players.basic import Player
from train.runtime.devices import (
    AXIS,
    BY_BOARD,
    EVERYWHERE,
    Devices,
    broadcast_boards,
    local_devices,
)
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.memory import (
    Need,
    check_fits,
    check_sizes,
    device_memory,
    least_bytes,
    tree_bytes,
)
from wallgo_jax.game import referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, make_variant

_TICKS_A_DISPATCH = 8
_MAX_GAMES = 2**30
_LEAST_CAPACITY = 32  # openings; shorter matches share one program

Act = Callable[[Any, State, jax.Array], jax.Array]


def _never() -> bool:
    return False


@dataclasses.dataclass(frozen=True)
class SeatOptions:
    """Number of games of a match, and how they are played.

    Attributes:
      games: at least so many; rounded up so that every opening is played in every seating.
      batch: games in parallel on all devices together; rounded up to a multiple of the players on
        each device.
      opening_plies: random plies at the start, the same in all games of an opening.
      devices: share the boards; None for all devices of this process.
      should_stop: asked every few plies; where it says True the match ends with the games that are
        over.

    Raises:
      ValueError: a number is too small.
    """

    games: int
    batch: int = 400
    opening_plies: int = 0
    devices: Devices | None = None
    should_stop: Callable[[], bool] = _never

    def __post_init__(self) -> None:
        for name, least in (("games", 1), ("batch", 1), ("opening_plies", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"match: {name} ({getattr(self, name)}) must be at least {least}")


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
      UsageError: a player is another program.
    """
    check_rules(rules)
    if len(players) != rules.players:
        raise ValueError(f"match: {len(players)} players at {rules.players} seats")
    field = field_of(players)
    check_players(players, rules)
    games, seatings = games_of(players, options.games), len(field.seatings)
    check_fits(seat_needs(field, rules, options), device_memory())
    devices, programs = options.devices or local_devices(), _programs_of(field, rules, options)
    open_key, play_key = jax.random.split(key)
    variables = tuple(player.variables for player in field.entrants)
    variables = jax.device_put(variables, devices.sharding(EVERYWHERE))
    count = np.int32(games // seatings)
    openings, match = programs.begin(count, open_key)
    is_first = True
    while True:
        match, done = programs.go_on(variables, openings, match, count, play_key)
        if is_first:
            # The call has compiled and returned; the games are being played.
            on_progress(0)
            is_first = False
        finished = int(fetch(done).sum())
        on_progress(finished)
        if finished == games or options.should_stop():
            return _read(match.log, field, rules, games)


def check_players(players: Sequence[Player], rules: Rules) -> None:
    """Refuse other programs at a table of more than two with a UsageError."""
    for player in players:
        if rules.players > 2 and host_match.is_external(player):
            raise UsageError(f"match: {player.name}: other programs play games of two players")


def meeting_key(names: Sequence[str], seed: int) -> jax.Array:
    """The key of a meeting of these players, whatever was played before it."""
    who = zlib.crc32("\n".join(sorted(names)).encode()) % 2**31
    return jax.random.fold_in(jax.random.key(seed), who)


def seat_needs(field: Field, rules: Rules, options: SeatOptions) -> list[Need]:
    """Estimate the memory of a match on one device; the players' weights may be shapes.

    Raises:
      UsageError: more games than can be numbered.
    """
    check_sizes(batch=options.batch)
    if options.games > _MAX_GAMES:
        raise UsageError(f"games = {options.games} is too large; at most {_MAX_GAMES} can be kept")
    devices = options.devices or local_devices()
    programs = _programs_of(field, rules, options)
    count, key = np.int32(1), jax.random.key(0)
    openings, match = jax.eval_shape(programs.begin, count, key)
    variables = tuple(player.variables for player in field.entrants)
    traced = programs.go_on.trace(variables, openings, match, count, key)
    by_game = tree_bytes((openings, match.log)) // devices.count
    return [
        Need("games", options.games, by_game),
        # A tick holds the log that it reads and the log that it makes.
        Need("batch", options.batch, max(0, least_bytes(traced) - 2 * by_game)),
        Need("weights", 1, tree_bytes(variables)),
    ]


class _Programs(NamedTuple):
    """Programs of a match between some kinds of players, whatever their weights and the games."""

    begin: Callable[[np.int32, jax.Array], tuple[Openings, SeatedMatch]]
    """(number of openings, key) -> the openings, and the first games on the boards."""
    go_on: Any  # jitted
    """(variables of all, openings, match, number of openings, key) -> the match some ticks later,
    and int32[D], the finished games of each device. The match is consumed."""


def _programs_of(field: Field, rules: Rules, options: SeatOptions) -> _Programs:
    devices, seatings = options.devices or local_devices(), len(field.seatings)
    own = -(-options.games // (seatings * devices.count))  # openings of a device
    share = min(-(-options.batch // devices.count), own * seatings)
    return _programs(
        tuple(player.act for player in field.entrants),
        field.seats,
        rules,
        devices,
        boards=-(-share // rules.players) * rules.players,
        capacity=max(_LEAST_CAPACITY, 1 << (own - 1).bit_length()),
        opening_plies=options.opening_plies,
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
    opening_plies: int,
) -> _Programs:
    """Make the programs for N = `boards` boards and Q = `capacity` openings on each device."""
    variant, seated = make_variant(rules), np.array(seatings_of(seats))
    seatings = len(seated)

    def own_openings(count: jax.Array) -> tuple[jax.Array, jax.Array]:
        """int32[Q] numbers of the device's openings, and bool[Q], whether the match has it."""
        share = -(-count // devices.count)
        local = jnp.arange(capacity)
        number = jax.lax.axis_index(AXIS) * share + local
        return number, (local < share) & (number < count)

    def begin(count: jax.Array, key: jax.Array) -> tuple[Openings, SeatedMatch]:
        openings = open_games(variant, *own_openings(count), key, plies=opening_plies)
        return openings, set_up(openings, boards=boards, seatings=seatings, plies=rules.max_plies)

    def go_on(
        variables: Any, openings: Openings, match: SeatedMatch, count: jax.Array, key: jax.Array
    ) -> tuple[SeatedMatch, jax.Array]:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        end, no_game = match.active.tick[0] + _TICKS_A_DISPATCH, capacity * seatings

        def is_on(match: SeatedMatch) -> jax.Array:
            return (match.active.tick[0] < end) & (match.active.game < no_game).any()

        def tick(match: SeatedMatch) -> SeatedMatch:
            keys = jax.random.split(jax.random.fold_in(key, match.active.tick[0]), len(acts))
            for entrant, act in enumerate(acts):
                share = boards * seats[entrant] // rules.players
                chosen, is_valid = boards_to_move(match, seated, entrant=entrant, boards=share)
                position = jax.tree.map(operator.itemgetter(chosen), match.active.position)
                states = State(broadcast_boards(variant, share), position)
                slots = act(variables[entrant], states, keys[entrant])
                match = play_slots(match, openings, states, chosen, slots, is_valid)
            active = match.active
            return match._replace(active=active._replace(tick=active.tick + 1))

        match = jax.lax.while_loop(is_on, tick, match)
        is_done = match.log.position.terminated.reshape(capacity, seatings)
        is_done &= own_openings(count)[1][:, None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    first = devices.per_device(begin, (EVERYWHERE, EVERYWHERE), BY_BOARD)
    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE)
    onward = devices.per_device(go_on, in_specs, BY_BOARD)
    return _Programs(jax.jit(first), jax.jit(onward, donate_argnums=2))


def _read(log: GameLog, field: Field, rules: Rules, games: int) -> SeatedResult:
    """Read the games on the host, opening by opening, the seatings of each in order."""
    cells, is_over = _territory(log.position, rules), log.position.terminated
    rewards, cells, played, is_over = fetch((log.rewards, cells, log.actions, is_over))
    devices, seated = log.rewards.sharding.num_devices, np.array(field.seatings)
    count = games // len(seated)
    share = -(-count // devices) * len(seated)

    def in_order(x: np.ndarray) -> np.ndarray:
        """[D * Q * S, ...], device by device, to [games, ...]."""
        by_device = x.reshape(devices, -1, *x.shape[1:])[:, :share]
        return by_device.reshape(-1, *x.shape[1:])[:games]

    rewards, cells, played, is_over = map(in_order, (rewards, cells, played, is_over))
    result = SeatedResult(
        names=tuple(player.name for player in field.entrants),
        rules=rules,
        seats=np.tile(seated, (count, 1)),
        rewards=np.asarray(rewards),
        territory=np.asarray(cells),
        opening=np.repeat(np.arange(count), len(seated)),
        games=tuple(tuple(int(a) for a in game[game != NO_ACTION]) for game in played),
    )
    return result if is_over.all() else keep_finished(result, is_over)


@functools.partial(jax.jit, static_argnames=("rules",))
def _territory(position: Position, rules: Rules) -> jax.Array:
    """int32[G, P] cells of each player."""
    variants = broadcast_boards(make_variant(rules), position.ply.shape[0])
    return jax.vmap(referee.territory)(State(variants, position))
