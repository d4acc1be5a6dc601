"""Arrays of small numbers as rows of 32-bit words.

A position is a handful of arrays of 1 to 30 numbers of 1, 2 or 4 bytes. As one row of words it is
read and written in one go. Numbers of fewer bytes share words, part by part: the words of twelve
bytes hold

    word 0    b0 b3 b6 b9         b0 in the lowest byte
    word 1    b1 b4 b7 b10
    word 2    b2 b5 b8 b11
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
