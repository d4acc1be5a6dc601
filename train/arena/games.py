"""The games of a match on one device: who moves where, what is written down, which game is next.

The device plays Q openings, each once in every seating. Its boards are parted into lanes, each with
a queue of its own; a board whose game is over takes the next one of its lane. At two seats a lane
is a seating, so that either player is to move on about half of the boards. At more seats there is
one lane, whose queue mixes the seatings.

N boards, K boards of a lane or of an entrant, Q openings, S seatings, R seatings of a lane,
G = Q S games, L plies at most, O plies of an opening, P seats. Game g is in lane g // (Q R); there
it is game n = g % (Q R), which begins with opening n // R and has seating n % R of the lane.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.openings import Openings, with_drawn_plies
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import Position, State


class ActiveGames(NamedTuple):
    """The games on the boards."""

    position: Position  # [N]
    game: jax.Array  # int32[N], from 0 to G - 1, or G for a board without a game
    since: jax.Array  # int32[N], tick of the board's last ply
    next_place: jax.Array  # int32[lanes], place in the queue of each lane's next game
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


def set_up(openings: Openings, seatings: Seatings, *, boards: int, plies: int) -> MatchState:
    """Put the first games of each lane on the N = `boards` boards; `plies` is L."""
    count, opening_plies = openings.actions.shape
    lanes, games = seatings.lanes, count * len(seatings.entrants)

    def of_each_game(tree: Any) -> Any:
        def spread(x: jax.Array) -> jax.Array:
            return jnp.concatenate([jnp.repeat(x, seatings.of_lane, axis=0)] * lanes)

        return jax.tree.map(spread, tree)

    played = jnp.full((games, plies), NO_ACTION, jnp.int32)
    log = GameLog(
        position=of_each_game(openings.position),
        rewards=of_each_game(openings.rewards),
        actions=played.at[:, :opening_plies].set(of_each_game(openings.actions)[:, :plies]),
    )
    share = boards // lanes
    lane, place = jnp.repeat(jnp.arange(lanes), share), jnp.tile(jnp.arange(share), lanes)
    game, opening, _ = _game_at(openings, seatings, lane, place)
    active = ActiveGames(
        position=jax.tree.map(lambda x: x[opening], openings.position),
        game=game,
        since=jnp.zeros(boards, jnp.int32),
        next_place=jnp.full(lanes, share, jnp.int32),
        tick=jnp.zeros(1, jnp.int32),
    )
    return MatchState(active, log)


def boards_to_move(
    match: MatchState, seatings: Seatings, *, entrant: int, boards: int
) -> tuple[jax.Array, jax.Array]:
    """Choose K boards for an entrant, those where it has waited longest first.

    Args:
      match: the games.
      seatings: who sits where.
      entrant: whose turn it must be.
      boards: K.

    Returns:
      int32[K] boards, and bool[K], whether the entrant is to move there: where it is to move on
      fewer than K boards, the rest are others.
    """
    active, no_game = match.active, match.log.rewards.shape[0]
    in_lane = no_game // seatings.lanes
    number = active.game // in_lane * seatings.of_lane + active.game % in_lane % seatings.of_lane
    seated = jnp.asarray(seatings.entrants)[jnp.minimum(number, len(seatings.entrants) - 1)]
    mover = active.position.player.astype(jnp.int32)[:, None]
    is_to_move = jnp.take_along_axis(seated, mover, axis=1)[:, 0] == entrant
    is_to_move &= active.game < no_game
    waiting = jnp.where(is_to_move, active.since, jnp.iinfo(jnp.int32).max)
    chosen = jnp.argsort(waiting, stable=True)[:boards]
    return chosen, is_to_move[chosen]


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
    active, log = match
    game, no_game = active.game[boards], log.rewards.shape[0]
    opening = game % (no_game // seatings.lanes) // seatings.of_lane
    slots = with_drawn_plies(openings, opening, states, slots)
    public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
    after, rewards = jax.vmap(referee.play)(states, slots)
    over = is_valid & after.position.terminated
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
    return MatchState(_go_on(active, openings, seatings, after.position, boards, is_valid), log)


def _go_on(
    active: ActiveGames,
    openings: Openings,
    seatings: Seatings,
    after: Position,
    boards: jax.Array,
    is_valid: jax.Array,
) -> ActiveGames:
    """The games on the boards once positions [K] stand on some of them, finished games replaced."""
    lanes = seatings.lanes
    over = is_valid & after.terminated
    lane = boards // (active.game.shape[0] // lanes)
    # Boards of a lane whose games end in one tick take places of its queue one after the other.
    ends = over[:, None] & (lane[:, None] == jnp.arange(lanes)[None])  # [K, lanes]
    order = jnp.cumsum(ends, axis=0, dtype=jnp.int32) - 1
    place = active.next_place[lane] + jnp.take_along_axis(order, lane[:, None], axis=1)[:, 0]
    following, opening, is_there = _game_at(openings, seatings, lane, place)
    has_next = over & is_there

    def stand(new: jax.Array, begun: jax.Array, old: jax.Array) -> jax.Array:
        def spread(flags: jax.Array) -> jax.Array:
            return flags.reshape(-1, *[1] * (new.ndim - 1))

        current = jnp.where(spread(is_valid), new, old[boards])
        return old.at[boards].set(jnp.where(spread(has_next), begun[opening], current))

    since = jnp.where(is_valid, active.tick, active.since[boards])
    return active._replace(
        position=jax.tree.map(stand, after, openings.position, active.position),
        game=active.game.at[boards].set(jnp.where(over, following, active.game[boards])),
        since=active.since.at[boards].set(since),
        next_place=active.next_place + ends.sum(axis=0, dtype=jnp.int32),
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
