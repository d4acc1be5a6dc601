"""The feature planes that a network sees of a state; `wallgo_jax.planes` names them.

Planes are absolute: Red's come first, whoever is to move.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells, Exits
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import HORIZONTAL, VERTICAL
from wallgo_jax.game import referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.state import (
    NO_LIMIT,
    TIE_MOVER_LOSES,
    TIE_REGION,
    Position,
    State,
    assert_board,
)
from wallgo_jax.game.terrain import BoardAnalysis, Terrain
from wallgo_jax.planes import (
    DISTANCE_TURNS,
    HISTORY_LENGTH,
    LONGER_TURNS,
    NEARER_TURNS,
    WALLS_LEFT_STEPS,
    Channel,
    channels,
)


class Precomputed(NamedTuple):
    """Parts of an observation that the caller has already."""

    before: jax.Array | None  # uint32[W, C]: the sets of the state one ply earlier, or all empty
    analysis: BoardAnalysis


def precompute_first(state: State, *, num_channels: int) -> Precomputed:
    """Work out the parts of a first state without a flood and without a past.

    A board without walls is one region.
    """
    grid = state.grid
    terrain = terrain_lib.read_terrain(*state)
    playable, nowhere = bitboard.unpack(state.variant.playable), bitboard.empty(grid)
    reached = tuple(
        bitboard.where(bitboard.any_cell(own), playable, nowhere) for own in terrain.stones
    )
    before = jnp.zeros((len(playable), num_channels), jnp.uint32)
    return Precomputed(before, BoardAnalysis(terrain, terrain_lib.owned(reached)))


def observe(
    state: State,
    *,
    planes: str,
    has_playable: bool = False,
    precomputed: Precomputed | None = None,
) -> jax.Array:
    """bool[grid, grid, C]: the channels of `channels(planes, P, has_playable=...)`.

    Cells outside a small board are 0 in every plane. Past positions before the start are zeros.
    """
    assert_board(state)
    grid = state.grid
    sets = observe_sets(state, planes=planes, has_playable=has_playable, precomputed=precomputed)
    return show(sets, grid=grid, token=state.position.ply < 0)


def show(sets: jax.Array, *, grid: int, token: jax.Array) -> jax.Array:
    """uint32[W, C] sets of cells -> bool[grid, grid, C] planes; `token` is for `fusion_barrier`."""
    rows = bitboard.to_rows(fusion_barrier(sets, token=token), grid)
    return bitboard.rows_to_planes(fusion_barrier(rows, token=token))


def observe_sets(
    state: State,
    *,
    planes: str,
    has_playable: bool = False,
    precomputed: Precomputed | None = None,
) -> jax.Array:
    """uint32[W, C]: the planes of `observe` as sets of cells."""
    assert_board(state)
    everywhere, token = state.variant.playable, state.position.ply < 0
    parts = [fusion_barrier(_present(state, planes, precomputed), token=token)]
    if "H" in planes:
        if precomputed is None or precomputed.before is None:
            parts.append(_history(state))
        else:
            players = state.position.stones.shape[0]
            parts.append(_next_history(precomputed.before, planes, players))
    if "V" in planes:
        parts.append(_filled(jnp.stack(_variant_facts(state)), everywhere))
    if has_playable:
        parts.append(everywhere[:, None])
    return jnp.concatenate(parts, axis=1)


def _present(state: State, planes: str, precomputed: Precomputed | None) -> jax.Array:
    """uint32[W, n]: the channels of B, T, R, D, L and W, which show the position itself."""
    variant, position = state
    players, token = position.stones.shape[0], position.ply < 0
    if precomputed is None:
        terrain, owned = terrain_lib.read_terrain(variant, position), None
    else:
        terrain, owned = precomputed.analysis
    if "T" not in planes:
        owned = None
    elif owned is None:
        owned = terrain_lib.owned(terrain_lib.regions(terrain))
    # XLA lays out the rows of many sets entry by entry and would work out a fused input at each.
    stones = fusion_barrier(terrain.stones, token=token)
    frame = _frame(state, stones, owned)
    turn = position.player == jnp.arange(players, dtype=position.player.dtype)
    # The turn stands between the board's channels and those of territory.
    first_turn = channels(planes, players).index(Channel("turn", 0))
    parts = [frame[:, :first_turn], _filled(turn, variant.playable), frame[:, first_turn:]]
    if "R" in planes:
        reach = [terrain_lib.movement(own, variant, terrain) for own in terrain.stones]
        parts.append(_rows(fusion_barrier(reach, token=token)))
    if "D" in planes:
        longer = LONGER_TURNS if "L" in planes else ()
        free = _distances(terrain, terrain.free_exits, longer=longer)
        parts.append(_rows(fusion_barrier(free, token=token)))
    if "W" in planes:
        parts.append(_rows(fusion_barrier(_distances(terrain, terrain.exits), token=token)))
    return jnp.concatenate(parts, axis=1)


def _distances(terrain: Terrain, exits: Exits, *, longer: tuple[int, ...] = ()) -> list[Cells]:
    """The sets of D and L, or of W, in order: cells within some turns, who is nearer, cells within
    longer turns."""
    by_turn = terrain_lib.reach_by_turn(terrain, exits, NEARER_TURNS)
    shown = [*(by_turn[turns] for turns in DISTANCE_TURNS), terrain_lib.nearer(by_turn)]
    shown += [by_turn[turns] for turns in longer]
    return [cells for sets in shown for cells in sets]


def _rows(sets: Sequence[Cells]) -> jax.Array:
    """Sets of cells -> uint32[W, len(sets)]."""
    return jnp.stack([jnp.stack(words) for words in zip(*sets, strict=True)])


def _filled(holds: jax.Array, playable: jax.Array) -> jax.Array:
    """uint32[W, n]: all cells of the board for each of bool[n] that holds, else none."""
    return jnp.where(holds[None], playable[:, None], jnp.uint32(0))


def _frame(state: State, stones: tuple[Cells, ...], owned: tuple[Cells, ...] | None) -> jax.Array:
    """uint32[W, 4 P + 1]: the board's planes, then territory's; without `owned` uint32[W, 3 P]."""
    variant, position = state
    sets = list(stones)
    for orientation in (HORIZONTAL, VERTICAL):
        sets += [bitboard.unpack(walls[orientation]) for walls in position.walls]
    if owned is not None:
        playable = bitboard.unpack(variant.playable)
        sets += [*owned, bitboard.difference(playable, bitboard.union(*owned))]
    return _rows(sets)


def _history(state: State) -> jax.Array:
    """uint32[W, HISTORY_LENGTH * (4 P + 1)]: the frames before this one, newest first."""
    variant, position = state

    def frame(position: Position) -> jax.Array:
        terrain, owned = terrain_lib.analyse_board(variant, position)
        return _frame(State(variant, position), terrain.stones, owned)

    taken = []
    before = position
    for _ in range(HISTORY_LENGTH):
        existed, before = referee.take_back(before, grid=state.grid)
        taken.append((existed, before))
    taken = jax.tree.map(lambda *leaves: jnp.stack(leaves), *taken)
    existed, past = fusion_barrier(taken, token=position.ply < 0)
    frames = jax.vmap(frame)(past)  # All past positions are flooded in one loop.
    frames = jnp.where(existed[:, None, None], frames, jnp.uint32(0))
    return jnp.concatenate(list(frames), axis=1)


def _next_history(before: jax.Array, planes: str, players: int) -> jax.Array:
    """The history one ply on: each of its channels is the one of a ply less in the sets before."""
    table = channels(planes, players)
    younger = [channel._replace(age=channel.age - 1) for channel in table if channel.age > 0]
    return _take_columns(before, [table.index(channel) for channel in younger])


def _take_columns(sets: jax.Array, columns: Sequence[int]) -> jax.Array:
    """uint32[W, len(columns)]: some columns of uint32[W, C]."""
    # Runs of neighbouring columns are slices, which XLA copies at once; a gather would go one by
    # one. Within a run, column less place is constant.
    runs = itertools.groupby(enumerate(columns), key=lambda placed: placed[1] - placed[0])
    parts = []
    for _, run in runs:
        (_, first), *rest = run
        parts.append(sets[:, first : first + 1 + len(rest)])
    return jnp.concatenate(parts, axis=1)


def _variant_facts(state: State) -> list[jax.Array]:
    """List the bools that the planes of V show, in their order."""
    variant, position = state
    left = position.walls_left
    facts = [variant.stay_needs_room, variant.walls != NO_LIMIT]
    facts += [left[p] > step for step in WALLS_LEFT_STEPS for p in range(left.shape[0])]
    return facts + [(variant.tie == code).any() for code in (TIE_REGION, TIE_MOVER_LOSES)]
