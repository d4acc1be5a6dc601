"""A game that is drawn from hashes: searches of it compile in a fraction of a real game's time.

A position is 32 bits and its ply; a hash of them and of a slot is the position after it. All else
is read off the bits: which slots are legal, whether the game is over and who is paid, whether the
same side moves again, logits and value. So it has all that two searches could differ in.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.learner.searching import Grown, grown_of, stir
from train.network import MASKED
from train.search.config import SearchConfig
from train.search.search import make_engine
from train.search.tree import Choice, Choose, Root, Step

SLOTS, SEED = 20, 11
# Searches that several tests compare with others; more boards take some of them another way down.
GUMBEL = SearchConfig(24, 4, value_scale=0.3, visit_offset=5.0, rescale_values=False)
GUMBEL_BOARDS = 7
PUCT = SearchConfig(24, kind="puct", c_init=2.0, temperature_plies=4)
PUCT_BOARDS = 12


class Place(NamedTuple):
    """A position."""

    bits: jax.Array  # uint32[B]
    ply: jax.Array  # int16[B]
    is_over: jax.Array  # bool[B]


def _look(bits: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Logits [B, A], MASKED at illegal slots, values [B], and bool[B], whether the game ends."""
    draws = stir(jnp.arange(1, 2 * SLOTS + 4, dtype=jnp.uint32))
    uniform = (stir(bits[:, None] ^ draws[None]) >> 8) / jnp.float32(2**24)
    openness, value, end = uniform[:, 0], 2.0 * uniform[:, 1] - 1.0, uniform[:, 2]
    # As many slots are legal as luck will have it; the first always is.
    legal = (uniform[:, 3 : SLOTS + 3] < openness[:, None]).at[:, 0].set(True)
    return jnp.where(legal, 4.0 * uniform[:, SLOTS + 3 :], MASKED), value, end < 0.3


def play(slot: jax.Array, place: Place) -> Step:
    """A step of each board; a finished game stays as it is."""
    bits = stir(place.bits * jnp.uint32(31) + slot.astype(jnp.uint32))
    logits, value, ends = _look(bits)
    is_over, side = place.is_over | ends, jnp.where(bits % 4 == 0, 1.0, -1.0)
    paid = (bits // 4 % 3).astype(jnp.float32) - 1.0
    return Step(
        reward=jnp.where(ends & ~place.is_over, paid, 0.0),
        discount=jnp.where(is_over, 0.0, side),
        logits=logits,
        value=jnp.where(is_over, 0.0, value),
        position=Place(bits, place.ply + jnp.int16(1), is_over),
        returns=None,
        is_modelled=None,
    )


@functools.cache
def roots(boards: int) -> Root:
    """Positions [B] to search from, at plies 0 to 7 in turn."""

    number = np.arange(1, boards + 1)
    bits, ply = number.astype(np.uint32), (number % 8).astype(np.int16)
    logits, value, _ = jax.device_get(jax.jit(_look)(bits))
    place = Place(bits, ply, np.zeros(boards, bool))
    return Root(logits, value, place, logits > MASKED)


def compiled(choose: Choose) -> Any:
    """An engine's search, jitted: (key, root) -> Choice."""
    return jax.jit(lambda key, root: choose(key, root, play))


@functools.cache
def chosen(config: SearchConfig, explores: bool, boards: int) -> Choice:
    """The result of a config's engine."""
    choose = make_engine(config, explores=explores)
    return jax.device_get(compiled(choose)(jax.random.key(SEED), roots(boards)))


def hashes_grown(config: SearchConfig, *, explores: bool, boards: int) -> Grown:
    """The same with its tree."""
    return grown_of(chosen(config, explores, boards), config)
