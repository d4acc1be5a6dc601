"""Sets of cells as words, against whole numbers of Python and a plain flood."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.forms import FORMS
from tests.support.reference.referee import DOWN, RIGHT, SIDES, Board, edge, neighbour
from wallgo_jax.board import bitboard, geometry

GRIDS = (5, 7, 8, 9)
"""One word, two with room, two without, three."""
NUM_SETS = 128


def random_sets(seed: int, grid: int) -> list[int]:
    """Sets as whole numbers, bit `cell`: empty, full, every single cell, and random ones."""
    rng = random.Random(seed)
    cells = grid * grid
    singles = [1 << cell for cell in range(cells)]
    drawn = [rng.getrandbits(cells) & rng.getrandbits(cells) for _ in range(NUM_SETS)]
    return [0, (1 << cells) - 1, *singles, *drawn][:NUM_SETS]


def to_words(sets: list[int], grid: int) -> bitboard.Cells:
    """Whole numbers -> words, each uint32[len(sets)]."""
    words = -(-grid * grid // 32)
    return tuple(
        jnp.asarray(np.array([number >> (32 * i) & 0xFFFFFFFF for number in sets], np.uint32))
        for i in range(words)
    )


def to_numbers(cells: bitboard.Cells) -> list[int]:
    """Words, each uint32[n] -> whole numbers."""
    columns = [np.asarray(word).tolist() for word in cells]
    return [
        sum(word << (32 * i) for i, word in enumerate(row)) for row in zip(*columns, strict=True)
    ]


def cells_of(number: int) -> list[int]:
    """The bits of a whole number, ascending."""
    return [cell for cell in range(number.bit_length()) if number >> cell & 1]


@pytest.mark.parametrize("grid", GRIDS)
def test_neighbours_lie_over_the_side(grid):
    words, expected = [], []
    for row, column in geometry.SIDE_OFFSETS:
        inside = [
            (r, c)
            for r in range(grid)
            for c in range(grid)
            if 0 <= r + row < grid and 0 <= c + column < grid
        ]
        words.append(to_words([1 << (r * grid + c) for r, c in inside], grid))
        expected.append([1 << ((r + row) * grid + c + column) for r, c in inside])

    @jax.jit
    def over_each_side(words):
        return [bitboard.neighbours(cells, side, grid) for side, cells in enumerate(words)]

    assert [to_numbers(found) for found in over_each_side(words)] == expected


@pytest.mark.parametrize("grid", GRIDS)
def test_set_algebra(grid):
    a, b = random_sets(2, grid), random_sets(3, grid)
    x, y = to_words(a, grid), to_words(b, grid)
    pairs = list(zip(a, b, strict=True))
    flags = jnp.asarray(np.array([p % 3 == 0 for p in a]))

    @jax.jit
    def combined(x, y):
        both = bitboard.union(x, y), bitboard.union(x, y, x), bitboard.intersection(x, y)
        return *both, bitboard.difference(x, y), bitboard.where(flags, x, y), bitboard.any_cell(x)

    union, of_three, intersection, difference, chosen, any_cell = combined(x, y)
    assert to_numbers(union) == to_numbers(of_three) == [p | q for p, q in pairs]
    assert to_numbers(intersection) == [p & q for p, q in pairs]
    assert to_numbers(difference) == [p & ~q for p, q in pairs]
    assert to_numbers(chosen) == [p if p % 3 == 0 else q for p, q in pairs]
    assert np.asarray(any_cell).tolist() == [p != 0 for p in a]


@pytest.mark.parametrize("grid", GRIDS)
def test_count_and_lowest(grid):
    sets = random_sets(4, grid)
    words = to_words(sets, grid)
    counts, lowest = jax.jit(lambda x: (bitboard.count(x), bitboard.lowest(x)))(words)
    assert counts.dtype == jnp.int32
    assert counts.tolist() == [number.bit_count() for number in sets]
    assert to_numbers(lowest) == [number & -number for number in sets]


@pytest.mark.parametrize("grid", GRIDS)
def test_one_hot_and_contains(grid):
    cells = np.arange(grid * grid, dtype=np.int32)
    outside = np.array([-1, 32 * bitboard.num_words(grid)], np.int32)
    one_hot = jax.jit(bitboard.one_hot, static_argnums=1)(np.append(cells, outside), grid)
    assert to_numbers(one_hot) == [1 << cell for cell in range(grid * grid)] + [0, 0]
    drawn = random_sets(5, grid)[-1]
    held = jax.jit(bitboard.contains)(to_words([drawn] * len(cells), grid), cells)
    assert held.dtype == jnp.uint32
    assert np.flatnonzero(held).tolist() == cells_of(drawn)


@pytest.mark.parametrize("grid", GRIDS)
def test_rows_and_planes(grid):
    sets = random_sets(7, grid)
    words = np.stack(to_words(sets, grid))

    @jax.jit
    def shown(words):
        rows = bitboard.to_rows(words, grid)
        return rows, bitboard.rows_to_planes(rows)

    rows, planes = shown(words)
    assert rows.dtype == (jnp.uint8 if grid < 9 else jnp.uint16)
    expected = [[number >> (row * grid) & (2**grid - 1) for number in sets] for row in range(grid)]
    assert rows.tolist() == expected
    assert planes.dtype == jnp.bool_
    assert planes.shape == (grid, grid, len(sets))
    for index, number in enumerate(sets):
        assert np.flatnonzero(np.asarray(planes)[..., index]).tolist() == cells_of(number)


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
def test_masks_and_constants(grid):
    sets = random_sets(6, grid)
    words = np.stack(to_words(sets, grid), axis=-1)
    mask = np.array([[number >> cell & 1 == 1 for cell in range(grid * grid)] for number in sets])

    @jax.jit
    def there_and_back(words, mask):
        packed = bitboard.pack(bitboard.unpack(words[-1]))
        return bitboard.to_mask(words, grid), bitboard.from_mask(mask), packed

    to_mask, from_mask, packed = there_and_back(words, mask)
    np.testing.assert_array_equal(to_mask, mask)
    np.testing.assert_array_equal(from_mask, words)
    np.testing.assert_array_equal(bitboard.constant(cells_of(sets[-1]), grid), words[-1])
    np.testing.assert_array_equal(packed, words[-1])
    assert [int(word) for word in bitboard.empty(grid)] == [0] * bitboard.num_words(grid)
    last = bitboard.make_last_column(grid)
    assert cells_of(to_numbers(tuple(last[:, None]))[0]) == list(range(grid - 1, grid**2, grid))


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


def number_of(cells, grid: int) -> int:
    """A set of (row, column) cells as a whole number."""
    return sum(1 << (row * grid + column) for row, column in cells)


@pytest.mark.parametrize("grid", GRIDS)
def test_exits_steps_and_floods_follow_the_walls(grid):
    boards = random_boards(7, grid)
    playable = [number_of(board.cells(), grid) for board in boards]
    flat, upright = (
        [
            number_of([cell for cell in board.cells() if edge(cell, side) in board.walls], grid)
            for board in boards
        ]
        for side in (DOWN, RIGHT)
    )
    seeds = tuple(
        to_words([number_of(board.stones[player], grid) for board in boards], grid)
        for player in range(2)
    )

    def look(playable, horizontal, vertical, seeds):
        exits = bitboard.open_exits(playable, horizontal, vertical, grid)
        free = bitboard.free_exits(exits, bitboard.union(*seeds), grid)
        return exits, free, bitboard.step(seeds[0], exits, grid), bitboard.flood(seeds, exits, grid)

    words = (to_words(numbers, grid) for numbers in (playable, flat, upright))
    exits, free, stepped, flooded = jax.jit(jax.vmap(look))(*words, seeds)
    for index, side in enumerate(SIDES):
        expected = [[cell for cell in b.cells() if b.is_open(cell, side)] for b in boards]
        assert to_numbers(exits[index]) == [number_of(cells, grid) for cells in expected]
        into_empty = [
            [cell for cell in cells if neighbour(cell, side) not in b.occupied()]
            for cells, b in zip(expected, boards, strict=True)
        ]
        assert to_numbers(free[index]) == [number_of(cells, grid) for cells in into_empty]
    assert to_numbers(stepped) == [number_of(b.steps(b.stones[0][0], set()), grid) for b in boards]
    for player in range(2):
        regions = [
            next(region for region in board.regions() if board.stones[player][0] in region)
            for board in boards
        ]
        assert to_numbers(flooded[player]) == [number_of(region, grid) for region in regions]


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
