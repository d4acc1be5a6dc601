"""What a search saw beside its move: lines of play, and the outputs of a network's further heads.

B trees, K candidates, D plies of a line, A slots, H W cells, P players.
"""

from typing import Any, NamedTuple

import jax

from train.engine.trees.guide import chances_of_owners
from train.engine.trees.pool import Pool, roots
from train.players.basic import Player
from train.search.report import lines_below

MOST_CANDIDATES = 24


class Details(NamedTuple):
    """The most visited slots of some roots with their lines, and what the heads say."""

    slots: jax.Array  # int32[B, K], the most visited first
    lines: jax.Array  # int32[B, K, D] public ids, NO_ACTION behind the end
    owners: jax.Array | None  # float32[B, H, W, P + 1] chances, the player to move first
    margin: jax.Array | None  # float32[B], the lead of the player to move, in boards


def make_describe(guide: Player) -> Any:
    """(variables, pool, rows int32[B]) -> Details."""

    def describe(variables: Any, pool: Pool, rows: jax.Array) -> Details:
        visits = pool.tree.root_visits[rows]
        slots = jax.lax.top_k(visits, min(visits.shape[1], MOST_CANDIDATES))[1]
        states, owners, margin = roots(pool, rows), None, None
        lines = lines_below(pool.tree, states.variant, slots, rows)
        if guide.evaluate_heads is not None:
            output = guide.evaluate_heads(variables, states)
            owners, margin = chances_of_owners(output), output.margin
        return Details(slots, lines, owners, margin)

    return describe
