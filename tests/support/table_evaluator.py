"""Exact logits and values of a hash of the board, those of `table` in tests/support/engine.mjs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.evaluator import Evaluation, legal_slots_of
from wallgo_jax.board import bitboard
from wallgo_jax.game.state import State


def _mix(x: jax.Array) -> jax.Array:
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _constants(places: jax.Array) -> jax.Array:
    return _mix((places + 1).astype(jnp.uint32) * np.uint32(0x9E3779B9))


def evaluate(variables: Any, states: State, analysis: Any = None) -> Evaluation:
    """An evaluator of states [B]."""
    del variables, analysis
    legal = legal_slots_of(states, None)
    logits, values = jax.vmap(_look)(states)
    return Evaluation(jnp.where(legal, logits, MASKED), values)


def _look(state: State) -> tuple[jax.Array, jax.Array]:
    """float32[A] logits in [0, 4), float32[P] values in [-1, 1)."""
    position, grid = state.position, state.grid
    players, stones = position.stones.shape
    numbers = jnp.arange(players * stones).reshape(players, stones)
    parts = _constants(1000 * (numbers + 1) + position.stones)
    walls = bitboard.to_mask(position.walls, grid).reshape(2 * players, -1)
    sets, cells = np.indices((2 * players, grid * grid))
    built = jnp.where(walls, _constants(jnp.asarray(100_000 + 1000 * sets + cells)), 0)
    seed = (position.player + 1).astype(jnp.uint32) + parts.sum(dtype=jnp.uint32)
    seed = seed + built.sum(dtype=jnp.uint32)
    logits = (_mix(seed ^ _constants(jnp.arange(state.num_slots))) >> 20) / jnp.float32(1024)
    values = (_mix(seed ^ _constants(5000 + jnp.arange(players))) >> 17) / jnp.float32(16384) - 1
    if players == 2:
        values = values[0] * jnp.array([1.0, -1.0], jnp.float32)
    return logits, values
