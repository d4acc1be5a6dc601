"""Exploration of self-play in the plies that are played: drawn openings, a temperature that decays.

After Wu, "Accelerating Self-Play Learning in Go" (2019), appendix D (Game Randomization and
Termination): plies drawn from the raw policy, and the temperature. Random openings are our own.

B boards, A slots.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from train.data.config import SelfPlayConfig
from train.game import Position, State, draw_slot
from train.search.puct import draw_at
from train.search.search import SearchResult

_SALT = 2**20
"""Folded into a ply's key, whose own parts the search uses."""


class Opening(NamedTuple):
    """How each board's game opens."""

    has_setup: jax.Array  # bool[B], whether all its placements are drawn
    plies: jax.Array  # int16[B], number of the plies after its setup that are drawn
    is_random: jax.Array  # bool[B], whether from all legal ones; else from the raw policy


def no_opening(boards: int) -> Opening:
    """Openings [B] of which no ply is drawn; they share no buffer, so they can be donated."""
    return Opening(jnp.zeros(boards, bool), jnp.zeros(boards, jnp.int16), jnp.zeros(boards, bool))


def open_games(
    opening: Opening, position: Position, key: jax.Array, options: SelfPlayConfig
) -> Opening:
    """Draw an opening for each game [B] that begins; the other games keep theirs."""
    if not _draws_openings(options):
        return opening
    setup_key, plies_key, count_key, random_key = jax.random.split(
        jax.random.fold_in(key, _SALT), 4
    )
    shape, begins = position.ply.shape, position.ply == 0

    def draw(key: jax.Array, chance: float | None) -> jax.Array:
        return jax.random.bernoulli(key, jnp.float32(0 if chance is None else chance), shape)

    has_plies = draw(plies_key, options.opening_prob)
    plies = jax.random.randint(count_key, shape, 1, max(options.opening_plies, 1) + 1, jnp.int32)
    plies = jnp.where(has_plies & (options.opening_plies > 0), plies, 0)
    drawn = Opening(
        has_setup=draw(setup_key, options.setup_prob),
        plies=plies.astype(jnp.int16),
        is_random=draw(random_key, options.random_opening_prob),
    )
    return jax.tree.map(lambda new, old: jnp.where(begins, new, old), drawn, opening)


def explore(
    result: SearchResult, states: State, opening: Opening, key: jax.Array, options: SelfPlayConfig
) -> tuple[jax.Array, jax.Array]:
    """The slots int32[B] to play in states [B], and bool[B], whether the opening drew them."""
    keys = jax.random.split(jax.random.fold_in(key, _SALT + 1), 3)
    slot, ply = result.slot, states.position.ply
    is_drawn = jnp.zeros(slot.shape, bool)
    if options.temperature is not None:
        slot = draw_at(keys[0], result.policy, temperature_at(ply, options)[:, None])
    if _draws_openings(options):
        since_setup = ply - states.variant.num_placements
        is_drawn = jnp.where(since_setup < 0, opening.has_setup, since_setup < opening.plies)
        drawn = jax.random.categorical(keys[1], result.prior).astype(jnp.int32)
        if options.random_opening_prob is not None:
            drawn = jnp.where(opening.is_random, draw_legal(keys[2], states), drawn)
        slot = jnp.where(is_drawn, drawn, slot)
    return slot, is_drawn


def draw_legal(key: jax.Array, states: State) -> jax.Array:
    """int32[B]: a legal slot of each board, all equally likely."""
    bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
    return jax.vmap(draw_slot)(states, bits)


def temperature_at(ply: jax.Array, options: SelfPlayConfig) -> jax.Array:
    """float32[...]: the temperature of a ply, which decays by halves towards the final one."""
    left = jnp.exp2(-ply.astype(jnp.float32) / options.temperature_halflife)
    first = 0.0 if options.temperature is None else options.temperature
    last = options.final_temperature
    return last + (first - last) * left


def _draws_openings(options: SelfPlayConfig) -> bool:
    """Whether some games open with drawn plies."""
    return options.setup_prob is not None or options.opening_plies > 0
