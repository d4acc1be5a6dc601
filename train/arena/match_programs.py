"""The games of a match on devices: the programs that play them until all are over.

A device plays Q openings, each once in every seating. Its boards are parted into lanes, each with
a queue of its own; a board whose game is over takes the next one of its lane. At two seats a lane
is a seating, so that either player is to move on about half of the boards. At more seats there is
one lane, whose queue mixes the seatings.

N boards, K boards of a lane or of an entrant, Q openings, S seatings, R seatings of a lane,
G = Q S games, L plies at most, O plies of an opening, P seats, D devices. Game g is in lane
g // (Q R); there it is game n = g % (Q R), which begins with opening n // R and has seating n % R
of the lane.
"""

import functools
import itertools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

from train.arena.match_openings import OpeningOptions, Openings, open_games, with_drawn_plies
from train.players.basic import Act
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, broadcast_boards, local_devices
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    device_memory,
    program_bytes,
    tree_bytes,
)
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, make_variant

MOST_PROGRAMS = 20
"""Compiled matches that are kept, one for each combination of kinds of players. On a CPU each takes
about 2,000 memory maps of the 65,530 that Linux gives a process (`vm.max_map_count`); a tournament
of ten kinds has 45 pairs."""
_TICKS_A_DISPATCH = 8


class MatchState(NamedTuple):
    """The games of a device: those on its boards, and what is written down of all."""

    position: Position  # [N]
    game: jax.Array  # int32[N], from 0 to G - 1, or G for a board without a game
    since: jax.Array  # int32[N], tick of the board's last ply
    next_place: jax.Array  # int32[lanes], place in the queue of each lane's next game
    tick: jax.Array  # int32[1], ticks done
    last: Position  # [G], the last one of a finished game, else the opening's
    rewards: jax.Array  # float32[G, P], of the last ply of a finished game, else the opening's
    actions: jax.Array  # int32[G, L] public ids, NO_ACTION after the newest


class Seatings(NamedTuple):
    """The seatings of a match, and how they are shared among lanes."""

    entrants: np.ndarray  # int[S, P], the entrant at each seat of each seating
    lanes: int

    @property
    def of_lane(self) -> int:
        """R, seatings of a lane."""
        return len(self.entrants) // self.lanes


def seatings_of(seats: Sequence[int]) -> Seatings:
    """The distinct orders of entrants that hold so many seats each, sorted."""
    held = [entrant for entrant, count in enumerate(seats) for _ in range(count)]
    orders = sorted(set(itertools.permutations(held)))
    return Seatings(np.array(orders), lanes=2 if len(held) == 2 else 1)


class MatchPrograms(NamedTuple):
    """Programs of a match between some kinds of players, whatever their weights and the games."""

    begin: Callable[[np.int32, jax.Array], Any]
    """(number of openings, key) -> the openings, and the match with the first games on boards."""
    go_on: Any  # jitted
    """(variables of all, openings, match, number of openings, key) -> the match some ticks later,
    and int32[D], the finished games of each device. The match is consumed."""
    compiled: dict[Any, tuple[Compiled, int]]
    """`go_on`, and the bytes that it takes, by the shapes of the variables."""
    compiling: threading.Lock
    """Held while `go_on` is compiled: another thread may do that ahead of a match."""


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def make_programs(
    acts: tuple[Act, ...],
    seats: tuple[int, ...],
    rules: Rules,
    *,
    boards: int,
    capacity: int,
    opening: OpeningOptions,
) -> MatchPrograms:
    """Make the programs of entrants that hold some seats each, for N = `boards` boards and Q =
    `capacity` openings on each device."""
    variant, seatings, devices = make_variant(rules), seatings_of(seats), local_devices()
    no_game = capacity * len(seatings.entrants)

    def numbers_of(count: jax.Array) -> tuple[jax.Array, jax.Array]:
        """int32[Q] numbers of this device's openings, and bool[Q], whether there is that one."""
        share, local = -(-count // devices.count), jnp.arange(capacity)
        number = jax.lax.axis_index(AXIS) * share + local
        return number, (local < share) & (number < count)

    def begin(count: jax.Array, key: jax.Array) -> tuple[Openings, MatchState]:
        openings = open_games(variant, *numbers_of(count), key, opening)
        return openings, set_up(openings, seatings, boards=boards, plies=rules.max_plies)

    def play_tick(
        variables: Any, openings: Openings, match: MatchState, key: jax.Array
    ) -> MatchState:
        keys = jax.random.split(jax.random.fold_in(key, match.tick[0]), len(acts))
        for entrant, act in enumerate(acts):
            share = boards * seats[entrant] // rules.players
            chosen, is_valid = boards_to_move(match, seatings, entrant=entrant, boards=share)
            position = jax.tree.map(operator.itemgetter(chosen), match.position)
            states = State(broadcast_boards(variant, share), position)
            slots = act(variables[entrant], states, keys[entrant])
            match = play_slots(match, openings, seatings, states, chosen, slots, is_valid)
        return match._replace(tick=match.tick + 1)

    def go_on(
        variables: Any, openings: Openings, match: MatchState, count: jax.Array, key: jax.Array
    ) -> tuple[MatchState, jax.Array]:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        end = match.tick[0] + _TICKS_A_DISPATCH
        match = jax.lax.while_loop(
            lambda match: (match.tick[0] < end) & (match.game < no_game).any(),
            lambda match: play_tick(variables, openings, match, key),
            match,
        )
        is_over = match.last.terminated.reshape(seatings.lanes, capacity, seatings.of_lane)
        is_done = is_over & numbers_of(count)[1][None, :, None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    begin_everywhere = devices.per_device(begin, (EVERYWHERE, EVERYWHERE), BY_BOARD)
    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE)
    go_on_everywhere = devices.per_device(go_on, in_specs, BY_BOARD)
    programs = jax.jit(begin_everywhere), jax.jit(go_on_everywhere, donate_argnums=2)
    return MatchPrograms(*programs, {}, threading.Lock())


def play_to_end(
    programs: MatchPrograms,
    variables: tuple[Any, ...],
    openings: int,
    *,
    games: int,
    key: jax.Array,
    on_progress: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> MatchState:
    """Play all `games` of a match of some openings, or those that are over when it is stopped.

    The rest is as in `train.arena.match.play_match`.

    Returns:
      The games of all devices, [D * G].

    Raises:
      UsageError: the match needs more memory than a device has.
    """
    placed = (*jax.random.split(key), variables)
    everywhere = local_devices().sharding(EVERYWHERE)
    open_key, play_key, variables = jax.device_put(placed, everywhere)
    count = np.int32(openings)
    go_on = _compile(programs, variables)
    opened, match = programs.begin(count, open_key)
    on_progress(0)
    while True:
        match, done = go_on(variables, opened, match, count, play_key)
        finished = int(fetch(done).sum())
        on_progress(finished)
        if finished == games or should_stop():
            return match


def compile_ahead_of(programs: MatchPrograms, variables: tuple[Any, ...]) -> None:
    """Compile what `play_to_end` calls.

    Raises:
      UsageError: the match needs more memory than a device has.
    """
    everywhere = local_devices().sharding(EVERYWHERE)
    key, variables = jax.device_put((jax.random.key(0), variables), everywhere)
    _compile(programs, variables)
    programs.begin(np.int32(1), key)


def check_opening(rules: Rules, plies: int) -> None:
    """Refuse random plies that would be whole games with a UsageError."""
    if plies >= rules.max_plies:
        raise UsageError(
            f"match: opening_plies ({plies}) must be below {rules.max_plies}, the most plies of a "
            "game by these rules"
        )


def _compile(programs: MatchPrograms, variables: tuple[Any, ...]) -> Compiled:
    """Compile a match before anything of it runs, and refuse one that does not fit."""
    devices, (leaves, tree) = local_devices(), jax.tree.flatten(variables)
    shapes = tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    count, key = np.int32(1), jax.eval_shape(jax.random.key, 0)
    openings, match = devices.like(jax.eval_shape(programs.begin, count, key), BY_BOARD)
    with programs.compiling:
        if shapes not in programs.compiled:
            like = variables, openings, match, count, devices.like(key, EVERYWHERE)
            compiled = programs.go_on.lower(*like).compile()
            programs.compiled[shapes] = compiled, program_bytes(compiled)
    compiled, needed = programs.compiled[shapes]
    held = [
        MemoryEstimate("the games", tree_bytes((openings, match)), ("games", "batch")),
        MemoryEstimate("weights", tree_bytes(variables), ("the size of the networks",)),
    ]
    playing = MemoryEstimate("playing", needed, ("batch", "simulations"))
    check_fits(held, device_memory(), programs=[playing])
    return compiled


def set_up(openings: Openings, seatings: Seatings, *, boards: int, plies: int) -> MatchState:
    """Put the first games of each lane on the N = `boards` boards; `plies` is L."""
    count, opening_plies = openings.actions.shape
    lanes, games = seatings.lanes, count * len(seatings.entrants)

    def of_each_game(x: jax.Array) -> jax.Array:
        return jnp.concatenate([jnp.repeat(x, seatings.of_lane, axis=0)] * lanes)

    share, empty = boards // lanes, jnp.full((games, plies), NO_ACTION, jnp.int32)
    lane, place = jnp.repeat(jnp.arange(lanes), share), jnp.tile(jnp.arange(share), lanes)
    game, opening, _ = _game_at(openings, seatings, lane, place)
    return MatchState(
        position=jax.tree.map(lambda x: x[opening], openings.position),
        game=game,
        since=jnp.zeros(boards, jnp.int32),
        next_place=jnp.full(lanes, share, jnp.int32),
        tick=jnp.zeros(1, jnp.int32),
        last=jax.tree.map(of_each_game, openings.position),
        rewards=of_each_game(openings.rewards),
        actions=empty.at[:, :opening_plies].set(of_each_game(openings.actions)[:, :plies]),
    )


def is_to_move(match: MatchState, seatings: Seatings, entrant: int) -> jax.Array:
    """bool[N]: the boards where it is an entrant's turn."""
    no_game = match.rewards.shape[0]
    in_lane = no_game // seatings.lanes
    number = match.game // in_lane * seatings.of_lane + match.game % in_lane % seatings.of_lane
    seated = jnp.asarray(seatings.entrants)[jnp.minimum(number, len(seatings.entrants) - 1)]
    mover = match.position.player.astype(jnp.int32)[:, None]
    is_seated = jnp.take_along_axis(seated, mover, axis=1)[:, 0] == entrant
    return is_seated & (match.game < no_game)


def boards_to_move(
    match: MatchState, seatings: Seatings, *, entrant: int, boards: int
) -> tuple[jax.Array, jax.Array]:
    """Choose K boards for an entrant, those where it has waited longest first.

    Returns:
      int32[K] boards, and bool[K], whether the entrant is to move there: where it is to move on
      fewer than K boards, the rest are others.
    """
    its_turn = is_to_move(match, seatings, entrant)
    waiting = jnp.where(its_turn, match.since, jnp.iinfo(jnp.int32).max)
    chosen = jnp.argsort(waiting, stable=True)[:boards]
    return chosen, its_turn[chosen]


def play_slots(
    match: MatchState,
    openings: Openings,
    seatings: Seatings,
    states: State,
    boards: jax.Array,
    slots: jax.Array,
    is_valid: jax.Array,
) -> MatchState:
    """Play a slot on each of some boards, write it down, and start new games where some ended.

    Args:
      match: the games.
      openings: where new games begin.
      seatings: in which each opening is played.
      states: [K], of the boards.
      boards: int32[K], each once.
      slots: int32[K].
      is_valid: bool[K]; where False nothing is played.
    """
    no_game = match.rewards.shape[0]
    opening = match.game[boards] % (no_game // seatings.lanes) // seatings.of_lane
    slots = with_drawn_plies(openings, opening, states, slots)
    public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
    after, rewards = jax.vmap(referee.play)(states, slots)
    new = after.position, rewards, public
    return write_down(match, openings, seatings, boards, is_valid, *new)


def write_down(
    match: MatchState,
    openings: Openings,
    seatings: Seatings,
    boards: jax.Array,
    is_valid: jax.Array,
    after: Position,
    rewards: jax.Array,
    public: jax.Array,
) -> MatchState:
    """Write down positions [K], rewards float32[K, P] and public actions int32[K] that came of the
    plies on some boards; the rest is as in `play_slots`."""
    game, no_game = match.game[boards], match.rewards.shape[0]
    ply = match.position.ply[boards].astype(jnp.int32)
    # Games beyond the last are dropped by the writes below.
    written = jnp.where(is_valid, game, no_game)
    ended = jnp.where(is_valid & after.terminated, game, no_game)
    return _stand_on_boards(match, openings, seatings, after, boards, is_valid)._replace(
        last=jax.tree.map(lambda old, new: old.at[ended].set(new, mode="drop"), match.last, after),
        rewards=match.rewards.at[ended].set(rewards, mode="drop"),
        actions=match.actions.at[written, ply].set(public, mode="drop"),
    )


def _stand_on_boards(
    match: MatchState,
    openings: Openings,
    seatings: Seatings,
    after: Position,
    boards: jax.Array,
    is_valid: jax.Array,
) -> MatchState:
    """The match once positions [K] stand on some of the boards, finished games replaced."""
    lanes = seatings.lanes
    over = is_valid & after.terminated
    lane = boards // (match.game.shape[0] // lanes)
    # Boards of a lane whose games end in one tick take places of its queue one after the other.
    ends = over[:, None] & (lane[:, None] == jnp.arange(lanes)[None])  # [K, lanes]
    order = jnp.cumsum(ends, axis=0, dtype=jnp.int32) - 1
    place = match.next_place[lane] + jnp.take_along_axis(order, lane[:, None], axis=1)[:, 0]
    following, opening, is_there = _game_at(openings, seatings, lane, place)
    has_next = over & is_there

    def stand(new: jax.Array, begun: jax.Array, old: jax.Array) -> jax.Array:
        def spread(flags: jax.Array) -> jax.Array:
            return flags.reshape(-1, *[1] * (new.ndim - 1))

        current = jnp.where(spread(is_valid), new, old[boards])
        return old.at[boards].set(jnp.where(spread(has_next), begun[opening], current))

    since = jnp.where(is_valid, match.tick, match.since[boards])
    return match._replace(
        position=jax.tree.map(stand, after, openings.position, match.position),
        game=match.game.at[boards].set(jnp.where(over, following, match.game[boards])),
        since=match.since.at[boards].set(since),
        next_place=match.next_place + ends.sum(axis=0, dtype=jnp.int32),
    )


def _game_at(
    openings: Openings, seatings: Seatings, lane: jax.Array, place: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The games at places int32[K] of lanes' queues, G behind the last; their openings; and
    bool[K], whether there is one."""
    count, of_lane = openings.queue.shape[0], seatings.of_lane
    opening = openings.queue[jnp.minimum(place // of_lane, count - 1)]
    game = (lane * count + opening) * of_lane + place % of_lane
    is_there = place < openings.live * of_lane
    no_game = count * len(seatings.entrants)
    return jnp.where(is_there, game, no_game).astype(jnp.int32), opening, is_there
