"""Opponents of the single-agent adapters: functions that choose a move."""

from collections.abc import Callable
from typing import Any

import jax

from wallgo_jax.env import State
from wallgo_jax.game import chance

Opponent = Callable[[State, jax.Array], Any]
"""(state of one board, key) -> a legal public action of `state.current_player`, one integer."""


def play_randomly(state: State, key: jax.Array) -> jax.Array:
    """int32: any legal public action, each as likely as the others."""
    # Not decorated itself: a jitted function cannot be pickled, as worker processes require.
    return _draw(state.legal_action_mask, key)


@jax.jit
def _draw(mask: jax.Array, key: jax.Array) -> jax.Array:
    return chance.choose_from_mask(jax.random.bits(key, (), "uint32"), mask)
