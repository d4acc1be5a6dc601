"""Sets of cells as words, against masks of NumPy and a plain flood."""

import functools
import random
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.forms import FORMS
from tests.support.game.comparison import cell_mask
from tests.support.reference.referee import DOWN, RIGHT, SIDES, Board, Cell, edge, neighbour
from wallgo_jax.board import bitboard

GRIDS = (5, 7, 8, 9)
"""One word, two with room, two without, three."""
NUM_SETS = 128


def to_words(sets: np.ndarray) -> bitboard.Cells:
    """bool[n, grid²] -> words, each uint32[n]."""
    whole = np.pad(sets, [(0, 0), (0, -sets.shape[1] % 32)])
    return tuple(np.packbits(whole, axis=1, bitorder="little").view("<u4").T)


def to_sets(words: bitboard.Cells, grid: int) -> np.ndarray:
    """Words, each uint32[n] -> bool[n, grid²]; no further bit is set."""
    data = np.ascontiguousarray(np.stack(words, axis=1)).view(np.uint8)
    bits = np.unpackbits(data, axis=1, bitorder="little").astype(bool)
    assert not bits[:, grid * grid :].any()
    return bits[:, : grid * grid]


def assert_sets(words: bitboard.Cells, expected: np.ndarray, grid: int) -> None:
    np.testing.assert_array_equal(to_sets(words, grid), expected)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("length", [1, 32, 33, 95, 96])
def test_bits_of_several_words(form, length):
    """One after another along the last axis, from words of either width."""
    words = np.random.default_rng(4).integers(0, 2**32, (2, 4, 3), dtype=np.uint32)
    bits = (words[..., None] >> np.arange(32, dtype=np.uint32) & 1).reshape(2, 4, 96) != 0

    def masks(words, ply):
        halves = jax.vmap(jax.vmap(bitboard.halves))(words)
        of_one = functools.partial(bitboard.bits_to_long_mask, length=length, token=ply < 0)
        return [
            bitboard.bits_to_mask(words, length),
            bitboard.bits_to_mask(halves, length),
            jax.vmap(jax.vmap(of_one))(words),
        ]

    with form():
        for mask in jax.jit(masks)(words, np.int32(0)):
            assert mask.dtype == jnp.bool_
            np.testing.assert_array_equal(mask, bits[..., :length])


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_only_a_tpu_makes_a_long_mask_without_halves(platform):
    def mask(words, ply):
        return jax.vmap(lambda x: bitboard.bits_to_long_mask(x, 90, ply < 0))(words)

    like = jax.ShapeDtypeStruct((4, 3), np.uint32), jax.ShapeDtypeStruct((), np.int32)
    text = jax.jit(mask).trace(*like).lower(lowering_platforms=(platform,)).as_text()
    assert ("ui16" in text) == (platform != "tpu")


@pytest.mark.parametrize("grid", GRIDS)
def test_masks_rows_planes_and_constants(grid):
    mask = np.random.default_rng(6).random((NUM_SETS, grid * grid)) < 0.25
    mask[0], mask[1] = False, True
    words = np.stack(to_words(mask), axis=-1)

    @jax.jit
    def there_and_back(words, mask):
        packed = bitboard.pack(bitboard.unpack(words[-1]))
        rows = bitboard.to_rows(words.T, grid)
        both = bitboard.to_mask(words, grid), bitboard.from_mask(mask)
        return *both, packed, rows, bitboard.rows_to_planes(rows)

    to_mask, from_mask, packed, rows, planes = there_and_back(words, mask)
    np.testing.assert_array_equal(to_mask, mask)
    np.testing.assert_array_equal(from_mask, words)
    np.testing.assert_array_equal(bitboard.constant(np.flatnonzero(mask[-1]), grid), words[-1])
    np.testing.assert_array_equal(packed, words[-1])
    assert rows.dtype == (jnp.uint8 if grid < 9 else jnp.uint16)
    squares = mask.reshape(-1, grid, grid)
    np.testing.assert_array_equal(rows, (squares << np.arange(grid)).sum(axis=-1).T)
    np.testing.assert_array_equal(planes, np.moveaxis(squares, 0, -1))
    assert [int(word) for word in bitboard.empty(grid)] == [0] * bitboard.num_words(grid)
    last = bitboard.make_last_column(grid)
    assert_sets(last[:, None], np.arange(grid**2)[None] % grid == grid - 1, grid)


def random_boards(seed: int, grid: int) -> list[Board]:
    """Boards of all sizes up to the grid, one stone of each of two players, random walls."""
    rng = random.Random(seed)
    boards = []
    for _ in range(NUM_SETS):
        board = Board(rng.randint(2, grid), [], {})
        stones = rng.sample(board.cells(), 2)
        board.stones = [stones[:1], stones[1:]]
        density = rng.random()
        for cell in board.cells():
            for side in (RIGHT, DOWN):
                if board.has(neighbour(cell, side)) and rng.random() < density:
                    board.walls[edge(cell, side)] = 0
        boards.append(board)
    return boards


def sets_of(boards: Iterable[Iterable[Cell]], grid: int) -> np.ndarray:
    """bool[n, grid²]: sets of (row, column) cells, one a board."""
    numbers = [[row * grid + column for row, column in cells] for cells in boards]
    return np.stack([cell_mask(each, grid) for each in numbers])


@pytest.mark.parametrize("grid", GRIDS)
def test_exits_steps_and_floods_follow_the_walls(grid):
    boards = random_boards(7, grid)

    def walled(side):
        return [[cell for cell in b.cells() if edge(cell, side) in b.walls] for b in boards]

    masks = [board.cells() for board in boards], walled(DOWN), walled(RIGHT)
    words = (to_words(sets_of(cells, grid)) for cells in masks)
    seeds = tuple(
        to_words(sets_of([board.stones[player] for board in boards], grid)) for player in range(2)
    )

    def look(playable, horizontal, vertical, seeds):
        exits = bitboard.open_exits(playable, horizontal, vertical, grid)
        free = bitboard.free_exits(exits, bitboard.union(*seeds), grid)
        return exits, free, bitboard.step(seeds[0], exits, grid), bitboard.flood(seeds, exits, grid)

    exits, free, stepped, flooded = jax.jit(jax.vmap(look))(*words, seeds)
    for index, side in enumerate(SIDES):
        leaving = [[cell for cell in b.cells() if b.is_open(cell, side)] for b in boards]
        assert_sets(exits[index], sets_of(leaving, grid), grid)
        into_empty = [
            [cell for cell in cells if neighbour(cell, side) not in b.occupied()]
            for cells, b in zip(leaving, boards, strict=True)
        ]
        assert_sets(free[index], sets_of(into_empty, grid), grid)
    assert_sets(stepped, sets_of([b.steps(b.stones[0][0], set()) for b in boards], grid), grid)
    for player in range(2):
        regions = [
            next(region for region in board.regions() if board.stones[player][0] in region)
            for board in boards
        ]
        assert_sets(flooded[player], sets_of(regions, grid), grid)


CELLS_PICTURE = """
    cell    48 .. 35 34 33 32 | 31 30 29 28 27 .. 7 6 5 4 3 2 1 0
    word           1          |                 0
    row      6 ..  5  4 4  4  |  4  4  4  4  3 .. 1 0 0 0 0 0 0 0
"""


def test_picture_of_cells_in_words_holds():
    cells, words, rows = (line.split("|") for line in CELLS_PICTURE.strip().splitlines())
    cells[0], words[0], rows[0] = (
        line.split(maxsplit=1)[1] for line in (cells[0], words[0], rows[0])
    )
    for half in range(2):
        for cell, row in zip(cells[half].split(), rows[half].split(), strict=True):
            if cell.isdigit():
                filled = np.flatnonzero(bitboard.constant([int(cell)], 7)).tolist()
                assert filled == [int(words[half])]
                assert int(row) == int(cell) // 7
    assert CELLS_PICTURE in bitboard.__doc__
