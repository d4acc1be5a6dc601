"""Positions of small boards as full states: all reachable ones, or a sample from random games.

Positions that differ only in the colours of walls, the order of a player's stones or history count
as one; its state is that of a random game that leads to it.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.errors import UsageError
from train.runtime.host import batches, fetch
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
from wallgo_jax.game.state import Position, State, initial_state

_ILLEGAL = -1
_BOARDS_AT_ONCE = 1 << 13
_GAMES = 1024  # played at once
_MAX_BARREN = 3
"""Batches of games in a row without a new position after which there are too few of them."""


def reachable_levels(rules: Rules, *, seed: int = 0) -> Iterator[State]:
    """The positions [N] before the end of the game, after 0, 1, 2, ... plies, on the host.

    Args:
      rules: of a board that has tables.
      seed: chooses the game that leads to each position.
    """
    rng = np.random.default_rng(seed)
    level = fetch(jax.tree.map(lambda x: jnp.asarray(x)[None], initial_state(rules)))
    while len(level.position.ply):
        yield level
        level = _next_level(level, rng)


def _next_level(level: State, rng: np.random.Generator) -> State:
    order = rng.permutation(len(level.position.ply))
    level = jax.tree.map(lambda x: x[order], level)
    board, slot = _ways(level)
    parts = []
    for (states, slots), count in batches(
        (jax.tree.map(lambda x: x[board], level), slot), _size(len(board))
    ):
        played = fetch(_play(states, slots))
        parts.append(jax.tree.map(lambda x, count=count: x[:count], played))
    after, keys = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    _, first = np.unique(keys, return_index=True)
    live = first[~after.position.terminated[first]]
    return jax.tree.map(lambda x: x[live], after)


def _ways(level: State) -> tuple[np.ndarray, np.ndarray]:
    """int[M], int32[M]: board and slot of one way to each position one ply later.

    It is the first way in the order of the boards, which is random.
    """
    keys, boards, slots = (np.zeros(0, np.int32) for _ in range(3))
    done = 0
    for states, count in batches(level, _size(len(level.position.ply))):
        after = fetch(_keys_after(states))[:count]
        board, slot = np.nonzero(after != _ILLEGAL)
        keys, first = np.unique(np.concatenate([keys, after[board, slot]]), return_index=True)
        boards = np.concatenate([boards, board + done])[first]
        slots = np.concatenate([slots, slot])[first]
        done += count
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
        stones = after.position.stones
        masks = [terrain_lib.stone_cells(of_player, grid=SIZE)[0] for of_player in stones]
        place = place_of(after)
        first, second = (jnp.where(setup, masks[i].astype(jnp.int32), place[i]) for i in range(2))
        return after, _key(after, first, second, setup)

    return jax.vmap(play)(states, slots)


def _key(state: State, first: jax.Array, second: jax.Array, setup: jax.Array) -> jax.Array:
    """A number for the player to move and a pair: both sets of stones in setup, walls and stones in
    play."""
    pairs = len(stone_pairs(state.position.stones.shape[1]))
    return (first * jnp.where(setup, STONE_SETS, pairs) + second) * 2 + state.position.player


def sample_positions(rules: Rules, count: int, *, min_walls: int = 0, seed: int = 0) -> State:
    """Distinct positions [N] after setup and before the end of a game, on the host.

    Every legal ply of these games is as likely as any other. A game gives one position at most,
    each of those that count as likely as any other.

    Args:
      rules: of two players with one stone each.
      count: N, the positions to sample.
      min_walls: fewest walls of a position.
      seed: of the games and of the choice among their positions.

    Raises:
      UsageError: random games hardly meet as many positions.
    """
    rng, parts, barren = np.random.default_rng(seed), [], 0
    known: set[bytes] = set()
    for games in _random_games(rules, seed):
        # A position before the end of each game that has one with so many walls.
        plies, first = (~games.position.terminated).sum(axis=0), len(rules.order) + min_walls
        game = np.flatnonzero(plies > first)
        ply = rng.integers(first, plies[game])
        met = jax.tree.map(lambda x, at=(ply, game): x[at], games)
        fresh = _add_keys(known, met.position, count)
        parts.append(jax.tree.map(lambda x, fresh=fresh: x[fresh], met))
        barren = 0 if fresh else barren + 1
        if len(known) == count:
            break
        if barren == _MAX_BARREN:
            raise UsageError(
                f"accuracy: random games meet only {len(known):,} positions with {min_walls} or "
                f"more walls, not {count:,}"
            )
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _random_games(rules: Rules, seed: int) -> Iterator[State]:
    """Batches of complete random games: the states [T, B] from the start to the end."""
    batch = 0
    start = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * _GAMES), initial_state(rules))
    while True:
        key = jax.random.fold_in(jax.random.key(seed), batch)
        state, states = start, [fetch(start)]
        while not states[-1].position.terminated.all():
            state = _play_randomly(state, jax.random.fold_in(key, len(states)))
            states.append(fetch(state))
        yield jax.tree.map(lambda *x: np.stack(x), *states)
        batch += 1


@jax.jit
def _play_randomly(states: State, key: jax.Array) -> State:
    """Play a legal ply of each board, all equally likely."""
    bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
    slots = jax.vmap(actions.draw_slot)(states, bits)
    return jax.vmap(referee.play)(states, slots)[0]


def _add_keys(known: set[bytes], positions: Position, most: int) -> list[int]:
    """Add the keys of positions, up to that many; returns the rows that were new."""
    walls, fresh = np.bitwise_or.reduce(positions.walls, axis=1), []
    for row in range(len(walls)):
        parts = walls[row], positions.stones[row], positions.player[row]
        key = b"".join(part.tobytes() for part in parts)
        if key not in known and len(known) < most:
            known.add(key)
            fresh.append(row)
    return fresh
