"""Opponents of the single-agent adapters: functions that choose a move."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from wallgo_jax.env import State

Opponent = Callable[[State, jax.Array], Any]
"""(state of one board, key) -> a legal public action of `state.current_player`, one integer."""


@jax.jit
def play_randomly(state: State, key: jax.Array) -> jax.Array:
    """int32: any legal public action, each as likely as the others."""
    return jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
