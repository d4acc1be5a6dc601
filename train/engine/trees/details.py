"""What a search saw beside its move: lines of play, and the outputs of a network's further heads.

B trees, K candidates, D plies of a line, A slots, H W cells, P players.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.engine.trees.guide import Guide
from train.engine.trees.pool import Pool, roots
from train.search.tree import NO_CHILD, ROOT
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import Position, State

MOST_CANDIDATES, LINE_PLIES = 24, 8


class Details(NamedTuple):
    """The most visited slots of some roots with their lines, and what the heads say."""

    slots: jax.Array  # int32[B, K], the most visited first
    lines: jax.Array  # int32[B, K, D] public ids, NO_ACTION behind the end
    owners: jax.Array | None  # float32[B, H, W, P + 1] chances, the player to move first
    margin: jax.Array | None  # float32[B], the lead of the player to move, in boards


def make_describe(guide: Guide) -> Any:
    """(variables, pool, rows int32[B]) -> Details."""

    def describe(variables: Any, pool: Pool, rows: jax.Array) -> Details:
        visits = pool.tree.root_visits[rows]
        slots = jax.lax.top_k(visits, min(visits.shape[1], MOST_CANDIDATES))[1]

        def line(row: jax.Array, slot: jax.Array) -> jax.Array:
            return _line(pool, row, slot)

        lines = jax.vmap(jax.vmap(line, in_axes=(None, 0)))(rows, slots)
        owners = margin = None
        if guide.look is not None:
            output = guide.look(variables, roots(pool, rows))
            margin = output.margin
            if output.ownership is not None:
                owners = jax.nn.softmax(output.ownership, axis=-1)
        return Details(slots, lines, owners, margin)

    return describe


def _line(pool: Pool, row: jax.Array, slot: jax.Array) -> jax.Array:
    """int32[D]: a slot of a root, and at each node after it the slot of the most visits."""
    tree, variant = pool.tree, jax.tree.map(lambda x: x[row], pool.variant)

    def further(
        carry: tuple[jax.Array, jax.Array, jax.Array], _: None
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], jax.Array]:
        node, slot, goes_on = carry
        position: Position = tree.positions[row, node]
        action = actions.action_of_slot(State(variant, position), slot)
        child = tree.children[row, node, slot].astype(jnp.int32)
        after = tree.children[row, child].astype(jnp.int32)
        visits = jnp.where(after != NO_CHILD, tree.visits[row, after], 0)
        shown = jnp.where(goes_on, action, NO_ACTION)
        goes_on &= (child != NO_CHILD) & (tree.discounts[row, child] != 0) & (visits.max() > 0)
        return (child, visits.argmax().astype(jnp.int32), goes_on), shown

    start = jnp.int32(ROOT), slot, jnp.bool_(True)
    return jax.lax.scan(further, start, None, length=LINE_PLIES)[1]
