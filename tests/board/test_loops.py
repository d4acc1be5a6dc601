"""Loops of a fixed number of turns, as accelerators take them, do what those that look do."""

import itertools
import random

import jax
import numpy as np
import pytest

from tests.support.reference.referee import Cell
from wallgo_jax.board import bitboard, geometry, loops
from wallgo_jax.board.bitboard import Exits
from wallgo_jax.game import terrain
from wallgo_jax.game.state import Grid

BOARDS = 64


def snake(grid: int) -> list[Cell]:
    """Every cell in the order of one long corridor, row by row and back."""
    return [
        (row, column if row % 2 else grid - 1 - column)
        for row in range(grid)
        for column in range(grid)
    ]


def spiral(grid: int) -> list[Cell]:
    """Every cell in the order of a spiral, which turns against the sides of a spread."""
    left, (row, column), (down, right) = {*snake(grid)}, (grid - 1, grid - 1), (0, -1)
    found = []
    while left:
        found.append((row, column))
        left.remove((row, column))
        if (row + down, column + right) not in left:
            down, right = right, -down
        row, column = row + down, column + right
    return found


def exits_along(way: list[Cell], grid: int, *, rng: random.Random, walls: float) -> np.ndarray:
    """bool[4, grid, grid]: exits along a way, some of them walled off."""
    exits = np.zeros((4, grid, grid), bool)
    for here, there in itertools.pairwise(way):
        if rng.random() >= walls:
            for one, other in ((here, there), (there, here)):
                side = geometry.SIDE_OFFSETS.index((other[0] - one[0], other[1] - one[1]))
                exits[side, *one] = True
    return exits


def mazes(grid: int) -> tuple[np.ndarray, np.ndarray]:
    """Exits uint32[BOARDS, 4, W] and two seeds each uint32[BOARDS, 2, W]: whole corridors, each
    way round, then two corridors laid over each other, with ever more walls."""
    rng, exits = random.Random(grid), np.zeros((BOARDS, 4, grid, grid), bool)
    seeds = np.zeros((BOARDS, 2, grid, grid), bool)
    for number in range(BOARDS):
        ways = [snake(grid), spiral(grid)]
        walls = 0.0 if number < 8 else number / BOARDS
        kept = ways[number % 2 : number % 2 + 1] if number < 8 else ways
        turned = [[(c, r) for r, c in way] if number % 4 > 1 else way for way in kept]
        for way in turned:
            exits[number] |= exits_along(way, grid, rng=rng, walls=walls)
        ends = [turned[0][0], turned[0][-1]] if number < 8 else rng.sample(turned[0], 2)
        for seed, cell in enumerate(ends):
            seeds[number, seed, *cell] = True
    flat = (sets.reshape(BOARDS, -1, grid * grid) for sets in (exits, seeds))
    return tuple(map(np.asarray, map(bitboard.from_mask, flat)))


@pytest.fixture
def fixed(monkeypatch):
    """Takes the loops that accelerators take."""

    def switch() -> None:
        for module in (bitboard, terrain):
            monkeypatch.setattr(
                module,
                "loop_until_done",
                lambda is_unfinished, body, start, most: loops.repeat(body, start, most=most),
            )

    return switch


def test_floods_and_largest_regions_are_the_same(fixed):
    grid = 7
    exits, seeds = mazes(grid)
    everything = bitboard.constant(range(grid * grid), grid)

    def look(exits, seeds):
        sides = Exits(*(bitboard.unpack(exits[side]) for side in range(4)))
        reached = bitboard.flood(tuple(bitboard.unpack(seeds[p]) for p in range(2)), sides, grid)
        nothing = bitboard.empty(grid)
        board = terrain.Terrain(reached, nothing, sides, sides, Grid(grid))
        # Whole regions: all but the one of the first seed, and the same blanked.
        full = bitboard.unpack(everything)
        rest = bitboard.difference(full, reached[0])
        return bitboard.pack_sets(reached), terrain.largest_regions((full, rest, nothing), board)

    flooded, largest = jax.jit(jax.vmap(look))(exits, seeds)
    fixed()
    flooded_too, largest_too = jax.jit(jax.vmap(look))(exits, seeds)
    np.testing.assert_array_equal(flooded, flooded_too)
    np.testing.assert_array_equal(largest, largest_too)
    # A corridor through all cells is flooded from either end, in as many turns as there may be.
    assert (np.asarray(flooded_too[:8]) == everything).all()
    assert largest_too[0].tolist() == [grid * grid, 0, 0]
    assert len(set(map(tuple, np.asarray(largest_too).tolist()))) > 3


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_only_a_cpu_looks_whether_a_flood_has_ended(platform):
    """A loop that ends by data compares no counter in its condition."""

    def flood(seeds, exits):
        return bitboard.flood((seeds,), Exits(*(exits,) * 4), 7)

    words = (jax.ShapeDtypeStruct((4,), np.uint32),) * 2
    traced = jax.jit(jax.vmap(flood)).trace(words, words)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert text.count("stablehlo.while") == 1
    condition = text.split("cond {")[1].split("} do {")[0]
    assert ("stablehlo.compare" in condition) == (platform != "cpu")


def test_ways_turn_by_turn_are_the_same_without_a_loop(monkeypatch):
    grid, turns = 7, 5
    exits, seeds = mazes(grid)

    def look(exits, seeds):
        sides = Exits(*(bitboard.unpack(exits[side]) for side in range(4)))
        stones = tuple(bitboard.unpack(seeds[p]) for p in range(2))
        board = terrain.Terrain(stones, bitboard.empty(grid), sides, sides, Grid(grid))
        by_turn = terrain.reach_by_turn(board, sides, turns)
        return [bitboard.pack_sets(sets) for sets in by_turn]

    looped = jax.jit(jax.vmap(look)).trace(exits, seeds)
    assert "stablehlo.while" not in looped.lower(lowering_platforms=("cuda",)).as_text()
    found = looped.lower().compile()(exits, seeds)
    monkeypatch.setattr(
        terrain.jax.lax, "platform_dependent", lambda *values, cpu, default: default(*values)
    )
    expected = jax.jit(jax.vmap(lambda *maze: look(*maze)))(exits, seeds)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (found[-1] != found[0]).any()
