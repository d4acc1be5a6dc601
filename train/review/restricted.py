"""Search from positions in which some legal moves are taken away at the root.

B boards, A slots.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.review.analyst import Analyst
from train.search.engine import Root
from train.search.evaluator import make_play
from train.search.search import make_engine
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

SearchAmong = Any
"""(variables, states [B], allowed bool[B, A], key) -> the best slots int32[B], and their own
Q-values float32[B], from -1 to 1 for the side to move; where no legal slot is allowed, all legal
ones are."""


def make_search_among(analyst: Analyst, simulations: int) -> SearchAmong:
    """A search without exploration noise that chooses among allowed slots at its root."""
    options = dataclasses.replace(analyst.search, simulations=simulations)
    choose = make_engine(options, explores=False)
    play = make_play(analyst.evaluate, opponents=options.opponents)

    @jax.jit
    def search(
        variables: Any, states: State, allowed: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        variant, position = states
        evaluation = analyst.evaluate_root(variables, states)
        legal = jax.vmap(actions.legal_slots)(states)
        some = legal & allowed
        kept = jnp.where(some.any(axis=1, keepdims=True), some, legal)
        logits = jnp.where(kept, evaluation.logits, MASKED)
        root = Root(logits, evaluation.value[:, 0], position, kept)
        found = choose(key, root, functools.partial(play, (variables, variant, position.player)))
        rows = jnp.arange(len(found.slot))
        return found.slot, found.tree.root_qvalues[rows, found.slot]

    return search
