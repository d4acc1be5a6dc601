"""Arrays of a search tree: entries in the form that suits the platform, and positions as words.

A CPU and a GPU gather and scatter. A TPU takes about 13 cycles for each index of these, one after
another, but compares a thousand numbers in one: there an entry is found by comparing the numbers of
all places with the one that is asked for. Both forms give the same entries. Where the rows are not
all boards in turn, every platform gathers and scatters; there a place past the last reads any entry
and writes none.

A position is a handful of arrays of 1 to 30 numbers of 1, 2 or 4 bytes. As one row of words it is
read and written in one go. Numbers of fewer bytes share words, part by part: the words of twelve
bytes hold

    word 0    b0 b3 b6 b9         b0 in the lowest byte
    word 1    b1 b4 b7 b10
    word 2    b2 b5 b8 b11

B boards, K rows of which each belongs to a board, N places, A slots, W words.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")

Boards = jax.Array | None
"""int32[K]: the boards of the rows; None where the rows are all boards in turn."""


def read(arrays: T, place: jax.Array, boards: Boards = None) -> T:
    """[K, ...]: the entries of a tree of arrays [B, N, ...] at a place int32[K]."""

    gathered = functools.partial(_gather, boards)

    def compared(arrays: T, place: jax.Array) -> T:
        # An entry of many numbers is worth an index.
        return jax.tree.map(
            lambda x: _entry(x, place) if x.ndim == 2 else gathered(x, place), arrays
        )

    return _form(compared, gathered, boards)(arrays, place)


def read_each(arrays: T, places: jax.Array, boards: Boards = None) -> T:
    """[K, A]: the entries of a tree of arrays [B, N] at A places int32[K, A] of each row."""

    def compared(arrays: T, places: jax.Array) -> T:
        leaves, structure = jax.tree.flatten(arrays)
        is_place = _numbers(leaves[0], places)[None, :, None] == places[:, None, :]
        shown = tuple(jnp.where(is_place, x[:, :, None], 0) for x in leaves)
        zeros = tuple(jnp.zeros((), x.dtype) for x in leaves)
        # One reduction of all arrays, which compares but once.
        entries = jax.lax.reduce(shown, zeros, functools.partial(jax.tree.map, jnp.add), (1,))
        return jax.tree.unflatten(structure, entries)

    return _form(compared, functools.partial(_gather, boards), boards)(arrays, places)


def read_slot(
    array: jax.Array, place: jax.Array, slot: jax.Array, boards: Boards = None
) -> jax.Array:
    """[K]: the entries of an array [B, N, A] at a place and a slot int32[K]."""

    def compared(array: jax.Array, place: jax.Array, slot: jax.Array) -> jax.Array:
        return _entry(read(array, place), slot)

    return _form(compared, functools.partial(_gather, boards), boards)(array, place, slot)


def write(arrays: T, entries: T, place: jax.Array, boards: Boards = None) -> T:
    """A tree of arrays [B, N] with new entries [K] at a place int32[K]; those past the last place
    are dropped."""

    def compared(arrays: T, entries: T, place: jax.Array) -> T:
        return jax.tree.map(
            lambda x, new: jnp.where(_is_at(x, place), new[:, None], x), arrays, entries
        )

    scattered = functools.partial(_scatter, boards, "drop")
    return _form(compared, scattered, boards)(arrays, entries, place)


def write_slot(
    array: jax.Array, entry: jax.Array, place: jax.Array, slot: jax.Array, boards: Boards = None
) -> jax.Array:
    """An array [B, N, A] with new entries [K] at a place and a slot int32[K]."""

    def compared(
        array: jax.Array, entry: jax.Array, place: jax.Array, slot: jax.Array
    ) -> jax.Array:
        slots = array.shape[2]
        numbers = jnp.arange(array.shape[1] * slots, dtype=place.dtype).reshape(-1, slots)
        is_entry = numbers[None] == (place * slots + slot)[:, None, None]
        return jnp.where(is_entry, entry[:, None, None], array)

    scattered = functools.partial(_scatter, boards, _mode(boards, "drop"))
    return _form(compared, scattered, boards)(array, entry.astype(array.dtype), place, slot)


def write_new(
    arrays: T, entries: T, place: jax.Array, fresh: jax.Array, boards: Boards = None
) -> T:
    """A tree of arrays [B, N, ...] with the entries [K, ...] of new places.

    Args:
      arrays: zero at places that are not written yet.
      entries: where the place has been written, equal to what is there.
      place: int32[K], of the entries: `fresh`, or one that has been written.
      fresh: int32[] or int32[K], the next place.
      boards: of the rows.
    """

    def scattered(arrays: T, entries: T, place: jax.Array, fresh: jax.Array) -> T:
        del fresh
        return _scatter(boards, _mode(boards, "drop"), arrays, entries, place)

    def sliced(arrays: T, entries: T, place: jax.Array, fresh: jax.Array) -> T:
        def put(array: jax.Array, new: jax.Array) -> jax.Array:
            is_new = (place == fresh).reshape(-1, *[1] * (new.ndim - 1))
            new = jnp.where(is_new, new, jnp.zeros((), array.dtype))
            return jax.lax.dynamic_update_slice_in_dim(array, new[:, None], fresh, axis=1)

        return jax.tree.map(put, arrays, entries)

    form = scattered if fresh.ndim else _form(sliced, scattered, boards)
    return form(arrays, entries, place, fresh)


def _gather(boards: Boards, arrays: T, *at: jax.Array) -> T:
    """The entries at places [K, ...], and at slots where they follow."""
    place = (_rows_of(at[0], boards), *at)
    return jax.tree.map(lambda x: x.at[place].get(mode=_mode(boards, "clip")), arrays)


def _scatter(boards: Boards, mode: str, arrays: T, entries: T, *at: jax.Array) -> T:
    """The arrays with new entries at places [K], and at slots where they follow."""
    place = (_rows_of(at[0], boards), *at)
    return jax.tree.map(
        lambda x, new: x.at[place].set(new, mode=mode, unique_indices=True), arrays, entries
    )


def _form(tpu: Callable[..., T], default: Callable[..., T], boards: Boards) -> Callable[..., T]:
    """The form that a program calls; the default where the rows are not all boards in turn."""
    return default if boards is not None else _by_platform(tpu, default)


def _by_platform(tpu: Callable[..., T], default: Callable[..., T]) -> Callable[..., T]:
    return lambda *arrays: jax.lax.platform_dependent(*arrays, tpu=tpu, default=default)


def _mode(boards: Boards, otherwise: str) -> str:
    """The mode of an index: boards in turn have no place past the last."""
    return "promise_in_bounds" if boards is None else otherwise


def _rows_of(place: jax.Array, boards: Boards) -> jax.Array:
    """int32[K, ...]: the board of each row, with as many axes as its places."""
    rows = jnp.arange(len(place), dtype=jnp.int32) if boards is None else boards
    return rows if place.ndim == 1 else rows[:, None]


def _numbers(array: jax.Array, place: jax.Array) -> jax.Array:
    """The numbers [N] of all places, in the type of those that are asked for."""
    return jnp.arange(array.shape[1], dtype=place.dtype)


def _is_at(array: jax.Array, place: jax.Array) -> jax.Array:
    """bool[B, N]: where the place int32[B] is."""
    return _numbers(array, place)[None] == place[:, None]


def _entry(array: jax.Array, place: jax.Array) -> jax.Array:
    """[B]: the entry of an array [B, N] at a place int32[B]."""
    shown = jnp.where(_is_at(array, place), array, jnp.zeros((), array.dtype))
    return shown.any(axis=1) if array.dtype == bool else shown.sum(axis=1, dtype=array.dtype)


WORD = 4
"""Bytes of a word."""
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Layout:
    """The arrays that a row of words holds, in the order of a tree's leaves."""

    structure: Any  # a PyTreeDef
    leaves: tuple[jax.ShapeDtypeStruct, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Words:
    """Trees of arrays, one a row. An index of the words' first axes gives the arrays there."""

    words: jax.Array  # uint32[..., W]
    layout: Layout

    def __getitem__(self, index: Any) -> Any:
        return unpack(self.words[index], self.layout)


def pack(tree: Any) -> Words:
    """Words uint32[B, W] of a tree of arrays [B, ...], of numbers or bool."""
    leaves, structure = jax.tree.flatten(tree)
    like = tuple(jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves)
    return Words(jnp.concatenate([_pack(x) for x in leaves], axis=1), Layout(structure, like))


def unpack(words: jax.Array, layout: Layout) -> Any:
    """The tree of arrays [..., shape] of words uint32[..., W]."""
    leaves, start = [], 0
    for like in layout.leaves:
        end = start + _num_words(like)
        leaves.append(_unpack(words[..., start:end], like))
        start = end
    return jax.tree.unflatten(layout.structure, leaves)


def _num_words(like: jax.ShapeDtypeStruct) -> int:
    return -(-math.prod(like.shape) * like.dtype.itemsize // WORD)


def _pack(array: jax.Array) -> jax.Array:
    """uint32[B, words]."""
    size = array.dtype.itemsize
    bits = array.astype(jnp.uint8) if array.dtype == bool else array
    bits = jax.lax.bitcast_convert_type(bits, _UNSIGNED[min(size, WORD)])
    numbers, shared = bits.reshape(len(array), -1).astype(jnp.uint32), max(1, WORD // size)
    numbers = jnp.pad(numbers, ((0, 0), (0, -numbers.shape[1] % shared)))
    words, *others = jnp.split(numbers, shared, axis=1)
    for place, part in enumerate(others, 1):
        words |= part << jnp.uint32(8 * size * place)
    return words


def _unpack(words: jax.Array, like: jax.ShapeDtypeStruct) -> jax.Array:
    """[..., shape]."""
    size, lead = like.dtype.itemsize, words.shape[:-1]
    if size > WORD:
        parts = words.reshape(*lead, *like.shape, size // WORD)
        return jax.lax.bitcast_convert_type(parts, like.dtype)
    parts = [words >> jnp.uint32(8 * size * place) for place in range(WORD // size)]
    numbers = jnp.concatenate(parts, axis=-1)[..., : math.prod(like.shape)]
    bits = numbers.reshape(*lead, *like.shape).astype(_UNSIGNED[size])
    return bits != 0 if like.dtype == bool else jax.lax.bitcast_convert_type(bits, like.dtype)
