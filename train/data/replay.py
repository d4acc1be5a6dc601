"""A ring of plies on the device: row by row of all boards, in the order they were played.

A sample is stored as a position and a policy over slots, never as planes. Games that run on when an
iteration ends simply go on in the next rows, so nothing is thrown away. A row is drawn from only
once every game that touches it has ended: each row is then one cross-section of all boards, and
long games are learned from as often as they are played.

R rows, B boards, T plies of an iteration, A slots, P players.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.data.outcomes import Outcome, backfill_outcomes
from train.runtime.host import fetch
from wallgo_jax.game import actions
from wallgo_jax.game.state import Position, State, Variant


class Trajectory(NamedTuple):
    """Rows as self-play makes them: leading axes [T, B] (or [R, B] in the ring)."""

    position: Position  # before the ply
    slot: jax.Array  # int16[...], what was played
    policy: jax.Array  # float16[..., A], what the search would have learned
    policy_weight: jax.Array  # float32[...], of the policy in learning, 0 for not at all
    step_outcome: Outcome  # what the ply's end of the game came to
    terminated: jax.Array  # bool[...], whether the ply ended its game


class ReplayState(NamedTuple):
    """The newest R rows."""

    plies: Trajectory  # [R, B]
    outcome: Outcome  # [R, B], what the ply's game came to
    written: jax.Array  # int32, rows ever written
    first: jax.Array  # int32, age order: first row to draw from
    ready: jax.Array  # int32, how many rows to draw from


class Reply(NamedTuple):
    """The ply after a sample's: leading axis [N]."""

    position: Position
    policy: jax.Array  # float16[N, A]
    policy_weight: jax.Array  # float32[N]
    exists: jax.Array  # bool[N], whether there is one: its other fields are junk if not


class Sample(NamedTuple):
    """A batch to learn from: leading axis [N]."""

    variant: Variant
    position: Position
    policy: jax.Array  # float16[N, A]
    policy_weight: jax.Array  # float32[N]
    outcome: Outcome
    reply: Reply | None  # only where asked for


def init_replay(rows: int, like: Trajectory) -> ReplayState:
    """An empty ring whose rows look like those of `like` ([T, B] arrays or their shapes)."""
    plies = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape[1:]), x.dtype), like)
    outcome = jax.tree.map(jnp.copy, plies.step_outcome)
    return ReplayState(plies, outcome, *(jnp.zeros((), jnp.int32) for _ in range(3)))


def position_bytes(replay_state: ReplayState) -> int:
    """Bytes that a position takes in the ring."""
    arrays = jax.tree.leaves((replay_state.plies, replay_state.outcome))
    return sum(x.dtype.itemsize * math.prod(x.shape[2:]) for x in arrays)


def append(replay_state: ReplayState, plies: Trajectory) -> ReplayState:
    """Write T rows over the oldest ones and look again which games have ended.

    R must be a multiple of T.
    """
    rows = replay_state.plies.terminated.shape[0]
    length = plies.terminated.shape[0]
    place = replay_state.written % rows
    stored = jax.tree.map(
        lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, axis=0),
        replay_state.plies,
        plies,
    )
    written = replay_state.written + length
    oldest = written % rows
    in_order = jax.tree.map(
        lambda x: jnp.roll(x, -oldest, axis=0), (stored.step_outcome, stored.terminated)
    )
    outcome, known = backfill_outcomes(*in_order)
    whole = known.all(axis=1)
    filled = jnp.minimum(written, rows)
    return ReplayState(
        plies=stored,
        outcome=jax.tree.map(lambda x: jnp.roll(x, oldest, axis=0), outcome),
        written=written,
        first=rows - filled,
        ready=jnp.maximum(whole.sum() - (rows - filled), 0).astype(jnp.int32),
    )


def draw(
    replay_state: ReplayState,
    variant: Variant,
    key: jax.Array,
    *,
    size: int,
    has_reply: bool = False,
) -> Sample:
    """`size` plies with replacement, uniform over the rows to draw from and the boards.

    Args:
      variant: [B], the rules that each board plays.
      has_reply: draw the next ply of each as well.
    """
    row_key, board_key = jax.random.split(key)
    rows, boards = replay_state.plies.terminated.shape
    age = replay_state.first + jax.random.randint(
        row_key, (size,), 0, jnp.maximum(replay_state.ready, 1)
    )
    row = (replay_state.written + age) % rows
    board = jax.random.randint(board_key, (size,), 0, boards)
    return Sample(
        variant=jax.tree.map(lambda x: x[board], variant),
        position=jax.tree.map(lambda x: x[row, board], replay_state.plies.position),
        policy=replay_state.plies.policy[row, board],
        policy_weight=replay_state.plies.policy_weight[row, board],
        outcome=jax.tree.map(lambda x: x[row, board], replay_state.outcome),
        reply=_reply(replay_state.plies, row, board) if has_reply else None,
    )


def _reply(plies: Trajectory, row: jax.Array, board: jax.Array) -> Reply:
    """The plies after those of the given rows and boards. A row that is drawn from and does not
    end a game is never the newest: the next row is the game's next ply."""
    after = (row + 1) % plies.terminated.shape[0]
    return Reply(
        position=jax.tree.map(lambda x: x[after, board], plies.position),
        policy=plies.policy[after, board],
        policy_weight=plies.policy_weight[after, board],
        exists=~plies.terminated[row, board],
    )


def newest_game(replay_state: ReplayState, variant: Variant) -> list[int]:
    """Public actions of a finished game whose last ply is the newest there is, read on the host;
    empty when the ring holds no whole game."""
    written, ended, ply = fetch(
        (replay_state.written, replay_state.plies.terminated, replay_state.plies.position.ply)
    )
    rows = ended.shape[0]
    ages = (int(written) + np.arange(rows)) % rows  # oldest first
    for age in range(rows - 1, max(rows - int(written), 0) - 1, -1):
        for board in np.flatnonzero(ended[ages[age]]):
            length = int(ply[ages[age], board]) + 1
            if length <= age + 1 - max(rows - int(written), 0):
                places = ages[age - length + 1 : age + 1]
                return _actions_of(replay_state, variant, places, int(board))
    return []


def _actions_of(
    replay_state: ReplayState, variant: Variant, rows: np.ndarray, board: int
) -> list[int]:
    # By way of the host: the ring and the variant may lie on different devices.
    chosen = jax.tree.map(
        lambda x: x[rows, board], (replay_state.plies.position, replay_state.plies.slot)
    )
    (position, slot), rules = fetch((chosen, jax.tree.map(lambda x: x[board], variant)))
    public = jax.vmap(lambda p, s: actions.action_of_slot(State(rules, p), s))(position, slot)
    return [int(action) for action in fetch(public)]
