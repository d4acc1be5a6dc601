"""The searches of a ply of the learner and of its frozen opponent, each of its own boards.

The boards where a side is to move are searched in parts of a fixed size, so that the others cost
little: mostly one part, and a second where the side is to move on more boards than that.

B boards, K boards of a part.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from train.game import State
from train.search.evaluator import WithOpponentVariables
from train.search.search import Search, SearchResult

_ROOM = 1.25
"""Boards of a part over those that are searched on average: more are seldom to be searched."""
_SALT = 2**22
"""Folded into a ply's key for the opponent, whose numbers then are no part's."""


def search_both_sides(
    own: Search,
    opponent: Search,
    variables: WithOpponentVariables,
    states: State,
    key: jax.Array,
    is_theirs: jax.Array,
) -> SearchResult:
    """Search a ply, each side the boards where it is to move.

    Args:
      own: the learner's search; gets both sets of variables.
      opponent: gets its own.
      variables: of both.
      states: [B].
      key: consumed.
      is_theirs: bool[B], where the opponent is to move.

    Returns:
      The learner's results; the opponent's where it is to move, with NaN for values and no
      surprise.
    """
    boards, players = states.position.stones.shape[:2]
    own_part, their_part = (
        min(boards, math.ceil(_ROOM * seats / players * boards)) for seats in (1, players - 1)
    )
    mine = search_some(own, variables, states, key, ~is_theirs, part=own_part)
    their_key, weights = jax.random.fold_in(key, _SALT), variables.opponent
    theirs = search_some(opponent, weights, states, their_key, is_theirs, part=their_part)
    # Its values are not learned: its games teach their outcomes.
    theirs = theirs._replace(
        value=jnp.full_like(theirs.value, jnp.nan), surprise=jnp.zeros_like(theirs.surprise)
    )

    def merge(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(is_theirs.reshape(-1, *[1] * (one.ndim - 1)), other, one)

    return jax.tree.map(merge, mine, theirs)


def search_some(
    search: Search, variables: Any, states: State, key: jax.Array, where: jax.Array, *, part: int
) -> SearchResult:
    """Search some of the boards.

    Args:
      search: consumes a key a part.
      variables: its own.
      states: [B].
      key: consumed.
      where: bool[B], the boards that are searched.
      part: K, at most B.

    Returns:
      The results [B]; junk at the other boards.
    """
    boards = len(where)
    order, wanted = jnp.argsort(~where, stable=True), where.sum()

    def search_part(done: jax.Array) -> tuple[jax.Array, SearchResult]:
        # Near the end the slice begins earlier: some boards are searched again.
        chosen = jax.lax.dynamic_slice_in_dim(order, jnp.minimum(done, boards - part), part)
        some = jax.tree.map(lambda x: x[chosen], states)
        found = search(variables, some, jax.random.fold_in(key, done))
        # Not every search has visits, and nothing here reads them.
        return chosen, found._replace(visits=None)

    def go_on(carry: tuple[jax.Array, SearchResult]) -> tuple[jax.Array, SearchResult]:
        done, results = carry
        chosen, new = search_part(done)
        return done + part, jax.tree.map(lambda all, x: all.at[chosen].set(x), results, new)

    like = jax.eval_shape(search_part, jnp.int32(0))[1]
    nothing = jax.tree.map(lambda x: jnp.zeros((boards, *x.shape[1:]), x.dtype), like)
    return jax.lax.while_loop(lambda carry: carry[0] < wanted, go_on, (jnp.int32(0), nothing))[1]
