"""Positions of the replay are searched again by newer weights, their policies and values written
back (Schrittwieser et al., "Mastering Atari, Go, Chess and Shogi by Planning with a Learned Model",
2020, appendix H, Reanalyze).

Whole rows are searched: a batch is then a ply of each board, as it is in self-play. The boards are
at different plies of their games.

R rows, B boards, K rows that are searched again.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from train.data.best_slots import keep_best
from train.data.replay import ReplayState
from train.data.selfplay import POLICY_DTYPE
from train.game import State, Variant
from train.search.search import SearchResult


def draw_rows(replay_state: ReplayState, key: jax.Array, *, count: int) -> jax.Array:
    """int32[K]: `count` different rows, all that are written equally likely; empty ones where fewer
    are written. The key is consumed."""
    rows = replay_state.plies.terminated.shape[0]
    # Rows are written from the first one on, round and round.
    is_written = jnp.arange(rows) < replay_state.written
    chance = jnp.where(is_written, jax.random.uniform(key, (rows,)), -1.0)
    return jax.lax.top_k(chance, count)[1].astype(jnp.int32)


def search_again(
    replay_state: ReplayState,
    variant: Variant,
    rows: jax.Array,
    search: Callable[[State, jax.Array], SearchResult],
    key: jax.Array,
) -> tuple[ReplayState, jax.Array]:
    """Search rows of the replay again; outcomes, and the plies that were played, stay.

    Args:
      replay_state: R rows of B boards.
      variant: [B], what each board plays.
      rows: int32[K], all different.
      search: (states [B], key) -> SearchResult.
      key: consumed.

    Returns:
      The replay, with policies of weight 1 in these rows and, where it keeps them, new root values;
      and the mean of the searches' surprise, nats float32[].
    """
    plies = replay_state.plies

    def row_again(carry: None, drawn: tuple[jax.Array, jax.Array]) -> tuple[None, Any]:
        row, key = drawn
        position = jax.tree.map(lambda x: x[row], plies.position)
        result = search(State(variant, position), key)
        policy = keep_best(result.policy.astype(POLICY_DTYPE))
        return carry, (policy, result.value, result.surprise)

    drawn = rows, jax.random.split(key, rows.shape[0])
    policy, value, surprise = jax.lax.scan(row_again, None, drawn)[1]
    root_value = plies.root_value
    plies = plies._replace(
        policy=jax.tree.map(lambda old, new: old.at[rows].set(new), plies.policy, policy),
        policy_weight=plies.policy_weight.at[rows].set(1.0),
        root_value=None if root_value is None else root_value.at[rows].set(value),
    )
    return replay_state._replace(plies=plies), surprise.mean()
