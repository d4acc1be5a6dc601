"""Samples distinct positions of random games on boards too large to enumerate.

Positions that differ only in the colours of walls or in history count as one.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.game import actions, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, initial_state

_GAMES = 1024  # played at once
_MAX_BARREN = 3
"""Batches of games in a row without a new position after which there are too few of them."""


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
    rng, found, barren = np.random.default_rng(seed), [], 0
    known: set[bytes] = set()
    for games in _random_games(rules, seed):
        met = _one_of_each(games, len(rules.order) + min_walls, rng)
        fresh = _add_keys(known, met.position, count)
        found.append(jax.tree.map(lambda x, fresh=fresh: x[fresh], met))
        barren = 0 if fresh else barren + 1
        if len(known) == count:
            break
        if barren == _MAX_BARREN:
            raise UsageError(
                f"accuracy: random games meet only {len(known):,} positions with {min_walls} or "
                f"more walls, not {count:,}"
            )
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


def _random_games(rules: Rules, seed: int) -> Iterator[State]:
    """Batches of complete random games: the states [T, B] from the start to the end."""
    batch = 0
    start = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * _GAMES), initial_state(rules))
    while True:
        key = jax.random.fold_in(jax.random.key(seed), batch)
        state, states = start, [fetch(start)]
        while not states[-1].position.terminated.all():
            state = _play(state, jax.random.fold_in(key, len(states)))
            states.append(fetch(state))
        yield jax.tree.map(lambda *x: np.stack(x), *states)
        batch += 1


@jax.jit
def _play(states: State, key: jax.Array) -> State:
    """Play a legal ply of each board, all equally likely."""
    bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
    slots = jax.vmap(actions.draw_slot)(states, bits)
    return jax.vmap(referee.play)(states, slots)[0]


def _one_of_each(games: State, first: int, rng: np.random.Generator) -> State:
    """A position [M] from ply `first` on, before the end, of each game that has one."""
    plies = (~games.position.terminated).sum(axis=0)
    game = np.flatnonzero(plies > first)
    ply = rng.integers(first, plies[game])
    return jax.tree.map(lambda x: x[ply, game], games)


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
