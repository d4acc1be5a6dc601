"""A game for the bench that can be counted by hand."""

import jax.numpy as jnp

from train.bench.games import BenchGame

GAME_PLIES = 3


def counting_game(*, per_step: int = 1) -> BenchGame:
    """A game of GAME_PLIES plies with one action, 5, and nothing else; each ply reads 7."""
    return BenchGame(
        name="counting",
        first=lambda key: jnp.int32(0),
        act=lambda state, bits: jnp.int32(5),
        step=lambda state, action: state + per_step,
        is_over=lambda state: state >= GAME_PLIES,
        steps=lambda state: state,
        read=lambda state, action, after: (action + 2).astype(jnp.uint32),
    )
