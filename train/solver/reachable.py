"""Enumerates every reachable position of a tiny board, each as a full state.

Positions that differ only in the colours of walls, the order of a player's stones or history count
as one; its state is that of a random game that leads to it.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.host import fetch
from train.solver.tablebase import (
    SIZE,
    STONE_SETS,
    children,
    place_of,
    placements,
    stone_pairs,
)
from wallgo_jax.game import actions, referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state

_ILLEGAL = -1
_BOARDS_AT_ONCE = 1 << 13


def reachable_levels(rules: Rules, *, seed: int = 0) -> Iterator[State]:
    """The positions [N] before the end of the game, after 0, 1, 2, ... plies, on the host.

    Args:
      rules: see `train.solver.tablebase.check_tables`.
      seed: chooses the game that leads to each position.
    """
    rng = np.random.default_rng(seed)
    level = fetch(jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(rules)))
    while len(level.position.ply):
        yield level
        level = _next_level(level, rng)


def batches(boards: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Split arrays [N, ...] into batches of one size, each with the number of its own entries.

    Copies of its first entry fill the last batch.
    """
    total = len(jax.tree.leaves(boards)[0])
    for first in range(0, total, size):
        own = min(size, total - first)
        place = np.r_[first : first + own, np.full(size - own, first)]
        yield jax.tree.map(lambda x, place=place: x[place], boards), own


def _next_level(level: State, rng: np.random.Generator) -> State:
    order = rng.permutation(len(level.position.ply))
    level = jax.tree.map(lambda x: x[order], level)
    board, slot = _ways(level)
    parts = []
    for (states, slots), own in batches(
        (jax.tree.map(lambda x: x[board], level), slot), _size(len(board))
    ):
        played = fetch(_play(states, slots))
        parts.append(jax.tree.map(lambda x, own=own: x[:own], played))
    after, keys = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    _, first = np.unique(keys, return_index=True)
    kept = first[~after.position.terminated[first]]
    return jax.tree.map(lambda x: x[kept], after)


def _ways(level: State) -> tuple[np.ndarray, np.ndarray]:
    """int[M], int32[M]: board and slot of one way to each position one ply later.

    It is the first way in the order of the boards, which is random.
    """
    keys, boards, slots = (np.zeros(0, np.int32) for _ in range(3))
    done = 0
    for states, own in batches(level, _size(len(level.position.ply))):
        found = fetch(_keys_after(states))[:own]
        board, slot = np.nonzero(found != _ILLEGAL)
        keys, first = np.unique(np.concatenate([keys, found[board, slot]]), return_index=True)
        boards = np.concatenate([boards, board + done])[first]
        slots = np.concatenate([slots, slot])[first]
        done += own
    return boards, slots.astype(np.int32)


def _size(total: int) -> int:
    """Boards at once: one of two sizes, because each size compiles a program of its own."""
    return _BOARDS_AT_ONCE if total > _BOARDS_AT_ONCE // 16 else _BOARDS_AT_ONCE // 16


@jax.jit
def _keys_after(states: State) -> jax.Array:
    """int32[B, A]: the key of each board after each slot; _ILLEGAL at illegal slots."""

    def keys(state: State) -> jax.Array:
        legal = actions.legal_slots(state)
        setup = actions.in_setup(*state)
        placed, played = placements(state), children(state)
        first, second = (jnp.where(setup, placed[i], played[i]) for i in range(2))
        return jnp.where(legal, _key(state, first, second, setup), _ILLEGAL)

    return jax.vmap(keys)(states)


@jax.jit
def _play(states: State, slots: jax.Array) -> tuple[State, jax.Array]:
    """The states after the slots, and int32[B] keys, equal for the same position."""

    def play(state: State, slot: jax.Array) -> tuple[State, jax.Array]:
        after, _ = referee.play(state, slot)
        setup = actions.in_setup(*after)
        masks = [terrain_lib.stone_cells(own, grid=SIZE)[0] for own in after.position.stones]
        place = place_of(after)
        first, second = (jnp.where(setup, masks[i].astype(jnp.int32), place[i]) for i in range(2))
        return after, _key(after, first, second, setup)

    return jax.vmap(play)(states, slots)


def _key(state: State, first: jax.Array, second: jax.Array, setup: jax.Array) -> jax.Array:
    """A number for the player to move and a pair: both sets of stones in setup, walls and stones in
    play."""
    pairs = len(stone_pairs(state.position.stones.shape[1]))
    return (first * jnp.where(setup, STONE_SETS, pairs) + second) * 2 + state.position.player
