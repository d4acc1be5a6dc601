"""The engine in batches: the boards' values before each ply, replayed in one jitted scan.

One program per grid, players and stones serves every rule set that fits, smaller boards and fewer
stones included: boards come in batches of BATCH, plies in chunks of CHUNK; incomplete ones are
padded, and the padding is cut off again. A program takes seconds to compile, so the tests share
those of SHAPES.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.support import compiling
from tests.support.reference.games import Record
from wallgo_jax.board import bitboard
from wallgo_jax.game import actions, referee
from wallgo_jax.game import state as state_lib
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

BATCH, CHUNK = 64, 32
SHAPES = ((5, 2, 2), (7, 2, 4), (7, 3, 2), (7, 4, 2), (9, 2, 4))
"""Grid, players and stones of the shared programs: cells in one, two and three words."""
AS_USERS = (7, 2, 4)
"""The shape whose program is compiled as users compile it, with XLA's optimizations."""
PASS = -1
"""An action that is never legal."""


class Shown(NamedTuple):
    """A board's values before a ply, and the rewards of the ply."""

    state: State
    player: Any  # int
    terminated: Any  # bool
    actions: Any  # bool[grid² * 53] legal public actions
    slot: Any  # int slot of the action to be played
    back: Any  # int public action of that slot
    territory: Any  # int[P]
    largest: Any  # int[P]
    reach: Any  # bool[P, N]
    rewards: Any  # float[P]


def new_games(rules: Sequence[Rules], grid: int) -> State:
    """New games [B] of several rule sets, with the room for stones of the grid's program."""
    players, most = rules[0].players, max(each.stones for each in rules)
    rooms = [stones for side, seats, stones in SHAPES if (side, seats) == (grid, players)]
    most = min((room for room in rooms if room >= most), default=most)
    variants = [state_lib.make_variant(each, grid=grid, stones=most) for each in rules]
    return stack([State(variant, _initial_position(variant)) for variant in variants])


_initial_position = jax.jit(state_lib.initial_position)


def stack(trees: Sequence[Any], axis: int = 0) -> Any:
    """Trees of one structure as one, along a new axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=axis), *trees)


@functools.cache
def shared_replay(grid: int) -> Callable[[State, Any], tuple[State, Shown]]:
    """`(states [B], actions [T, B]) -> (states [B], Shown [T, B])`, traced once for all tests."""

    def ply(state: State, action: jax.Array) -> tuple[State, Shown]:
        slot = actions.slot_of_action(state, action)
        after, rewards = referee.step(state, slot)
        terrain = terrain_lib.read_terrain(*state)
        reach = [terrain_lib.movement(own, state.variant, terrain) for own in terrain.stones]
        return after, Shown(
            state=state,
            player=state.position.player,
            terminated=state.position.terminated,
            actions=actions.legal_actions(state),
            slot=slot,
            back=actions.action_of_slot(state, slot),
            territory=referee.territory(state),
            largest=referee.largest_region(state),
            reach=bitboard.to_mask(jnp.stack([bitboard.pack(cells) for cells in reach]), grid),
            rewards=rewards,
        )

    return jax.jit(lambda states, played: jax.lax.scan(jax.vmap(ply), states, played))


def replay(rules: Sequence[Rules], played: Sequence[Sequence[int]], *, grid: int) -> Shown:
    """NumPy `Shown` [T, B] of games from their start, given by their actions (see `replay_on`)."""
    return replay_on(new_games(rules, grid), played)


def replay_records(records: Sequence[Record]) -> Shown:
    """The same of games of the slow referee, all in one grid."""
    rules = rules_of([record._asdict() for record in records])
    return replay(rules, [record.actions for record in records], grid=records[0].grid)


def replay_on(states: State, played: Sequence[Sequence[int]]) -> Shown:
    """NumPy `Shown` [T, B] of plies played on boards [B].

    T is one more than the most plies, so that the last position shows as well. A board with fewer
    plies plays on with `PASS`, which changes nothing once a game is over, and ends it otherwise.
    """
    program = shared_replay(states.grid)
    length = max(map(len, played)) + 1
    boards = np.arange(-(-len(played) // BATCH) * BATCH) % len(played)
    table = np.full((-(-length // CHUNK) * CHUNK, len(played)), PASS, np.int32)
    for game, actions_of_game in enumerate(played):
        table[: len(actions_of_game), game] = actions_of_game
    shape = (states.grid, *states.position.stones.shape[1:])
    compiles = compiling.as_users if shape == AS_USERS else contextlib.nullcontext
    batches = []
    for batch in np.split(boards, len(boards) // BATCH):
        carried = jax.tree.map(lambda leaf, batch=batch: np.asarray(leaf)[batch], states)
        chunks = []
        for chunk in np.split(table[:, batch], len(table) // CHUNK):
            with compiles():
                carried, shown = program(carried, chunk)
            chunks.append(jax.device_get(shown))
        batches.append(_concatenate(chunks, axis=0))
    whole = _concatenate(batches, axis=1)
    return jax.tree.map(lambda leaf: leaf[:length, : len(played)], whole)


def _concatenate(trees: Sequence[Shown], axis: int) -> Shown:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=axis), *trees)


def rules_of(games: Sequence[Mapping[str, Any]]) -> list[Rules]:
    """The rule sets of records."""
    return [Rules.from_dict(game["rules"]) for game in games]
