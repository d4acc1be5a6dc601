"""Uniform choice: never outside the mask, every entry reachable, no entry favoured."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wallgo_jax.game import chance

DRAWS = 20_000

# Places that may be chosen among, by name, of how many.
MASKS = {
    "one of one": ([0], 1),
    "first alone": ([0], 208),
    "last alone": ([207], 208),
    "first and last": ([0, 207], 208),
    "word borders": ([0, 31, 32, 63, 64, 95, 96, 127], 208),
    "neighbours": (list(range(60, 68)), 208),
    "one full word": (list(range(32, 64)), 208),
    "every third": (list(range(0, 208, 3)), 208),
    "all": (list(range(208)), 208),
}


def mask_of(name: str) -> np.ndarray:
    """bool[A] of a named mask."""
    places, count = MASKS[name]
    mask = np.zeros(count, bool)
    mask[places] = True
    return mask


def words_of(mask: np.ndarray) -> np.ndarray:
    """uint32[ceil(A / 32)]: the mask as bits."""
    words = [0] * -(-len(mask) // 32)
    for place in np.flatnonzero(mask).tolist():
        words[place // 32] |= 1 << place % 32
    return np.array(words, np.uint32)


_choose = jax.jit(jax.vmap(chance.choose, (0, None)))
_choose_bit = jax.jit(jax.vmap(chance.choose_bit, (0, None)))


def draw_mask(bits, mask):
    """`DRAWS` choices among the true entries."""
    return _choose(bits, jnp.asarray(mask))


def draw_bit(bits, mask):
    """`DRAWS` choices among the set bits."""
    return _choose_bit(bits, jnp.asarray(words_of(mask)))


def chi_square_limit(degrees: int) -> float:
    """The upper 1e-5 point of chi-square, by Wilson and Hilferty's formula."""
    part = 2 / (9 * degrees)
    return degrees * (1 - part + 4.265 * math.sqrt(part)) ** 3


@pytest.mark.parametrize("draw", [draw_mask, draw_bit])
@pytest.mark.parametrize("name", MASKS)
def test_choice_is_legal_and_uniform(draw, name):
    mask = mask_of(name)
    chosen = np.asarray(draw(jax.random.bits(jax.random.key(17), (DRAWS,)), mask))
    assert chosen.dtype == np.int32
    assert mask[chosen].all()
    counts = np.bincount(chosen, minlength=len(mask))[mask]
    assert (counts > 0).all()
    expected = DRAWS / mask.sum()
    chi_square = ((counts - expected) ** 2 / expected).sum()
    if mask.sum() > 1:
        assert chi_square < chi_square_limit(mask.sum() - 1)


def test_limit_is_that_of_the_tables():
    # The upper 1e-5 points of chi-square with 1, 10 and 100 degrees are 19.51, 41.30 and 173.1.
    for degrees, table in ((1, 19.51), (10, 41.30), (100, 173.1)):
        assert chi_square_limit(degrees) == pytest.approx(table, rel=0.15)


@pytest.mark.parametrize("name", MASKS)
def test_smallest_and_largest_number_reach_the_first_and_last_bit(name):
    mask = mask_of(name)
    bits = jnp.array([0, 2**32 - 1], jnp.uint32)
    chosen = draw_bit(bits, mask)
    assert chosen.tolist() == [np.flatnonzero(mask)[0], np.flatnonzero(mask)[-1]]


def test_rank_of_every_bit_in_a_random_set():
    rng = np.random.default_rng(5)
    for density in (0.02, 0.3, 0.9):
        mask = rng.random(416) < density
        places = np.flatnonzero(mask)
        # The middle of each place's share of the 32-bit numbers.
        ranks = (np.arange(len(places)) + 0.5) / len(places) * 2**32
        chosen = draw_bit(jnp.asarray(ranks.astype(np.uint32)), mask)
        np.testing.assert_array_equal(chosen, places)


def test_empty_sets_give_the_stated_place():
    bits = jax.random.bits(jax.random.key(1), (8,))
    assert draw_mask(bits, np.zeros(40, bool)).tolist() == [0] * 8
    assert draw_bit(bits, np.zeros(40, bool)).tolist() == [63] * 8  # the last bit of two words


def test_choices_of_two_boards_are_independent():
    # Neighbouring numbers, as a counter would give, choose as freely as random ones.
    mask = np.ones(16, bool)
    chosen = np.asarray(draw_mask(jnp.arange(DRAWS, dtype=jnp.uint32), mask))
    pairs = np.bincount(chosen[:-1] * 16 + chosen[1:], minlength=256)
    expected = (DRAWS - 1) / 256
    assert ((pairs - expected) ** 2 / expected).sum() < chi_square_limit(255)


@pytest.mark.parametrize("length", [9, 2597])
def test_entries_of_a_long_mask_are_chosen_evenly(length):
    mask = np.zeros(length, bool)
    mask[[0, length // 2, length - 1]] = True
    bits = jax.random.bits(jax.random.key(1), (3000,), jnp.uint32)
    chosen = jax.jit(jax.vmap(lambda b: chance.choose_from_mask(b, jnp.asarray(mask))))(bits)
    found, counts = np.unique(chosen, return_counts=True)
    np.testing.assert_array_equal(found, np.flatnonzero(mask))
    # Five deviations of a binomial of 3000 and 1/3.
    assert abs(counts - 1000).max() < 5 * 26
