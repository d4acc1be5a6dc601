"""The programs of a match: they play until all games are over.

N boards, Q openings and G games of a device, D devices, P players; see `train.arena.games`.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

from train.arena.games import GameLog, MatchState, boards_to_move, play_slots, seatings_of, set_up
from train.arena.openings import OpeningOptions, Openings, open_games
from train.players.basic import Act
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices, broadcast_boards
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    device_memory,
    program_bytes,
    tree_bytes,
)
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, make_variant

MAX_GAMES = 2**30
"""Games of a match: twice the openings, rounded up to a power of two, must be an int32."""
MOST_PROGRAMS = 20
"""Compiled matches that are kept, one for each combination of kinds of players. On a CPU each takes
about 2,000 memory maps of the 65,530 that Linux gives a process (`vm.max_map_count`); a tournament
of ten kinds has 45 pairs."""
_TICKS_A_DISPATCH = 8


class MatchPrograms(NamedTuple):
    """Programs of a match between some kinds of players, whatever their weights and the games."""

    begin: Callable[[np.int32, jax.Array], Any]
    """(number of openings, key) -> the openings, and the match with the first games on boards."""
    go_on: Any  # jitted
    """(variables of all, openings, match, number of openings, key) -> the match some ticks later,
    and int32[D], the finished games of each device. The match is consumed."""
    compiled: dict[Any, tuple[Compiled, int]]
    """`go_on`, and the bytes that it takes, by the shapes of the variables."""


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def make_programs(
    acts: tuple[Act, ...],
    seats: tuple[int, ...],
    rules: Rules,
    devices: Devices,
    *,
    boards: int,
    capacity: int,
    opening: OpeningOptions,
) -> MatchPrograms:
    """Make the programs of entrants that hold some seats each, for N = `boards` boards and Q =
    `capacity` openings on each device."""
    variant, seatings = make_variant(rules), seatings_of(seats)
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
        keys = jax.random.split(jax.random.fold_in(key, match.active.tick[0]), len(acts))
        for entrant, act in enumerate(acts):
            share = boards * seats[entrant] // rules.players
            chosen, is_valid = boards_to_move(match, seatings, entrant=entrant, boards=share)
            position = jax.tree.map(operator.itemgetter(chosen), match.active.position)
            states = State(broadcast_boards(variant, share), position)
            slots = act(variables[entrant], states, keys[entrant])
            match = play_slots(match, openings, seatings, states, chosen, slots, is_valid)
        return match._replace(active=match.active._replace(tick=match.active.tick + 1))

    def go_on(
        variables: Any, openings: Openings, match: MatchState, count: jax.Array, key: jax.Array
    ) -> tuple[MatchState, jax.Array]:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        end = match.active.tick[0] + _TICKS_A_DISPATCH
        match = jax.lax.while_loop(
            lambda match: (match.active.tick[0] < end) & (match.active.game < no_game).any(),
            lambda match: play_tick(variables, openings, match, key),
            match,
        )
        is_over = match.log.position.terminated.reshape(seatings.lanes, capacity, seatings.of_lane)
        is_done = is_over & numbers_of(count)[1][None, :, None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    first = devices.per_device(begin, (EVERYWHERE, EVERYWHERE), BY_BOARD)
    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE)
    onward = devices.per_device(go_on, in_specs, BY_BOARD)
    return MatchPrograms(jax.jit(first), jax.jit(onward, donate_argnums=2), {})


def play_to_end(
    programs: MatchPrograms,
    variables: tuple[Any, ...],
    openings: int,
    *,
    games: int,
    devices: Devices,
    key: jax.Array,
    on_progress: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> GameLog:
    """Play all `games` of a match of some openings, or those that are over when it is stopped.

    The rest is as in `train.arena.match.play_match`.

    Returns:
      The games of all devices, [D * G].

    Raises:
      UsageError: the match needs more memory than a device has.
    """
    placed = (*jax.random.split(key), variables)
    open_key, play_key, variables = jax.device_put(placed, devices.sharding(EVERYWHERE))
    count = np.int32(openings)
    go_on = _compile(programs, variables, devices)
    opened, match = programs.begin(count, open_key)
    on_progress(0)
    while True:
        match, done = go_on(variables, opened, match, count, play_key)
        finished = int(fetch(done).sum())
        on_progress(finished)
        if finished == games or should_stop():
            return match.log


def check_opening(rules: Rules, plies: int) -> None:
    """Refuse random plies that would be whole games with a UsageError."""
    if plies >= rules.max_plies:
        raise UsageError(
            f"match: opening_plies ({plies}) must be below {rules.max_plies}, the most plies of a "
            "game by these rules"
        )


def _compile(programs: MatchPrograms, variables: tuple[Any, ...], devices: Devices) -> Compiled:
    """Compile a match before anything of it runs, and refuse one that does not fit."""
    leaves, tree = jax.tree.flatten(variables)
    shapes = tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    count, key = np.int32(1), jax.eval_shape(jax.random.key, 0)
    openings, match = devices.like(jax.eval_shape(programs.begin, count, key), BY_BOARD)
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
