"""The games of a match of three or four players on one device: who moves where, which is next.

The device plays Q openings, each once in every seating. A board whose game is over takes the next
game, so that seatings stay mixed among the boards.

N boards, Q openings, S seatings, G = Q S games, L plies at most, P players. Game g begins with
opening g // S and has seating g % S.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.active_games import GameLog
from train.arena.openings import Openings, with_drawn_plies
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import Position, State


class SeatedGames(NamedTuple):
    """The games on the boards."""

    position: Position  # [N]
    game: jax.Array  # int32[N], from 0 to G - 1, or G for a board without a game
    since: jax.Array  # int32[N], tick of the board's last ply
    next_game: jax.Array  # int32[1], how many games have been begun
    tick: jax.Array  # int32[1], ticks done


class SeatedMatch(NamedTuple):
    """Everything that a tick changes."""

    active: SeatedGames
    log: GameLog


def set_up(openings: Openings, *, boards: int, seatings: int, plies: int) -> SeatedMatch:
    """Put the first N = `boards` games on the boards; `seatings` is S, `plies` is L."""
    count, opening_plies = openings.actions.shape

    def each_seating(tree: Any) -> Any:
        return jax.tree.map(lambda x: jnp.repeat(x, seatings, axis=0), tree)

    played = jnp.full((count * seatings, plies), NO_ACTION, jnp.int32)
    log = GameLog(
        position=each_seating(openings.position),
        rewards=each_seating(openings.rewards),
        actions=played.at[:, :opening_plies].set(each_seating(openings.actions)[:, :plies]),
    )
    game, opening = _game_of(openings, jnp.arange(boards), seatings)
    active = SeatedGames(
        position=jax.tree.map(lambda x: x[opening], openings.position),
        game=game,
        since=jnp.zeros(boards, jnp.int32),
        next_game=jnp.full(1, boards, jnp.int32),
        tick=jnp.zeros(1, jnp.int32),
    )
    return SeatedMatch(active, log)


def boards_to_move(
    match: SeatedMatch, seated: np.ndarray, *, entrant: int, boards: int
) -> tuple[jax.Array, jax.Array]:
    """Choose K boards for an entrant, those where it has waited longest first.

    Args:
      match: the games.
      seated: int[S, P], the entrant at each seat of each seating.
      entrant: whose turn it must be.
      boards: K.

    Returns:
      int32[K] boards, and bool[K], whether the entrant is to move there.
    """
    active, no_game = match.active, match.log.rewards.shape[0]
    mover = active.position.player.astype(jnp.int32)
    at_turn = jnp.asarray(seated)[active.game % len(seated), mover]
    is_to_move = (at_turn == entrant) & (active.game < no_game)
    waiting = jnp.where(is_to_move, active.since, jnp.iinfo(jnp.int32).max)
    chosen = jnp.argsort(waiting, stable=True)[:boards]
    return chosen, is_to_move[chosen]


def play_slots(
    match: SeatedMatch,
    openings: Openings,
    states: State,
    boards: jax.Array,
    slots: jax.Array,
    is_valid: jax.Array,
) -> SeatedMatch:
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
    seatings = log.rewards.shape[0] // openings.queue.shape[0]
    opening = jnp.minimum(active.game[boards] // seatings, openings.queue.shape[0] - 1)
    slots = with_drawn_plies(openings, opening, states, slots)
    public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
    after, rewards = jax.vmap(referee.play)(states, slots)
    over = is_valid & after.position.terminated
    game, no_game = active.game[boards], log.rewards.shape[0]
    # Games beyond the last are dropped by the writes below.
    written, ended = jnp.where(is_valid, game, no_game), jnp.where(over, game, no_game)
    ply = states.position.ply.astype(jnp.int32)
    log = GameLog(
        position=jax.tree.map(
            lambda old, new: old.at[ended].set(new, mode="drop"), log.position, after.position
        ),
        rewards=log.rewards.at[ended].set(rewards, mode="drop"),
        actions=log.actions.at[written, ply].set(public, mode="drop"),
    )
    return SeatedMatch(_go_on(active, openings, after.position, boards, is_valid, seatings), log)


def _go_on(
    active: SeatedGames,
    openings: Openings,
    after: Position,
    boards: jax.Array,
    is_valid: jax.Array,
    seatings: int,
) -> SeatedGames:
    """The games on the boards once positions [K] stand on some of them, finished games replaced."""
    over = is_valid & after.terminated
    # Games that end in one tick are followed by the next ones in the order of boards.
    number = active.next_game + jnp.cumsum(over, dtype=jnp.int32) - 1
    following, opening = _game_of(openings, number, seatings)
    has_next = over & (number < openings.live * seatings)

    def stand(new: jax.Array, begun: jax.Array, old: jax.Array) -> jax.Array:
        def spread(flags: jax.Array) -> jax.Array:
            return flags.reshape(-1, *[1] * (new.ndim - 1))

        kept = jnp.where(spread(is_valid), new, old[boards])
        return old.at[boards].set(jnp.where(spread(has_next), begun[opening], kept))

    since = jnp.where(is_valid, active.tick, active.since[boards])
    return active._replace(
        position=jax.tree.map(stand, after, openings.position, active.position),
        game=active.game.at[boards].set(jnp.where(over, following, active.game[boards])),
        since=active.since.at[boards].set(since),
        next_game=active.next_game + over.sum(dtype=jnp.int32),
    )


def _game_of(openings: Openings, number: jax.Array, seatings: int) -> tuple[jax.Array, jax.Array]:
    """int32[K] games in the order of play, G behind the last, and their openings."""
    count = openings.queue.shape[0]
    opening = openings.queue[jnp.minimum(number // seatings, count - 1)]
    game = opening * seatings + number % seatings
    is_there = number < openings.live * seatings
    return jnp.where(is_there, game, count * seatings).astype(jnp.int32), opening
