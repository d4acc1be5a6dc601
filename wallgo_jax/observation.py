"""What a network sees of a state: feature planes, one table naming the channels.

Planes are absolute (Red first), as in WallZero (Chen, Arjonilla, Wu, Wu), "WallZero Feature
Designs": B board, T territory, R reachability, H four past positions. V, not WallZero's, names the
variant for a network that plays several: all ones or all zeros over the board.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells
from wallgo_jax.board.fusion import materialize
from wallgo_jax.board.geometry import HORIZONTAL, VERTICAL
from wallgo_jax.game import referee, symmetry, terrain
from wallgo_jax.game.state import (
    NO_LIMIT,
    TIE_MOVER_LOSES,
    TIE_REGION,
    TRAIL_LENGTH,
    Position,
    State,
)

PLANE_SETS = ("B", "BT", "BTR", "BTRH", "BV", "BTV", "BTRV", "BTRHV")
WALLS_LEFT_STEPS = (0, 2, 5, 10)
"""Planes of V that tell walls left: one for "more than this many", for each player."""
DEFAULT_PLANES = "BTRH"


class Channel(NamedTuple):
    """One plane: what it shows, of which player, how many plies ago."""

    kind: str
    player: int | None = None
    age: int = 0

    def __str__(self) -> str:
        owner = "" if self.player is None else f" {self.player}"
        return f"{self.kind}{owner}" + (f" -{self.age}" if self.age else "")


def channels(planes: str, players: int, *, has_playable: bool = False) -> tuple[Channel, ...]:
    """The channels of a plane set, in order.

    For two players: 8 (B), 11 (BT), 13 (BTR) or 49 (BTRH), 12 more with V, and one more where
    playable cells show.

    Raises:
      ValueError: for an unknown plane set.
    """
    check_planes(planes)
    who = range(players)
    table = _board_channels(players, 0)
    table += [Channel("turn", player) for player in who]
    if "T" in planes:
        table += _territory_channels(players, 0)
    if "R" in planes:
        table += [Channel("reach", player) for player in who]
    if "H" in planes:
        for age in range(1, TRAIL_LENGTH + 1):
            table += _board_channels(players, age) + _territory_channels(players, age)
    if "V" in planes:
        table += [Channel(kind) for kind in ("stay_needs_room", "limited_walls")]
        table += [
            Channel(f"walls_left_over_{step}", player)
            for step in WALLS_LEFT_STEPS
            for player in who
        ]
        table += [Channel(kind) for kind in ("tie_region", "tie_mover_loses")]
    if has_playable:
        table.append(Channel("playable"))
    return tuple(table)


def _board_channels(players: int, age: int) -> list[Channel]:
    kinds = ("stone", "horizontal", "vertical")
    return [Channel(kind, player, age) for kind in kinds for player in range(players)]


def _territory_channels(players: int, age: int) -> list[Channel]:
    owned = [Channel("territory", player, age) for player in range(players)]
    return [*owned, Channel("neutral", None, age)]


def check_planes(planes: str) -> None:
    """Refuse an unknown plane set with a ValueError."""
    if planes not in PLANE_SETS:
        raise ValueError(f"planes: {planes!r} is not one of {', '.join(PLANE_SETS)}")


def observe(
    state: State, *, grid: int, planes: str, has_playable: bool = False, is_first: bool = False
) -> jax.Array:
    """bool[grid, grid, C]: the channels of `channels(planes, P, has_playable=...)`.

    With `is_first` the state must be a game's first: the board has no walls, so it is one region,
    and no past, and neither floods nor earlier positions are worked out.

    Cells outside a small board are 0 in every plane. Past positions before the start are zeros.
    """
    variant, position = state
    players = position.stones.shape[0]
    everywhere, nowhere = bitboard.unpack(variant.playable), bitboard.empty(grid)
    ground = terrain.survey(variant, position, grid=grid)
    sets = _board_sets(position, ground.stones)
    sets += [bitboard.where(position.player == p, everywhere, nowhere) for p in range(players)]
    if "T" in planes:
        sets += _territory_sets(state, grid=grid, is_first=is_first)
    if "R" in planes:
        sets += [terrain.movement(own, variant, ground, grid=grid) for own in ground.stones]
    if "H" in planes:
        blank = [nowhere] * TRAIL_LENGTH * (4 * players + 1)
        sets += blank if is_first else _history_sets(state, grid=grid)
    if "V" in planes:
        sets += [bitboard.where(holds, everywhere, nowhere) for holds in _variant_facts(state)]
    if has_playable:
        sets.append(everywhere)
    words = jnp.stack([bitboard.pack(cells) for cells in sets])  # [C, W]
    words = materialize(words, never=position.ply < 0)
    return bitboard.to_mask(words, grid).T.reshape(grid, grid, len(sets))


def _board_sets(position: Position, stones: tuple[Cells, ...]) -> list[Cells]:
    sets = list(stones)
    for orientation in (HORIZONTAL, VERTICAL):
        sets += [bitboard.unpack(walls[orientation]) for walls in position.walls]
    return sets


def _territory_sets(state: State, *, grid: int, is_first: bool = False) -> list[Cells]:
    ground = terrain.survey(*state, grid=grid)
    playable, nowhere = bitboard.unpack(state.variant.playable), bitboard.empty(grid)
    if is_first:
        reached = tuple(
            bitboard.where(bitboard.any_cell(own), playable, nowhere) for own in ground.stones
        )
    else:
        reached = terrain.regions(ground, grid=grid)
    sets = list(terrain.owned(reached))
    return [*sets, bitboard.difference(playable, bitboard.union(*sets))]


def _history_sets(state: State, *, grid: int) -> list[Cells]:
    sets: list[Cells] = []
    variant, position = state
    for _ in range(TRAIL_LENGTH):
        existed, position = referee.take_back(position, grid=grid)
        past = State(variant, position)
        stones = terrain.survey(variant, position, grid=grid).stones
        shown = _board_sets(position, stones) + _territory_sets(past, grid=grid)
        sets += [bitboard.where(existed, cells, bitboard.empty(grid)) for cells in shown]
    return sets


def _variant_facts(state: State) -> list[jax.Array]:
    """The bools that the planes of V show, in their order."""
    variant, position = state
    left = position.walls_left
    facts = [variant.stay_needs_room, variant.walls != NO_LIMIT]
    facts += [left[p] > step for step in WALLS_LEFT_STEPS for p in range(left.shape[0])]
    return facts + [(variant.tie == code).any() for code in (TIE_REGION, TIE_MOVER_LOSES)]


def turn_planes(
    planes: jax.Array, table: tuple[Channel, ...], turn: jax.Array, size: jax.Array
) -> jax.Array:
    """[grid, grid, C] planes of the turned state; walls change orientation."""
    grid = planes.shape[0]
    flat = planes.reshape(grid * grid, len(table)).T  # [C, N]
    moved = list(symmetry.turn_masks(flat, turn, size, grid=grid))
    for index, channel in enumerate(table):
        if channel.kind == "horizontal":
            partner = table.index(channel._replace(kind="vertical"))
            moved[index], moved[partner] = symmetry.turn_walls(
                flat[index], flat[partner], turn, size, grid=grid
            )
    return jnp.stack(moved).T.reshape(planes.shape)
