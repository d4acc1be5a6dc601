"""A ring buffer of plies: one row for each ply of all boards, in the order of play.

A ply is stored as a position and the best slots of its policy, never as planes. A game that is not
over when an iteration ends goes on in the next rows, so no ply is lost. A ply is sampled as soon as
its game is over, each as likely as any other. The games of a board follow one another, so its plies
that can be sampled are its oldest ones, and their number for each board is all the index there is.

Plies of a long game wait longer for its end. That is little against the time that a ply stays in a
replay of many games' length, so over a run plies of long games are drawn about as often.

R rows, B boards, T plies of an iteration, A slots, P players, N samples.
"""

import math
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.data.best_slots import BestSlots, keep_best
from train.data.outcomes import Outcome, backfill_outcomes
from train.game import Position, State, Variant, action_of_slot, in_own_grid
from train.runtime.host import fetch


class Trajectory(NamedTuple):
    """Plies as self-play makes them: leading axes [T, B]."""

    position: Position  # before the ply
    slot: jax.Array  # int16[...], the slot that was played
    policy: jax.Array  # float16[..., A], the search's improved policy
    policy_weight: jax.Array  # float32[...], weight of the policy in learning, 0 to leave it out
    root_value: jax.Array | None
    """float32[...], the value that the search found, for the player to move; NaN where it found
    none. None where values are learned from outcomes alone."""
    outcome: Outcome  # of the game where the ply ended it, else zeros
    terminated: jax.Array  # bool[...], whether the ply ended its game


class StoredPlies(NamedTuple):
    """Plies as the replay keeps them: leading axes [R, B], [T, B] before they are written. The
    fields are those of `Trajectory` but for these."""

    position: Position
    slot: jax.Array
    policy: BestSlots
    policy_weight: jax.Array
    root_value: jax.Array | None
    outcome: Outcome  # of the ply's game; junk where the game is not over
    terminated: jax.Array


class ReplayState(NamedTuple):
    """The newest R rows. The oldest row has age 0; it stands at row `written` modulo R. Before R
    rows are written, the oldest are empty."""

    plies: StoredPlies  # [R, B]
    written: jax.Array  # int32, rows ever written
    finished: jax.Array  # int32[B], plies of finished games: the oldest ones of each board


class NextPly(NamedTuple):
    """The ply after a sample's: leading axis [N]."""

    position: Position
    policy: BestSlots
    policy_weight: jax.Array  # float32[N]
    exists: jax.Array  # bool[N]; where False, the game was over and the other fields are junk


class Sample(NamedTuple):
    """A batch to learn from: leading axis [N]."""

    variant: Variant
    position: Position
    policy: BestSlots
    policy_weight: jax.Array  # float32[N]
    root_value: jax.Array | None
    """float32[N], as in `Trajectory`, for the player to move here, found so many plies later as
    `sample` is told; NaN where the game was over by then."""
    outcome: Outcome
    reply: NextPly | None  # None unless asked for


def stored(plies: Trajectory) -> StoredPlies:
    """Plies as the replay keeps them."""
    return StoredPlies(
        position=plies.position,
        slot=plies.slot,
        policy=keep_best(plies.policy),
        policy_weight=plies.policy_weight,
        root_value=plies.root_value,
        outcome=plies.outcome,
        terminated=plies.terminated,
    )


def init(rows: int, like: StoredPlies) -> ReplayState:
    """Make an empty replay of R rows for plies like the given ones, [T, B] arrays or shapes."""
    plies = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape[1:]), x.dtype), like)
    finished = jnp.zeros(like.terminated.shape[1], jnp.int32)
    return ReplayState(plies, jnp.zeros((), jnp.int32), finished)


def position_bytes(replay_state: ReplayState) -> int:
    """Bytes of one ply in the replay."""
    return sum(
        x.dtype.itemsize * math.prod(x.shape[2:]) for x in jax.tree.leaves(replay_state.plies)
    )


def add(replay_state: ReplayState, plies: StoredPlies) -> ReplayState:
    """Write T rows over the oldest ones, backfill the outcomes of all games that are over and
    count their plies anew.

    Args:
      replay_state: R rows, R a multiple of T.
      plies: [T, B], which go on where the newest rows stopped.
    """
    rows, boards = replay_state.plies.terminated.shape
    length = plies.terminated.shape[0]
    chex.assert_tree_shape_prefix(plies, (length, boards))
    chex.assert_trees_all_equal_dtypes(plies, replay_state.plies)
    chex.assert_is_divisible(rows, length)
    place = replay_state.written % rows
    rows_now = jax.tree.map(
        lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, axis=0),
        replay_state.plies,
        plies,
    )
    written = replay_state.written + length
    oldest = written % rows
    in_order = jax.tree.map(
        lambda x: jnp.roll(x, -oldest, axis=0), (rows_now.outcome, rows_now.terminated)
    )
    outcome, known = backfill_outcomes(*in_order)
    # Empty rows are older than all others, so they count where a board has a finished game.
    empty = rows - jnp.minimum(written, rows)
    outcome = jax.tree.map(lambda x: jnp.roll(x, oldest, axis=0), outcome)
    return ReplayState(
        plies=rows_now._replace(outcome=outcome),
        written=written,
        finished=jnp.maximum(known.sum(axis=0, dtype=jnp.int32) - empty, 0),
    )


def sample(
    replay_state: ReplayState,
    variant: Variant,
    key: jax.Array,
    *,
    size: int,
    has_reply: bool = False,
    td_steps: int = 0,
    newest: int | None = None,
) -> Sample:
    """Draw `size` plies with replacement, uniformly over those of finished games.

    Where no game is finished the sample is junk.

    Args:
      replay_state: R rows of B boards.
      variant: [B], what each board plays.
      key: consumed.
      size: N.
      has_reply: add the next ply of each.
      td_steps: plies after each at which its `root_value` is read, of two players.
      newest: draw from the games alone that ended in so many of the newest rows.
    """
    rows, boards = replay_state.plies.terminated.shape
    chex.assert_tree_shape_prefix(variant, (boards,))
    chex.assert_shape((replay_state.written, replay_state.finished), ((), (boards,)))
    drawn = replay_state.finished
    if newest is not None:
        drawn = newly_finished(replay_state, newest)
    ends = jnp.cumsum(drawn)
    place = jax.random.randint(key, (size,), 0, jnp.maximum(ends[-1], 1), jnp.int32)
    board = jnp.searchsorted(ends, place, side="right").astype(jnp.int32)
    empty = rows - jnp.minimum(replay_state.written, rows)
    # The newest plies of finished games come last among them.
    age = empty + place - (ends - replay_state.finished)[board]
    row = (replay_state.written + age) % rows
    ply = jax.tree.map(lambda x: x[row, board], replay_state.plies)
    return Sample(
        variant=jax.tree.map(lambda x: x[board], variant),
        position=ply.position,
        policy=ply.policy,
        policy_weight=ply.policy_weight,
        root_value=_root_value(replay_state.plies, row, board, td_steps),
        outcome=ply.outcome,
        reply=_reply(replay_state.plies, row, board) if has_reply else None,
    )


def newly_finished(replay_state: ReplayState, newest: int) -> jax.Array:
    """int32[B]: the plies of finished games whose games ended in so many of the newest rows."""
    rows = replay_state.plies.terminated.shape[0]
    in_order = jnp.roll(replay_state.plies.terminated, -(replay_state.written % rows), axis=0)
    age = jnp.arange(rows, dtype=jnp.int32)[:, None]
    older = jnp.where(in_order & (age < rows - newest), age + 1, 0).max(axis=0)
    empty = rows - jnp.minimum(replay_state.written, rows)
    return replay_state.finished - jnp.maximum(older - empty, 0)


def _root_value(
    plies: StoredPlies, row: jax.Array, board: jax.Array, steps: int
) -> jax.Array | None:
    """float32[N]: the search's value `steps` plies after those of the given rows and boards, for
    the player to move at these; NaN where the game ends in between."""
    if plies.root_value is None:
        return None
    rows, player = plies.terminated.shape[0], plies.position.player
    between = (row[:, None] + np.arange(steps)[None]) % rows
    later = (row + steps) % rows
    value = plies.root_value[later, board]
    value = jnp.where(player[later, board] == player[row, board], value, -value)
    return jnp.where(plies.terminated[between, board[:, None]].any(axis=1), jnp.nan, value)


def _reply(plies: StoredPlies, row: jax.Array, board: jax.Array) -> NextPly:
    """The plies after those of the given rows and boards."""
    # The newest row of a finished game ends it: before the end the next row goes on.
    after = (row + 1) % plies.terminated.shape[0]
    ply = jax.tree.map(lambda x: x[after, board], plies)
    return NextPly(
        position=ply.position,
        policy=ply.policy,
        policy_weight=ply.policy_weight,
        exists=~plies.terminated[row, board],
    )


class PlayedGame(NamedTuple):
    """A whole game of the replay."""

    board: int
    actions: list[int]  # public, of the board's own grid


def newest_games(replay_state: ReplayState, variant: Variant, count: int) -> list[PlayedGame]:
    """The games that ended last among those that the replay holds as a whole, the newest first;
    fewer where it does not hold as many. Reads the replay on the host."""
    games: list[PlayedGame] = []
    written, ended, ply = fetch(
        (replay_state.written, replay_state.plies.terminated, replay_state.plies.position.ply)
    )
    rows = ended.shape[0]
    ages = (int(written) + np.arange(rows)) % rows  # oldest first
    for age in range(rows - 1, max(rows - int(written), 0) - 1, -1):
        for board in np.flatnonzero(ended[ages[age]]):
            length = int(ply[ages[age], board]) + 1
            if length <= age + 1 - max(rows - int(written), 0):
                if len(games) == count:
                    return games
                places = ages[age - length + 1 : age + 1]
                played = _actions_of(replay_state, variant, places, int(board))
                games.append(PlayedGame(int(board), played))
    return games


def _actions_of(
    replay_state: ReplayState, variant: Variant, rows: np.ndarray, board: int
) -> list[int]:
    # By way of the host: the replay and the variant may lie on different devices. All rows of the
    # board, so that games of other lengths need no other program.
    held = jax.tree.map(
        lambda x: x[:, board], (replay_state.plies.position, replay_state.plies.slot)
    )
    (position, slot), rules = fetch((held, jax.tree.map(lambda x: x[board], variant)))
    public = fetch(_public_actions(rules, position, slot))[rows]
    grid, size = rules.grid.side, int(rules.size)
    return [in_own_grid(int(action), grid=grid, size=size) for action in public]


@jax.jit
def _public_actions(variant: Variant, position: Position, slot: jax.Array) -> jax.Array:
    """int32[R]: the public actions of slots [R] in positions [R]."""
    return jax.vmap(lambda p, s: action_of_slot(State(variant, p), s))(position, slot)
