"""The games of a match on one device: who moves where, what is written down, which game is next.

The device plays Q pairs of games on N boards. Boards 0 to K - 1, K = N / 2, are the first half:
there the first player is Red. On the others it is Blue. A board whose game is over takes the next
game of its half.

N boards, K boards of a half, Q pairs, G = 2 Q games, L plies at most, O plies of an opening, P = 2
players. Game g is played on half g // Q and belongs to pair g % Q.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.arena.openings import Openings, with_drawn_plies
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import Position, State


class ActiveGames(NamedTuple):
    """The games on the boards."""

    position: Position  # [N]
    game: jax.Array  # int32[N], from 0 to G - 1, or G for a board without a game
    since: jax.Array  # int32[N], tick of the board's last ply
    next_place: jax.Array  # int32[2], place in the queue of each half's next game
    tick: jax.Array  # int32[1], ticks done


class GameLog(NamedTuple):
    """All games of a device: their actions so far, and how the finished ones ended."""

    position: Position  # [G], the last one of a finished game, else the opening's
    rewards: jax.Array  # float32[G, P], of the last ply of a finished game, else the opening's
    actions: jax.Array  # int32[G, L] public ids, NO_ACTION after the newest


class MatchState(NamedTuple):
    """Everything that a tick changes."""

    active: ActiveGames
    log: GameLog


def set_up(openings: Openings, *, boards: int, plies: int) -> MatchState:
    """Put the first K = `boards` games of each half on the boards; `plies` is L."""
    pairs, opening_plies = openings.actions.shape

    def both(tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.concatenate([x, x]), tree)

    played = jnp.full((2 * pairs, plies), NO_ACTION, jnp.int32)
    log = GameLog(
        position=both(openings.position),
        rewards=both(openings.rewards),
        actions=played.at[:, :opening_plies].set(both(openings.actions)[:, :plies]),
    )
    half, place = jnp.repeat(jnp.arange(2), boards), jnp.tile(jnp.arange(boards), 2)
    pair = openings.queue[place]
    active = ActiveGames(
        position=jax.tree.map(lambda x: x[pair], openings.position),
        game=jnp.where(place < openings.live, half * pairs + pair, 2 * pairs).astype(jnp.int32),
        since=jnp.zeros(2 * boards, jnp.int32),
        next_place=jnp.full(2, boards, jnp.int32),
        tick=jnp.zeros(1, jnp.int32),
    )
    return MatchState(active, log)


def boards_to_move(match: MatchState, *, player: int) -> tuple[jax.Array, jax.Array]:
    """Choose K boards for a player, those where it has waited longest first.

    Args:
      match: the games.
      player: 0 for the match's first player, 1 for its second.

    Returns:
      int32[K] boards, and bool[K], whether the player is to move there: where it is to move on
      fewer than K boards, the rest are others.
    """
    active, no_game = match.active, match.log.rewards.shape[0]
    boards = active.game.shape[0]
    first_is_red = jnp.arange(boards) < boards // 2
    is_to_move = ((active.position.player == 0) == first_is_red) == (player == 0)
    is_to_move &= active.game < no_game
    waiting = jnp.where(is_to_move, active.since, jnp.iinfo(jnp.int32).max)
    chosen = jnp.argsort(waiting, stable=True)[: boards // 2]
    return chosen, is_to_move[chosen]


def play_slots(
    match: MatchState,
    openings: Openings,
    states: State,
    boards: jax.Array,
    slots: jax.Array,
    is_valid: jax.Array,
) -> MatchState:
    """Play a slot on each of some boards, write it down, and start new games where some ended.

    Args:
      match: the games.
      openings: where new games begin.
      states: [K], of the boards.
      boards: int32[K], each once.
      slots: int32[K].
      is_valid: bool[K]; where False nothing is played.
    """
    active, log = match
    slots = with_drawn_plies(openings, active.game[boards] % openings.queue.shape[0], states, slots)
    public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
    after, rewards = jax.vmap(referee.play)(states, slots)
    over = is_valid & after.position.terminated
    game = active.game[boards]
    # Games beyond the last are dropped by the writes below.
    no_game = log.rewards.shape[0]
    written, ended = jnp.where(is_valid, game, no_game), jnp.where(over, game, no_game)
    ply = states.position.ply.astype(jnp.int32)
    log = GameLog(
        position=jax.tree.map(
            lambda old, new: old.at[ended].set(new, mode="drop"), log.position, after.position
        ),
        rewards=log.rewards.at[ended].set(rewards, mode="drop"),
        actions=log.actions.at[written, ply].set(public, mode="drop"),
    )
    return MatchState(_go_on(active, openings, after.position, boards, is_valid), log)


def _go_on(
    active: ActiveGames,
    openings: Openings,
    after: Position,
    boards: jax.Array,
    is_valid: jax.Array,
) -> ActiveGames:
    """The games on the boards once positions [K] stand on some of them, finished games replaced."""
    half_pairs, half_boards = openings.queue.shape[0], active.game.shape[0] // 2
    no_game = 2 * half_pairs
    over = is_valid & after.terminated
    half = boards // half_boards
    # Boards of a half whose games end in one tick take places of the queue one after the other.
    ends = over[:, None] & (half[:, None] == jnp.arange(2)[None])  # [K, 2]
    order = jnp.cumsum(ends, axis=0, dtype=jnp.int32) - 1
    place = active.next_place[half] + jnp.take_along_axis(order, half[:, None], axis=1)[:, 0]
    has_next = over & (place < openings.live)
    pair = openings.queue[jnp.minimum(place, half_pairs - 1)]

    def stand(new: jax.Array, opening: jax.Array, old: jax.Array) -> jax.Array:
        def spread(flags: jax.Array) -> jax.Array:
            return flags.reshape(-1, *[1] * (new.ndim - 1))

        kept = jnp.where(spread(is_valid), new, old[boards])
        return old.at[boards].set(jnp.where(spread(has_next), opening[pair], kept))

    game = jnp.where(over, no_game, active.game[boards])
    game = jnp.where(has_next, half * half_pairs + pair, game)
    since = jnp.where(is_valid, active.tick, active.since[boards])
    return active._replace(
        position=jax.tree.map(stand, after, openings.position, active.position),
        game=active.game.at[boards].set(game.astype(jnp.int32)),
        since=active.since.at[boards].set(since),
        next_place=active.next_place + ends.sum(axis=0, dtype=jnp.int32),
    )
