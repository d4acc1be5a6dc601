"""Search over the exact game by either engine: evaluate the root, grow a tree, choose a slot.

`search.engine` picks between `native`, a tree of this package (`train.search.tree`) that is laid
out for boards, and `mctx`, mctx's own policies. `search.kind` picks between Gumbel search and PUCT.
The two engines make the same visits, choices and policies; PUCT's up to ties.

A tree holds positions, not observations or public masks: planes and legal slots are computed when a
node is made, and the variant, the same at every node, stays outside.

B boards, A slots.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax

from train.search.config import SearchConfig
from train.search.distributions import divergence
from train.search.engine import Choose, Root
from train.search.evaluator import Evaluator, make_play, make_symmetric_evaluator
from train.search.gumbel import make_gumbel
from train.search.puct import make_puct
from wallgo_jax.game import actions
from wallgo_jax.game.state import State


class SearchResult(NamedTuple):
    """The result of a search."""

    slot: jax.Array  # int32[B], the chosen action
    policy: jax.Array  # float32[B, A], to be learned, 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    surprise: jax.Array  # float32[B], nats: divergence of the policy from the evaluator's
    prior: jax.Array  # float32[B, A], the evaluator's logits, MASKED at illegal slots


Search = Callable[[Any, State, jax.Array], SearchResult]
"""(variables, states [B], key) -> SearchResult; the key is consumed."""


def make_search(
    evaluate: Evaluator, config: SearchConfig, *, explores: bool, symmetries: int = 1
) -> Search:
    """A search as a function of (variables, states [B], key).

    Args:
      evaluate: evaluates roots and leaves.
      config: options of the search.
      explores: searches with the noise of self-play; else it plays the strongest move.
      symmetries: turned copies of the root, 1 to 8, whose mean evaluation the search begins with.
    """
    choose = make_engine(config, explores=explores)
    play = make_play(evaluate)
    evaluate_root = make_symmetric_evaluator(evaluate, symmetries)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        chex.assert_rank(states.position.player, 1)
        chex.assert_equal_shape_prefix(jax.tree.leaves(states), 1)
        variant, position = states
        evaluation = evaluate_root(variables, states)
        legal = jax.vmap(actions.legal_slots)(states)
        chex.assert_equal_shape([evaluation.logits, legal])
        root = Root(evaluation.logits, evaluation.value[:, 0], position, legal)
        found = choose(key, root, functools.partial(play, (variables, variant, position.player)))
        surprise = divergence(found.policy, evaluation.logits)
        return SearchResult(found.slot, found.policy, found.value, surprise, evaluation.logits)

    return search


def make_engine(config: SearchConfig, *, explores: bool) -> Choose:
    """The engine and kind of search that a config names."""
    if config.engine == "mctx":
        # mctx is loaded only where it searches.
        from train.search import mctx_engine

        makers = {"gumbel": mctx_engine.make_gumbel, "puct": mctx_engine.make_puct}
    else:
        makers = {"gumbel": make_gumbel, "puct": make_puct}
    return makers[config.kind](config, explores=explores)
