"""The searches of a ply of the learner and of its frozen opponent, each of its own boards.

The boards where a side is to move are searched in parts of a fixed size, so that the others cost
little: mostly one part, and a second where the side is to move on more boards than that.

B boards, K boards of a part.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.search.evaluator import WithOpponentVariables
from train.search.search import BudgetedSearch, Search, SearchResult
from wallgo_jax.game.state import State

_ROOM = 1.25
"""Boards of a part over those that are searched on average: more are seldom to be searched."""
_SALT = 2**22
"""Folded into a ply's key for the opponent, whose numbers then are no part's."""

Choose = Callable[[Any, State, jax.Array, jax.Array], SearchResult]
"""(variables, states [B], key, whether the search is full bool[]) -> the search's result."""


class PlayoutCapSearch(NamedTuple):
    """A search that is full on some plies and cheap on the others: playout cap randomization (Wu,
    "Accelerating Self-Play Learning in Go", section 3.1)."""

    choose: Choose


def by_coin(full: Search, cheap: Search) -> PlayoutCapSearch:
    """One of two searches."""

    def choose(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        return jax.lax.cond(is_full, full, cheap, variables, states, key)

    return PlayoutCapSearch(choose)


def by_budget(search: BudgetedSearch) -> PlayoutCapSearch:
    """A search by the first of its budgets, the full one, or by the second."""

    def choose(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        return search(variables, states, key, jnp.where(is_full, 0, 1))

    return PlayoutCapSearch(choose)


def search_by_side(choose: Choose, opponent: Search) -> Callable[..., SearchResult]:
    """Make a search of a ply by both sides.

    Args:
      choose: the learner's; gets `WithOpponentVariables` variables.
      opponent: gets its own.

    Returns:
      (variables, states [B], key, is_full bool[], is_theirs bool[B]) -> the opponent's results
      where it is to move, with NaN for values and no surprise; else the learner's.
    """

    def search(
        variables: WithOpponentVariables,
        states: State,
        key: jax.Array,
        is_full: jax.Array,
        is_theirs: jax.Array,
    ) -> SearchResult:
        def own(variables: WithOpponentVariables, some: State, key: jax.Array) -> SearchResult:
            return choose(variables, some, key, is_full)

        boards, players = states.position.stones.shape[:2]
        own_part, their_part = (part_of(boards, n / players) for n in (1, players - 1))
        found = search_some(own, variables, states, key, ~is_theirs, part=own_part)
        their_key, theirs = jax.random.fold_in(key, _SALT), variables.opponent
        theirs = search_some(opponent, theirs, states, their_key, is_theirs, part=their_part)
        # Its values are not learned: its games teach their outcomes.
        theirs = theirs._replace(
            value=jnp.full_like(theirs.value, jnp.nan), surprise=jnp.zeros_like(theirs.surprise)
        )

        def merge(mine: jax.Array, other: jax.Array) -> jax.Array:
            return jnp.where(is_theirs.reshape(-1, *[1] * (mine.ndim - 1)), other, mine)

        return jax.tree.map(merge, found, theirs)

    return search


def part_of(boards: int, share: float) -> int:
    """K: the size of the parts, where a share of the boards is searched on average."""
    return min(boards, math.ceil(_ROOM * share * boards))


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
        return chosen, search(variables, some, jax.random.fold_in(key, done))

    def go_on(carry: tuple[jax.Array, SearchResult]) -> tuple[jax.Array, SearchResult]:
        done, results = carry
        chosen, found = search_part(done)
        results = jax.tree.map(lambda all, new: all.at[chosen].set(new), results, found)
        return done + part, results

    like = jax.eval_shape(search_part, jnp.int32(0))[1]
    nothing = jax.tree.map(lambda x: jnp.zeros((boards, *x.shape[1:]), x.dtype), like)
    return jax.lax.while_loop(lambda carry: carry[0] < wanted, go_on, (jnp.int32(0), nothing))[1]
