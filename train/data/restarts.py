"""Search control: games that restart from plies of earlier games of their board.

After Tsai et al., "Regret-Guided Search Control for Efficient Learning in AlphaZero" (2026), without
its network of regret: the replay tells how far a search's value was from the outcome.

R rows, B boards, W rows that are drawn from, M starts of a board, P players.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from train.data.exploration import Opening
from train.data.replay import ReplayState
from train.game import Position

COUNT = 4
"""M."""
NEWEST = 4
"""Iterations that are drawn from: the values of older ones are those of other weights."""
_SALT = 2**20 + 2
"""Folded into a ply's key, as those of `train.data.exploration`."""


class Starts(NamedTuple):
    """Positions that games can restart from."""

    position: Position  # [B, M]; junk where there is none
    exists: jax.Array  # bool[B, M]


def no_starts(position: Position) -> Starts:
    """No starts, with room for M on each of boards [B]; they share no buffer."""
    several = jax.tree.map(lambda x: jnp.repeat(x[:, None], COUNT, axis=1), position)
    return Starts(several, jnp.zeros((position.ply.shape[0], COUNT), bool))


def draw_starts(
    replay_state: ReplayState, key: jax.Array, *, newest: int, temperature: jax.Array | float
) -> Starts:
    """Draw M starts for each board from plies of its finished games, without replacement.

    The regret of a ply is the distance of the value that its search found from its game's outcome,
    both for the player to move: 0 to 2. First plies are not drawn.

    Args:
      replay_state: R rows of B boards, which keep the values of searches.
      key: consumed.
      newest: W.
      temperature: a ply is e times as likely as another whose regret is lower by this.
    """
    plies = replay_state.plies
    rows = plies.terminated.shape[0]
    newest = min(newest, rows)
    # The oldest first.
    age = rows - newest + jnp.arange(newest, dtype=jnp.int32)
    place = (replay_state.written + age) % rows
    empty = rows - jnp.minimum(replay_state.written, rows)
    is_finished = (age[:, None] >= empty) & (age[:, None] < empty + replay_state.finished[None])
    can_be_drawn = is_finished & (plies.position.ply[place] > 0)

    player = plies.position.player[place].astype(jnp.int32)
    rewards = plies.outcome.rewards[place]
    outcome = jnp.take_along_axis(rewards, player[..., None], axis=-1)[..., 0]
    regret = jnp.nan_to_num(jnp.abs(outcome - plies.root_value[place]))
    score = jax.random.gumbel(key, regret.shape) + regret / temperature
    best, row = jax.lax.top_k(jnp.where(can_be_drawn, score, -jnp.inf).T, COUNT)
    board = jnp.arange(row.shape[0])[:, None]
    position = jax.tree.map(lambda x: x[place[row], board], plies.position)
    return Starts(position, best > -jnp.inf)


def restart(
    starts: Starts,
    over: jax.Array,
    position: Position,
    opening: Opening,
    key: jax.Array,
    chance: jax.Array | float,
) -> tuple[Position, Opening]:
    """Restart some of the games [B] that have just begun from a start of their board.

    Args:
      starts: of the boards.
      over: bool[B], the boards whose game has just ended.
      position: [B], first ones where it has.
      opening: of the games; those that restart have none.
      key: of the ply, not consumed.
      chance: that a game restarts, if its board has a start.
    """
    coin_key, index_key = jax.random.split(jax.random.fold_in(key, _SALT))
    number = jax.random.uniform(index_key, starts.exists.shape)
    index = jnp.where(starts.exists, number, -1.0).argmax(axis=1)
    restarts = jax.random.bernoulli(coin_key, jnp.float32(chance), over.shape)
    restarts &= over & starts.exists.any(axis=1)
    board = jnp.arange(over.shape[0])

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(restarts.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    position = jax.tree.map(
        lambda new, old: choose(new[board, index], old), starts.position, position
    )
    return position, jax.tree.map(lambda old: choose(jnp.zeros_like(old), old), opening)
