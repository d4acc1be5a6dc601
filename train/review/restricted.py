"""Search from positions in which some legal moves are taken away at the root.

B boards, A slots.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.review.analyst import Analyst
from train.search.distributions import divergence
from train.search.engine import Root
from train.search.evaluator import make_play
from train.search.search import SearchResult, make_engine
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

SearchAmong = Any
"""(variables, states [B], allowed bool[B, A], key) -> SearchResult; where no legal slot is allowed,
all legal ones are."""


def make_search_among(analyst: Analyst, simulations: int) -> SearchAmong:
    """A search without exploration noise that chooses among allowed slots at its root."""
    options = analyst.search.__class__(**{**vars(analyst.search), "simulations": simulations})
    choose = make_engine(options, explores=False)
    play = make_play(analyst.evaluate, opponents=options.opponents)

    @jax.jit
    def search(variables: Any, states: State, allowed: jax.Array, key: jax.Array) -> SearchResult:
        variant, position = states
        evaluation = analyst.evaluate_root(variables, states)
        legal = jax.vmap(actions.legal_slots)(states)
        some = legal & allowed
        kept = jnp.where(some.any(axis=1, keepdims=True), some, legal)
        logits = jnp.where(kept, evaluation.logits, MASKED)
        root = Root(logits, evaluation.value[:, 0], position, kept)
        found = choose(key, root, functools.partial(play, (variables, variant, position.player)))
        surprise = divergence(found.policy, logits)
        return SearchResult(found.slot, found.policy, found.value, surprise, logits)

    return search
