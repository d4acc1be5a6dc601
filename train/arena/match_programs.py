"""The programs of a match: they play until all games are over.

Q openings on each device, G games of a device, D devices, P players.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled

from train.arena.games import GameLog
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    check_sizes,
    device_memory,
    program_bytes,
    tree_bytes,
)
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

MAX_GAMES = 2**30
"""Games of a match: twice the openings, rounded up to a power of two, must be an int32."""
MOST_PROGRAMS = 20
"""Compiled matches that are kept, one for each combination of kinds of players. On a CPU each takes
about 2,000 memory maps of the 65,530 that Linux gives a process (`vm.max_map_count`); a tournament
of ten kinds has 45 pairs."""
_TICKS_A_DISPATCH = 8

Act = Callable[[Any, State, jax.Array], jax.Array]


class MatchPrograms(NamedTuple):
    """Programs of a match between some kinds of players, whatever their weights and the games."""

    begin: Callable[[np.int32, jax.Array], Any]
    """(number of openings, key) -> the openings, and the match with the first games on boards."""
    go_on: Any  # jitted
    """(variables of all, openings, match, number of openings, key) -> the match some ticks later,
    and int32[D], the finished games of each device. The match is consumed."""
    compiled: dict[Any, tuple[Compiled, int]]
    """`go_on`, and the bytes that it takes, by the shapes of the variables."""


def never() -> bool:
    """Says that a match goes on."""
    return False


def make_programs(
    begin: Callable[..., Any], go_on: Callable[..., Any], devices: Devices
) -> MatchPrograms:
    """Compile what one device does as `MatchPrograms` of all devices."""
    first = devices.per_device(begin, (EVERYWHERE, EVERYWHERE), BY_BOARD)
    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE)
    onward = devices.per_device(go_on, in_specs, BY_BOARD)
    return MatchPrograms(jax.jit(first), jax.jit(onward, donate_argnums=2), {})


def openings_of_device(
    count: jax.Array, *, capacity: int, devices: Devices
) -> tuple[jax.Array, jax.Array]:
    """The openings of a match that a device plays, inside a program of one device.

    Args:
      count: int32[], openings of the match.
      capacity: Q.
      devices: share them.

    Returns:
      int32[Q] numbers of the device's openings, and bool[Q], whether the match has that opening.
    """
    share = -(-count // devices.count)
    local = jnp.arange(capacity)
    number = jax.lax.axis_index(AXIS) * share + local
    return number, (local < share) & (number < count)


def play_ticks(match: Any, play_tick: Callable[[Any, jax.Array], Any], key: jax.Array) -> Any:
    """Some ticks of the games of one device, none when no board has a game.

    Args:
      match: `active.game` is G for a board without a game.
      play_tick: (match, key of the tick) -> the match after a ply of each board.
      key: the same in all calls.
    """
    end, no_game = match.active.tick[0] + _TICKS_A_DISPATCH, len(match.log.rewards)

    def is_on(match: Any) -> jax.Array:
        return (match.active.tick[0] < end) & (match.active.game < no_game).any()

    def tick(match: Any) -> Any:
        match = play_tick(match, jax.random.fold_in(key, match.active.tick[0]))
        return match._replace(active=match.active._replace(tick=match.active.tick + 1))

    return jax.lax.while_loop(is_on, tick, match)


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
    """Play all games of a match, or those that are over when it is stopped.

    Args:
      programs: of the match.
      variables: of all players.
      openings: their number.
      games: their number.
      devices: that share the games.
      key: consumed; decides the openings and all that the players draw.
      on_progress: called with the number of games done so far, first when all is compiled.
      should_stop: asked every few plies.

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


def check_match_size(*, games: int, batch: int) -> None:
    """Refuse more games or boards than can be numbered with a UsageError."""
    check_sizes(batch=batch)
    if games > MAX_GAMES:
        raise UsageError(f"games = {games} is too large; at most {MAX_GAMES} can be kept")


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


def key_of_names(names: Sequence[str], seed: int) -> jax.Array:
    """The key of what players of these names, in any order, play in a tournament of this seed."""
    who = zlib.crc32("\n".join(sorted(names)).encode()) % 2**31
    return jax.random.fold_in(jax.random.key(seed), who)
