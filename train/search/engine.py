"""The interface of an engine: it grows a tree from an evaluated root and chooses a slot.

B boards, A slots.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.search.tree import Play
from wallgo_jax.game.state import Position


class Budget(NamedTuple):
    """Budget of a search."""

    simulations: int
    explores: bool  # searches with the noise of self-play; else it plays the strongest move


class Root(NamedTuple):
    """The evaluated position that a search begins with."""

    logits: jax.Array  # float32[B, A], prior
    value: jax.Array  # float32[B], for the player to move
    position: Position  # [B]
    legal: jax.Array  # bool[B, A]
    budget: jax.Array | None = None
    """int32[], number of the search's budget; None for the only one."""


class Choice(NamedTuple):
    """The result of an engine."""

    slot: jax.Array  # int32[B]
    policy: jax.Array  # float32[B, A], 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    tree: Any  # as the engine keeps it: `train.search.tree.Tree` or `mctx.Tree`


Choose = Callable[[jax.Array, Root, Play], Choice]
"""(key, root, play) -> Choice; the key is consumed."""


def simulations_of(budgets: Sequence[Budget], budget: jax.Array | None) -> jax.Array | None:
    """int32[]: the simulations of a budget; None for all that a tree has room for."""
    if budget is None:
        return None
    return jnp.array([each.simulations for each in budgets], jnp.int32)[budget]


def where_explored(
    budgets: Sequence[Budget], budget: jax.Array | None, noisy: jax.Array, plain: jax.Array
) -> jax.Array:
    """An array with noise where the budget of a search explores, else the one without."""
    if budget is None:
        return noisy if budgets[0].explores else plain
    return jnp.where(jnp.array([each.explores for each in budgets])[budget], noisy, plain)
