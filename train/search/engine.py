"""What an engine is: it grows a tree from a root that is evaluated already, and chooses a slot.

B boards, A slots.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from train.search.tree import Play
from wallgo_jax.game.state import Position


class Root(NamedTuple):
    """Where a search begins."""

    logits: jax.Array  # float32[B, A], prior
    value: jax.Array  # float32[B], for the player to move
    position: Position  # [B]
    legal: jax.Array  # bool[B, A]


class Choice(NamedTuple):
    """What an engine found."""

    slot: jax.Array  # int32[B]
    policy: jax.Array  # float32[B, A], 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    tree: Any  # as the engine keeps it: `train.search.tree.Tree` or `mctx.Tree`


Choose = Callable[[jax.Array, Root, Play], Choice]
"""(key, root, play) -> Choice; the key is consumed."""
