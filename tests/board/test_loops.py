"""Loops of a fixed number of turns, as accelerators take them, do what those that look do."""

import itertools
import random

import jax
import numpy as np
import pytest

from wallgo_jax.board import bitboard, loops
from wallgo_jax.board.bitboard import Exits
from wallgo_jax.game import terrain
from wallgo_jax.game.state import Grid

BOARDS = 64


def snake(grid: int) -> list[tuple[int, int]]:
    """Every cell in the order of one long corridor, row by row and back."""
    return [
        (row, column if row % 2 else grid - 1 - column)
        for row in range(grid)
        for column in range(grid)
    ]


def spiral(grid: int) -> list[tuple[int, int]]:
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


def exits_along(way: list[tuple[int, int]], grid: int, *, rng: random.Random, walls: float):
    """Exits along a way, some of them walled off, as a set of whole numbers for each side."""
    sides = {(-1, 0): 0, (0, 1): 1, (1, 0): 2, (0, -1): 3}
    found = [0, 0, 0, 0]
    for here, there in itertools.pairwise(way):
        if rng.random() < walls:
            continue
        for (row, column), (other_row, other_column) in ((here, there), (there, here)):
            side = sides[other_row - row, other_column - column]
            found[side] |= 1 << (row * grid + column)
    return found


def mazes(grid: int) -> tuple[np.ndarray, np.ndarray]:
    """Exits uint32[BOARDS, 4, W] and two seeds each uint32[BOARDS, 2, W]: whole corridors, each
    way round, then two corridors laid over each other, with ever more walls."""
    rng, exits, seeds = random.Random(grid), [], []
    for number in range(BOARDS):
        ways = [snake(grid), spiral(grid)]
        walls = 0.0 if number < 8 else number / BOARDS
        kept = ways[number % 2 : number % 2 + 1] if number < 8 else ways
        turned = [[(c, r) for r, c in way] if number % 4 > 1 else way for way in kept]
        sides = [exits_along(way, grid, rng=rng, walls=walls) for way in turned]
        exits.append([a | b for a, b in zip(*sides, strict=True)] if len(sides) > 1 else sides[0])
        ends = [turned[0][0], turned[0][-1]] if number < 8 else rng.sample(turned[0], 2)
        seeds.append([1 << (row * grid + column) for row, column in ends])
    return _words(exits, grid), _words(seeds, grid)


def _words(numbers: list[list[int]], grid: int) -> np.ndarray:
    places = range(bitboard.num_words(grid))
    words = [[[x >> 32 * i & 0xFFFFFFFF for i in places] for x in row] for row in numbers]
    return np.array(words, np.uint32)


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

    def look(exits, seeds):
        sides = Exits(*(bitboard.unpack(exits[side]) for side in range(4)))
        reached = bitboard.flood(tuple(bitboard.unpack(seeds[p]) for p in range(2)), sides, grid)
        nothing = bitboard.empty(grid)
        board = terrain.Terrain(reached, nothing, sides, sides, Grid(grid))
        # Whole regions: all but the one of the first seed, and the same blanked.
        full = bitboard.unpack(jax.numpy.asarray(_words([[(1 << grid * grid) - 1]], grid)[0, 0]))
        rest = bitboard.difference(full, reached[0])
        return bitboard.pack_sets(reached), terrain.largest_regions((full, rest, nothing), board)

    flooded, largest = jax.jit(jax.vmap(look))(exits, seeds)
    fixed()
    flooded_too, largest_too = jax.jit(jax.vmap(look))(exits, seeds)
    np.testing.assert_array_equal(flooded, flooded_too)
    np.testing.assert_array_equal(largest, largest_too)
    # A corridor through all cells is flooded from either end, in as many turns as there may be.
    everything = _words([[(1 << grid * grid) - 1]], grid)[0, 0]
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
