"""Plays any game at random on all boards at once, in one loop from which XLA can leave nothing out.

Every game is played alike: each ply takes one random number a board, finished boards restart by a
select of a first state, the game's own counts must add up to the plies claimed, and a checksum
covers all that was read.

B boards, A actions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.bench.harness.program import compile_program
from train.bench.harness.timing import CHECKSUM, Bench
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices
from train.runtime.host import fetch


class Game(NamedTuple):
    """A game of one board for random play."""

    name: str
    first: Callable[[jax.Array], Any]
    """key -> state before the first ply."""
    act: Callable[[Any, jax.Array], jax.Array]
    """(state, random bits uint32) -> int32, a uniformly random legal action."""
    step: Callable[[Any, jax.Array], Any]
    """(state, action) -> next state."""
    is_over: Callable[[Any], jax.Array]
    """state -> bool."""
    steps: Callable[[Any], jax.Array]
    """state -> int, plies of the game so far, as the game itself counts them."""
    read: Callable[[Any, jax.Array, Any], jax.Array]
    """(state, action, next state) -> uint32 that depends on all that a player would read."""


class Tally(NamedTuple):
    """Sums over a run, uint32[]."""

    steps: jax.Array  # plies of finished games, and plies added to unfinished ones
    games: jax.Array
    checksum: jax.Array


_LANES = 64
_BYTE = 255


def count_set(array: jax.Array) -> jax.Array:
    """uint32: number of entries that are not zero; XLA must compute all of them.

    Long arrays are folded in bytes first: XLA on CPU adds slices many entries at once, but sums a
    mask entry by entry. The folds are at most 255 at a time, so that programs for large batches
    stay small.
    """
    flat = (array if array.dtype == bool else array != 0).reshape(-1)
    total = jnp.uint32(0)
    while flat.shape[0] > _LANES:
        lanes = max(_LANES, flat.shape[0] // _BYTE)
        folds = min(flat.shape[0] // lanes, _BYTE)
        parts = [flat[lanes * fold : lanes * (fold + 1)].astype(jnp.uint8) for fold in range(folds)]
        total += sum(parts[1:], parts[0]).sum(dtype=jnp.uint32)
        flat = flat[lanes * folds :]
    return total + flat.sum(dtype=jnp.uint32)


def make_bench(game: Game, boards: int, devices: Devices) -> Bench:
    """Compile random play of that number of boards, shared by the devices. Its run raises a
    RuntimeError where the game itself counts another number of plies."""
    own_boards = boards // devices.count

    def begin(key: jax.Array) -> tuple[Any, Any]:
        fresh = game.first(key)
        return fresh, jax.tree.map(lambda x: _repeated(x, boards), fresh)

    everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
    fresh, states = jax.jit(begin, out_shardings=(everywhere, by_board))(jax.random.key(9))
    program = devices.per_device(
        _make_program(game, own_boards),
        (EVERYWHERE, BY_BOARD, EVERYWHERE, EVERYWHERE),
        (BY_BOARD, EVERYWHERE),
    )
    key = jax.device_put(jax.random.key(0), everywhere)
    compiled = compile_program(program, (fresh, states, key, np.int32(1)), donate=(1,))
    held = [states]
    calls = 0

    def run(length: int) -> dict[str, float]:
        nonlocal calls
        calls += 1
        call_key = jax.device_put(jax.random.key(calls), everywhere)
        held[0], tally = compiled.call(fresh, held[0], call_key, np.int32(length))
        tally = fetch(tally)
        claimed, counted = boards * length, int(tally.steps)
        if claimed % 2**32 != counted:
            raise RuntimeError(f"{game.name}: {counted} plies were played, not {claimed}")
        return {
            "plies": claimed,
            "games": int(tally.games),
            CHECKSUM: int(tally.checksum),
        }

    return Bench(game.name, boards, run, compiled.stats)


def _make_program(game: Game, boards: int) -> Callable[..., tuple[Any, Tally]]:
    """(first state, states [B], key, plies) -> states [B] and the tally of all devices."""

    def program(fresh: Any, states: Any, key: jax.Array, length: jax.Array):
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))

        def ply(index: jax.Array, carry: tuple[Any, Tally]) -> tuple[Any, Tally]:
            states, tally = carry
            bits = jax.random.bits(jax.random.fold_in(key, index), (boards,), jnp.uint32)
            action = jax.vmap(game.act)(states, bits)
            after = jax.vmap(game.step)(states, action)
            over, steps = jax.vmap(game.is_over)(after), jax.vmap(game.steps)(after)
            values = jax.vmap(game.read)(states, action, after)
            tally = Tally(
                tally.steps + jnp.where(over, steps, 0).sum(dtype=jnp.uint32),
                tally.games + over.sum(dtype=jnp.uint32),
                tally.checksum + values.sum(dtype=jnp.uint32),
            )
            restarted = jax.vmap(lambda o, x: jax.tree.map(lambda a, b: jnp.where(o, a, b), *x))(
                over, (jax.tree.map(lambda x: _repeated(x, boards), fresh), after)
            )
            return restarted, tally

        before = _running(game, states)
        zeros = Tally(*(jnp.uint32(0) for _ in Tally._fields))
        states, tally = jax.lax.fori_loop(0, length, ply, (states, zeros))
        tally = tally._replace(steps=tally.steps + _running(game, states) - before)
        return states, jax.lax.psum(tally, AXIS)

    return program


def _running(game: Game, states: Any) -> jax.Array:
    return jax.vmap(game.steps)(states).sum(dtype=jnp.uint32)


def _repeated(array: jax.Array, boards: int) -> jax.Array:
    return jnp.broadcast_to(array, (boards, *jnp.shape(array)))
