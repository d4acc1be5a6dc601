"""The board as sets of cells, as the rules read it: occupied cells, exits, regions, territory."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells, Exits
from wallgo_jax.board.loops import loop_until_done
from wallgo_jax.game.state import Grid, Position, Variant


class Terrain(NamedTuple):
    """A position as sets of cells."""

    stones: tuple[Cells, ...]  # by player
    occupied: Cells
    exits: Exits  # sides that are neither border nor wall
    free_exits: Exits  # exits into an empty cell
    grid: Grid


class BoardAnalysis(NamedTuple):
    """The analysis that a ply makes of the board that it leads to."""

    terrain: Terrain
    owned: tuple[Cells, ...]  # each player's territory


def read_terrain(variant: Variant, position: Position) -> Terrain:
    """Read the sets of cells off a position."""
    grid = variant.grid.side
    players, _ = position.stones.shape
    stones = tuple(stone_cells(position.stones[player], grid=grid) for player in range(players))
    occupied = bitboard.union(*stones)
    horizontal, vertical = (
        bitboard.union(*(bitboard.unpack(position.walls[p, o]) for p in range(players)))
        for o in range(2)
    )
    exits = bitboard.open_exits(bitboard.unpack(variant.playable), horizontal, vertical, grid)
    return Terrain(
        stones, occupied, exits, bitboard.free_exits(exits, occupied, grid), variant.grid
    )


def stone_cells(cells: jax.Array, *, grid: int) -> Cells:
    """int8[S] cells of stones -> the set of those on the board."""
    cells = cells.astype(jnp.int32)
    return bitboard.union(*(bitboard.one_hot(cells[s], grid) for s in range(cells.shape[0])))


def regions(terrain: Terrain) -> tuple[Cells, ...]:
    """Find for each player the cells connected to one of its stones."""
    return bitboard.flood(terrain.stones, terrain.exits, terrain.grid.side)


def is_separated(terrain: Terrain, reached: tuple[Cells, ...]) -> jax.Array:
    """bool: whether no connected region holds stones of two players."""
    # A stone of another player inside a flooded region is enough; the reverse pair says the same.
    contact = jnp.bool_(False)
    for player, cells in enumerate(reached):
        for other in range(player + 1, len(reached)):
            meeting = bitboard.intersection(cells, terrain.stones[other])
            contact = contact | bitboard.any_cell(meeting)
    return ~contact


def owned(reached: tuple[Cells, ...]) -> tuple[Cells, ...]:
    """Find for each player the cells of the regions whose stones are all its own."""
    result = []
    for player, cells in enumerate(reached):
        others = [reached[other] for other in range(len(reached)) if other != player]
        result.append(bitboard.difference(cells, bitboard.union(*others)))
    return tuple(result)


def areas(sets: tuple[Cells, ...]) -> jax.Array:
    """int32[P]: the number of cells of each set."""
    return jnp.stack([bitboard.count(cells) for cells in sets])


def largest_regions(sets: tuple[Cells, ...], terrain: Terrain) -> jax.Array:
    """int32[P]: cells of the largest connected part of each set of whole regions.

    One loop over the whole batch: it grows the part around the lowest cell left, then takes it
    away. Empty sets cost no turn, so a caller may blank the boards whose answer it does not need.
    """

    exits, grid = terrain.exits, terrain.grid.side

    def body(carry):
        left, part, best = carry
        grown = tuple(bitboard.union(cells, bitboard.step(cells, exits, grid)) for cells in part)
        left_after, part_after, best_after = [], [], []
        for rest, before, after, record in zip(left, part, grown, best, strict=True):
            # A part that has stopped growing is a whole region; the next begins at the lowest cell
            # left. An empty part stays empty, so that the loop ends when every set is used up.
            still = bitboard.any_cell(bitboard.difference(after, before))
            rest = bitboard.difference(rest, after)
            left_after.append(rest)
            part_after.append(bitboard.where(still, after, bitboard.lowest(rest)))
            best_after.append(jnp.maximum(record, bitboard.count(after)))
        return tuple(left_after), tuple(part_after), tuple(best_after)

    def unfinished(carry):
        _, part, _ = carry
        return jnp.stack([bitboard.any_cell(cells) for cells in part]).any()

    best = (jnp.int32(0),) * len(sets)
    start = tuple(bitboard.lowest(cells) for cells in sets)
    # A part of k cells takes k turns: k - 1 that grow it by a cell or more, and one that sees it
    # closed. No turn changes an empty part.
    start_of_all = (sets, start, best)
    _, _, best = loop_until_done(unfinished, body, start_of_all, most=grid * grid)
    return jnp.stack(best)


def analyse_board(variant: Variant, position: Position) -> BoardAnalysis:
    """Analyse a board from its position alone; a ply leaves the same analysis of the next board."""
    terrain = read_terrain(variant, position)
    return BoardAnalysis(terrain, owned(regions(terrain)))


def movement(own: Cells, variant: Variant, terrain: Terrain) -> Cells:
    """Find the cells where a move of a stone of `own` can end: 0 to 2 steps over free exits.

    Walls that the move could build do not count. Where staying needs room, a
    stone without a free neighbour does not reach its own cell.
    """
    grid = variant.grid.side
    roomy = bitboard.intersection(own, bitboard.union(*terrain.free_exits))
    staying = bitboard.where(variant.stay_needs_room, roomy, own)
    once = bitboard.step(own, terrain.free_exits, grid)
    return bitboard.union(staying, once, bitboard.step(once, terrain.free_exits, grid))


def reach_by_turn(terrain: Terrain, exits: Exits, turns: int) -> list[tuple[Cells, ...]]:
    """Find each player's cells within 0, 1, ... `turns` turns if nobody else moves.

    A turn is two steps over exits as they stand, whether or not a wall can be built; a player's own
    stones count as reached.

    Args:
      terrain: of the position.
      exits: those that steps take, of `terrain`: the free ones, or all for ways round walls alone.
      turns: the most.
    """
    grid = terrain.grid.side

    def step(cells: Cells) -> Cells:
        return bitboard.union(cells, bitboard.step(cells, exits, grid))

    def grow(sets: tuple[Cells, ...], _: None) -> tuple[tuple[Cells, ...], tuple[Cells, ...]]:
        grown = tuple(step(step(cells)) for cells in sets)
        return grown, grown

    def scan(stones: tuple[Cells, ...], *, unroll: int) -> tuple[Cells, ...]:
        return jax.lax.scan(grow, stones, None, length=turns, unroll=unroll)[1]

    # On a CPU a loop compiles in half the time of as many turns written out, and runs as fast.
    # Elsewhere each turn of a loop starts kernels of its own.
    grown = jax.lax.platform_dependent(
        terrain.stones,
        cpu=functools.partial(scan, unroll=1),
        default=functools.partial(scan, unroll=turns),
    )
    later = [jax.tree.map(lambda words, i=i: words[i], grown) for i in range(turns)]
    return [terrain.stones, *later]


def nearer(by_turn: list[tuple[Cells, ...]]) -> tuple[Cells, ...]:
    """Find for each player the cells that it reaches in fewer turns than every other player.

    Args:
      by_turn: see `reach_by_turn`; cells that nobody reaches within it are nobody's.
    """
    ahead = [owned(sets) for sets in by_turn]
    return tuple(bitboard.union(*cells) for cells in zip(*ahead, strict=True))
