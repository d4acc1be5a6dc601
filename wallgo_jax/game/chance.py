"""A uniform choice among legal actions from one 32-bit random number a board."""

import jax
import jax.numpy as jnp
import numpy as np


def choose(bits: jax.Array, mask: jax.Array) -> jax.Array:
    """Choose the int32 index of a True entry of the mask, each as likely as the others.

    Every entry gets a key hashed from the board's bits and its index; the largest legal key wins.
    It costs one random number instead of one per entry, and one integer maximum instead of an
    argmax over floats. An empty mask gives 0.

    Args:
      bits: uint32[] random bits.
      mask: bool[A], A <= 4096.
    """
    count = mask.shape[-1]
    index_bits = int(count - 1).bit_length()
    index = jnp.arange(count, dtype=jnp.uint32)
    keys = _hash(bits ^ (index * np.uint32(0x9E3779B9)))
    low = np.uint32((1 << index_bits) - 1)
    keys = jnp.where(mask, (keys & ~low) | index, 0)
    return (keys.max(axis=-1) & low).astype(jnp.int32)


def _hash(x: jax.Array) -> jax.Array:
    """Mix 32 bits: every input bit changes every output bit with probability one half."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def choose_bit(bits: jax.Array, words: jax.Array) -> jax.Array:
    """Choose the int32 index of a set bit, each as likely as the others within one in 2^16 / count.

    The random number picks a rank, the words' counts pick the word, and halving finds the bit: no
    slot needs a key. Words without a set bit give 31, the last place that halving can end at.

    Args:
      bits: uint32[] random bits.
      words: uint32[W], fewer than 2^16 bits set, as `game.actions.legal_words` gives them.
    """
    parts = [words[i] for i in range(words.shape[0])]
    counts = [jax.lax.population_count(word) for word in parts]
    rank = _scale(bits, sum(counts[1:], counts[0]))
    word, base, left = parts[0], jnp.uint32(0), rank
    before = counts[0]
    for index in range(1, len(parts)):
        later = rank >= before
        word = jnp.where(later, parts[index], word)
        base = jnp.where(later, jnp.uint32(32 * index), base)
        left = jnp.where(later, rank - before, left)
        before = before + counts[index]
    return (base + _nth_bit(word, left)).astype(jnp.int32)


def choose_from_mask(bits: jax.Array, mask: jax.Array) -> jax.Array:
    """Choose the int32 index of a True entry of a long mask, each as likely as the others within
    one in 2^16 / count.

    Args:
      bits: uint32[] random bits.
      mask: bool[A], not all False.
    """
    words = -(-mask.shape[0] // _WORD)
    place = choose_bit(bits, _strided_words(mask, words))
    return place % _WORD * words + place // _WORD


_WORD = 32


def _strided_words(mask: jax.Array, words: int) -> jax.Array:
    """uint32[words]: entry `words * b + w` of the mask in bit b of word w, so that neighbours lie
    in different words and are packed at once."""
    packed = jnp.zeros((words,), jnp.uint32)
    for bit in range(-(-mask.shape[0] // words)):
        part = mask[words * bit : words * (bit + 1)].astype(jnp.uint32) << np.uint32(bit)
        packed = packed | jnp.pad(part, (0, words - part.shape[0]))
    return packed


def _scale(bits: jax.Array, count: jax.Array) -> jax.Array:
    """Return bits * count / 2^32 without 64-bit integers, for counts below 2^16."""
    high, low = bits >> 16, bits & np.uint32(0xFFFF)
    return (high * count + ((low * count) >> 16)) >> 16


def _nth_bit(word: jax.Array, rank: jax.Array) -> jax.Array:
    """Find the place of the set bit that has `rank` set bits below it."""
    place = jnp.uint32(0)
    for half in (16, 8, 4, 2, 1):
        below = jax.lax.population_count((word >> place) & np.uint32((1 << half) - 1))
        higher = rank >= below
        rank = jnp.where(higher, rank - below, rank)
        place = jnp.where(higher, place + half, place)
    return place
