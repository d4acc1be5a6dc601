"""Sets of cells as a few 32-bit words, with steps through open sides and floods.

A set of cells is a tuple of `num_words(grid)` uint32 scalars, bit `cell % 32` of word `cell // 32`.
Grid 7 takes two words; the cells run row by row, and a row may lie across both:

    cell    48 .. 35 34 33 32 | 31 30 29 28 27 .. 7 6 5 4 3 2 1 0
    word           1          |                 0
    row      6 ..  5  4 4  4  |  4  4  4  4  3 .. 1 0 0 0 0 0 0 0

A step up or down is then a shift by `grid` bits, a step left or right a shift by one bit. Words are
held apart, so that under `vmap` each is one contiguous vector; `pack` and `unpack` turn them into
the `uint32[W]` arrays that positions store. JAX has no 64-bit integers unless asked.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import DOWN, LEFT, RIGHT, UP, side_delta
from wallgo_jax.board.loops import loop_until_done

Cells = tuple[jax.Array, ...]
"""A set of cells: `num_words(grid)` words of uint32[]."""

_WORD = 32
_SPREADS = 3  # of a turn of a flood


def num_words(grid: int) -> int:
    """W: the number of 32-bit words that hold one bit per cell of the grid."""
    return -(-grid * grid // _WORD)


def constant(cells: Sequence[int], grid: int) -> np.ndarray:
    """uint32[W]: the set of the given cells, made on the host."""
    words = np.zeros(num_words(grid), dtype=np.uint32)
    for cell in cells:
        words[cell // _WORD] |= np.uint32(1 << (cell % _WORD))
    return words


def unpack(words: jax.Array) -> Cells:
    """uint32[W] -> the words held apart."""
    return tuple(words[i] for i in range(words.shape[0]))


def pack(cells: Cells) -> jax.Array:
    """The words held apart -> uint32[W]."""
    return jnp.stack(cells)


def pack_sets(sets: Sequence[Cells]) -> jax.Array:
    """P sets of cells -> uint32[P, W]."""
    return jnp.stack([pack(cells) for cells in sets])


def empty(grid: int) -> Cells:
    """The empty set."""
    return (jnp.uint32(0),) * num_words(grid)


def one_hot(cell: jax.Array, grid: int) -> Cells:
    """The set of one cell; empty for a cell outside 0..32 W - 1, such as a stone not yet placed."""
    # The shift of a negative cell is arithmetic: its word is negative too and equals no index.
    word, bit = cell >> 5, (cell & 31).astype(jnp.uint32)
    one = jnp.uint32(1) << bit
    return tuple(jnp.where(word == i, one, jnp.uint32(0)) for i in range(num_words(grid)))


def contains(cells: Cells, cell: jax.Array) -> jax.Array:
    """uint32 0 or 1: whether the cell is in the set; undefined for cells outside the words."""
    word = cells[0]
    for i in range(1, len(cells)):
        word = jnp.where(cell >= i * _WORD, cells[i], word)
    return (word >> (cell & 31).astype(jnp.uint32)) & jnp.uint32(1)


def union(*sets: Cells) -> Cells:
    """Cells in any of the sets."""
    total = sets[0]
    for cells in sets[1:]:
        total = tuple(a | b for a, b in zip(total, cells, strict=True))
    return total


def intersection(a: Cells, b: Cells) -> Cells:
    """Cells in both sets."""
    return tuple(x & y for x, y in zip(a, b, strict=True))


def difference(a: Cells, b: Cells) -> Cells:
    """Cells of `a` that are not in `b`."""
    return tuple(x & ~y for x, y in zip(a, b, strict=True))


def where(condition: jax.Array, a: Cells, b: Cells) -> Cells:
    """`a` where the condition holds, else `b`."""
    return tuple(jnp.where(condition, x, y) for x, y in zip(a, b, strict=True))


def any_cell(cells: Cells) -> jax.Array:
    """bool: whether the set has a cell."""
    total = cells[0]
    for word in cells[1:]:
        total = total | word
    return total != 0


def count(cells: Cells) -> jax.Array:
    """int32: the number of cells in the set."""
    total = jax.lax.population_count(cells[0])
    for word in cells[1:]:
        total = total + jax.lax.population_count(word)
    return total.astype(jnp.int32)


def lowest(cells: Cells) -> Cells:
    """The set of the lowest cell alone; an empty set stays empty."""
    found = jnp.bool_(False)
    result = []
    for word in cells:
        # Two's complement: a word and its negative share only the lowest set bit.
        bit = word & (~word + jnp.uint32(1))
        result.append(jnp.where(found, jnp.uint32(0), bit))
        found = found | (word != 0)
    return tuple(result)


def to_mask(words: jax.Array, grid: int) -> jax.Array:
    """uint32[..., W] set of cells -> bool[..., grid²]."""
    return bits_to_mask(words, grid * grid)


def sets_to_mask(sets: Sequence[Cells], grid: int) -> jax.Array:
    """P sets of cells -> bool[P, grid²]."""
    return to_mask(pack_sets(sets), grid)


# Inlined, the function leaves no call in a program; JAX traces it once for all programs of a shape.
@functools.partial(jax.jit, inline=True, static_argnums=1)
def bits_to_mask(words: jax.Array, length: int) -> jax.Array:
    """uint32[..., W] or uint16[..., W] -> its first `length` bits as bool[..., length]."""
    return jax.lax.platform_dependent(
        words,
        tpu=functools.partial(_bits_by_word, length=length),
        default=functools.partial(_bits_of_all, length=length),
    )


@functools.partial(jax.jit, inline=True, static_argnums=1)
def bits_to_long_mask(words: jax.Array, length: int, token: jax.Array) -> jax.Array:
    """uint32[W] -> its first `length` bits as bool[length]; `token` is for `fusion_barrier`.

    XLA on CPU makes a long mask twice as fast from 16-bit words that are stored in memory.
    """

    def by_halves(words: jax.Array, token: jax.Array) -> jax.Array:
        return _bits_of_all(fusion_barrier(halves(words), token=token), length=length)

    def by_word(words: jax.Array, token: jax.Array) -> jax.Array:
        del token
        return _bits_by_word(words, length=length)

    return jax.lax.platform_dependent(words, token, tpu=by_word, default=by_halves)


def _bits_of_all(words: jax.Array, *, length: int) -> jax.Array:
    width = words.dtype.itemsize * 8
    bits = (words[..., None] >> _places(words.ndim + 1, words.dtype)) & words.dtype.type(1)
    flat = bits.reshape(*words.shape[:-1], words.shape[-1] * width)
    return flat[..., :length] != 0


def _bits_by_word(words: jax.Array, *, length: int) -> jax.Array:
    """Join the masks of single words: a TPU would store all bits as words before it joins them."""
    width = words.dtype.itemsize * 8
    places = _places(words.ndim, words.dtype)
    parts = []
    for start in range(0, length, width):
        word = words[..., start // width, None] >> places[..., : min(width, length - start)]
        parts.append(word & words.dtype.type(1) != 0)
    return jnp.concatenate(parts, axis=-1)


def halves(words: jax.Array) -> jax.Array:
    """uint32[W] -> uint16[2 W], the same string of bits."""
    both = jnp.stack([words & jnp.uint32(0xFFFF), words >> jnp.uint32(16)], axis=-1)
    return both.astype(jnp.uint16).reshape(-1)


def to_rows(words: jax.Array, grid: int) -> jax.Array:
    """uint32[W, C] sets of cells -> uint8[grid, C] (uint16 on grid 9): bit `column` of each row.

    On grid 7 each row's seven bits are shifted to bit 0 and the rest is cut off; row 4 takes its
    first four columns from word 0, the other three from word 1:

        bit of word 0   31..28 27..21 20..14 13...7 6....0
        row                  4      3      2      1      0
    """
    rows = jnp.zeros((grid, words.shape[1]), jnp.uint32)
    for index in range(words.shape[0]):
        up, down, kept = (jnp.asarray(table)[:, None] for table in _make_row_cuts(index, grid))
        rows = rows | ((words[index][None] << up >> down) & kept)
    return rows.astype(jnp.uint8 if grid <= 8 else jnp.uint16)


def _make_row_cuts(index: int, grid: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the rows in a word: three uint32[grid], the shift up, the shift down, and the mask of
    the columns of each row that the word holds."""
    # A row that begins in an earlier word has a negative start and is shifted up.
    starts = np.arange(grid) * grid - _WORD * index
    up, down = np.clip(-starts, 0, _WORD - 1), np.clip(starts, 0, _WORD - 1)
    places = starts[:, None] + np.arange(grid)
    held = (places >= 0) & (places < _WORD)
    kept = np.where(held, 1 << np.arange(grid), 0).sum(axis=1)
    return up.astype(np.uint32), down.astype(np.uint32), kept.astype(np.uint32)


def rows_to_planes(rows: jax.Array) -> jax.Array:
    """uint8[grid, C] or uint16[grid, C], see `to_rows` -> bool[grid, grid, C]."""
    places = np.left_shift(1, np.arange(rows.shape[0])).astype(rows.dtype)
    return (rows[:, None, :] & jnp.asarray(places)[None, :, None]) != 0


def from_mask(mask: jax.Array) -> jax.Array:
    """bool[..., N] -> uint32[..., ceil(N / 32)]."""
    cells = mask.shape[-1]
    words = -(-cells // _WORD)
    padding = [(0, 0)] * (mask.ndim - 1) + [(0, words * _WORD - cells)]
    bits = jnp.pad(mask, padding).reshape(*mask.shape[:-1], words, _WORD).astype(jnp.uint32)
    return jnp.sum(bits << _places(bits.ndim, bits.dtype), axis=-1, dtype=jnp.uint32)


def _places(rank: int, dtype: np.dtype) -> jax.Array:
    """The bit numbers 0, 1, ... of a word along the last of `rank` axes."""
    return jnp.arange(dtype.itemsize * 8, dtype=dtype).reshape([1] * (rank - 1) + [-1])


def shift(cells: Cells, delta: int) -> Cells:
    """Add `delta` to every cell's index; bits pushed past either end of the words are lost.

    Between two words, the bits that leave one enter the next, here for a delta of +3:

        word 1  .......ddd <- word 0  ddd.......
    """
    words = len(cells)
    skip, bits = divmod(abs(delta), _WORD)
    zero = jnp.uint32(0)
    result = []
    for i in range(words):
        source = i - skip if delta > 0 else i + skip
        carry = source - 1 if delta > 0 else source + 1
        main = cells[source] if 0 <= source < words else zero
        if bits == 0:  # Whole words move; nothing spills into the next one.
            result.append(main)
            continue
        spill = cells[carry] if 0 <= carry < words else None
        here = main << np.uint32(bits) if delta > 0 else main >> np.uint32(bits)
        if spill is not None:
            back = np.uint32(_WORD - bits)
            here = here | (spill >> back if delta > 0 else spill << back)
        result.append(here)
    return tuple(result)


def neighbours(cells: Cells, side: int, grid: int) -> Cells:
    """Each cell's neighbour over `side`; the caller has removed the cells that have none.

    A shift does not know rows: the cell right of the last column is the first of the next row.
    """
    return shift(cells, side_delta(side, grid))


class Exits(NamedTuple):
    """For each side, the cells that a stone can leave over it; one set of words a side."""

    up: Cells
    right: Cells
    down: Cells
    left: Cells


def make_last_column(grid: int) -> np.ndarray:
    """uint32[W]: the cells of the last column, which have no right neighbour."""
    return constant([row * grid + grid - 1 for row in range(grid)], grid)


def open_exits(playable: Cells, horizontal: Cells, vertical: Cells, grid: int) -> Exits:
    """Find where no wall parts playable neighbours.

    Args:
      playable: the cells of the board.
      horizontal: cells with a wall on their lower side.
      vertical: cells with a wall on their right side.
    """
    last_column = tuple(jnp.uint32(w) for w in make_last_column(grid))
    # Each open edge is found once, from its upper or left cell, then shifted to the other cell.
    # Cells outside the board are not playable, so that the border needs no walls.
    below = intersection(playable, neighbours(playable, UP, grid))
    beside = intersection(difference(playable, last_column), neighbours(playable, LEFT, grid))
    down = difference(below, horizontal)
    right = difference(beside, vertical)
    return Exits(
        up=neighbours(down, DOWN, grid), right=right, down=down, left=neighbours(right, RIGHT, grid)
    )


def free_exits(exits: Exits, occupied: Cells, grid: int) -> Exits:
    """Keep the exits that lead to an empty cell."""
    return Exits(
        *(
            difference(exits[side], neighbours(occupied, opposite, grid))
            for side, opposite in ((UP, DOWN), (RIGHT, LEFT), (DOWN, UP), (LEFT, RIGHT))
        )
    )


def step(cells: Cells, exits: Exits, grid: int) -> Cells:
    """The cells that one step through an exit reaches from the set."""
    return union(
        *(
            neighbours(intersection(cells, exits[side]), side, grid)
            for side in (UP, RIGHT, DOWN, LEFT)
        )
    )


def spread(cells: Cells, exits: Exits, grid: int) -> Cells:
    """The set and all that it reaches by up to one step up, then right, then down, then left."""
    # Each side starts from what the sides before it have reached: a spread turns corners, so a
    # flood needs far fewer turns than with four steps side by side.
    for side in (UP, RIGHT, DOWN, LEFT):
        cells = union(cells, neighbours(intersection(cells, exits[side]), side, grid))
    return cells


def flood(seeds: tuple[Cells, ...], exits: Exits, grid: int) -> tuple[Cells, ...]:
    """Grow several sets at once through the exits until none grows: unions of whole regions."""

    def grow(sets: tuple[Cells, ...]) -> tuple[Cells, ...]:
        return tuple(spread(cells, exits, grid) for cells in sets)

    def body(carry):
        sets, _ = carry
        # Several spreads a turn: comparing costs as much as spreading, and under `vmap` every board
        # takes the turns of the slowest. A set that the last spread left alone is closed: the
        # flood stops there, and one turn more would change nothing.
        once = sets
        for _ in range(_SPREADS - 1):
            once = grow(once)
        grown = grow(once)
        changed = jnp.bool_(False)
        for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(grown), strict=True):
            changed = changed | (a != b)
        return grown, changed

    flooded, _ = loop_until_done(
        lambda carry: carry[1], body, (seeds, jnp.bool_(True)), most=most_flood_turns(grid)
    )
    return flooded


def most_flood_turns(grid: int) -> int:
    """Turns after which every flood is closed: a spread takes each way one step on,
    and no shortest way has more steps than there are cells but one."""
    return max(1, -(-(grid * grid - 1) // _SPREADS))
