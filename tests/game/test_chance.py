"""Uniform choice: never outside the mask, every entry reachable, no entry favoured."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from wallgo_jax.game import chance

DRAWS = 20_000
RARE = 1e-5
"""The chance that a uniform choice fails a test."""

# Places that may be chosen among, by name, of how many.
MASKS = {
    "one of one": ([0], 1),
    "first alone": ([0], 208),
    "last alone": ([207], 208),
    "first and last": ([0, 207], 208),
    "word borders": ([0, 31, 32, 63, 64, 95, 96, 127], 208),
    "neighbours": (range(60, 68), 208),
    "one full word": (range(32, 64), 208),
    "every third": (range(0, 208, 3), 208),
    "all": (range(208), 208),
    "three of nine": ([0, 4, 8], 9),
    "three of many": ([0, 1298, 2596], 2597),
}


def mask_of(name: str) -> np.ndarray:
    """bool[A] of a named mask."""
    places, count = MASKS[name]
    return np.isin(np.arange(count), places)


def words_of(mask: np.ndarray) -> np.ndarray:
    """uint32[ceil(A / 32)]: the mask as bits."""
    whole = np.pad(mask, (0, -len(mask) % 32))
    return np.packbits(whole, bitorder="little").view("<u4")


_choose = jax.jit(jax.vmap(chance.choose, (0, None)))
_choose_bit = jax.jit(jax.vmap(chance.choose_bit, (0, None)))
_choose_from_mask = jax.jit(jax.vmap(chance.choose_from_mask, (0, None)))


def choose_bit(bits, mask):
    """int32[B]: a choice for each number among the bits of a mask."""
    return _choose_bit(bits, words_of(mask))


def is_uniform(counts: np.ndarray) -> bool:
    """Whether a uniform choice would come so far from equal counts by chance."""
    expected = counts.sum() / len(counts)
    return ((counts - expected) ** 2 / expected).sum() <= chi2.isf(RARE, max(len(counts) - 1, 1))


@pytest.mark.parametrize("draw", [_choose, choose_bit, _choose_from_mask])
@pytest.mark.parametrize("name", MASKS)
def test_choice_is_legal_and_uniform(draw, name):
    mask = mask_of(name)
    chosen = np.asarray(draw(jax.random.bits(jax.random.key(17), (DRAWS,), jnp.uint32), mask))
    assert chosen.dtype == np.int32
    assert mask[chosen].all()
    counts = np.bincount(chosen, minlength=len(mask))[mask]
    assert (counts > 0).all()
    assert is_uniform(counts)


@pytest.mark.parametrize("density", [0.02, 0.3, 0.9])
def test_each_bit_has_its_share_of_the_numbers(density):
    """The middle of its share, and the ends of the whole range."""
    mask = np.random.default_rng(5).random(416) < density
    places = np.flatnonzero(mask)
    middles = (np.arange(len(places)) + 0.5) / len(places) * 2**32
    chosen = choose_bit(np.array([0, *middles, 2**32 - 1]).astype(np.uint32), mask)
    np.testing.assert_array_equal(chosen, [places[0], *places, places[-1]])


def test_empty_sets_give_the_stated_place():
    bits, nothing = jax.random.bits(jax.random.key(1), (8,), jnp.uint32), np.zeros(40, bool)
    assert _choose(bits, nothing).tolist() == [0] * 8
    assert choose_bit(bits, nothing).tolist() == [63] * 8  # the last bit of two words


def test_choices_of_two_boards_are_independent():
    # Neighbouring numbers, as a counter would give, choose as freely as random ones.
    chosen = np.asarray(_choose(jnp.arange(DRAWS, dtype=jnp.uint32), np.ones(16, bool)))
    assert is_uniform(np.bincount(chosen[:-1] * 16 + chosen[1:], minlength=256))
