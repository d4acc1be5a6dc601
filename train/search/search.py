"""Search over the exact game by either engine: evaluate the root, grow a tree, choose a slot.

`search.engine` picks between `native`, a tree of this package (`train.search.tree`) that is laid
out for boards, and `mctx`, mctx's own policies. `search.kind` picks between Gumbel search and PUCT.
The two engines make the same visits, choices and policies; PUCT's up to ties.

A tree holds positions, not observations or public masks: planes and legal slots are computed when a
node is made, and the variant, the same at every node, stays outside.

B boards, A slots, S stones a player.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.functions import call_of, check_returned, refusal
from train.game import MOVE_OFFSETS, NUM_SIDES, PLAYS_PER_STONE, State, in_setup, legal_slots
from train.network import MASKED, NetworkConfig, cast_weights
from train.search.config import MOVE_CLASSES, SearchConfig
from train.search.evaluator import (
    Evaluator,
    WithOpponentVariables,
    make_play,
    make_symmetric_evaluator,
)
from train.search.gumbel import make_gumbel
from train.search.puct import make_puct, select_by_visits
from train.search.sequential_halving import Selection, select_by_halving
from train.search.tree import Budget, Choose, Root

_STEPS = np.array([abs(row) + abs(column) for row, column in MOVE_OFFSETS])
_CLASS_OF_MOVE = 1 + _STEPS
"""The place in MOVE_CLASSES of each move, by its steps."""


class SearchResult(NamedTuple):
    """The result of a search."""

    slot: jax.Array  # int32[B], the chosen action
    policy: jax.Array  # float32[B, A], to be learned, 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    surprise: jax.Array  # float32[B], nats: divergence of the policy from the evaluator's
    prior: jax.Array  # float32[B, A], the evaluator's logits, MASKED at illegal slots
    visits: jax.Array | None = None  # int32[B, A], of the root's actions; None without a tree


class PriorBoost(NamedTuple):
    """Variables of an evaluator, with boosts for the root of a search that takes them."""

    variables: Any
    boosts: Any  # float32[4], of `train.search.config.MOVE_CLASSES`


Search = Callable[..., SearchResult]
"""(variables, states [B], key) -> SearchResult; the key is consumed. One of several budgets takes
its number int32[] as a fourth argument."""


def cast_own_weights(variables: Any, network: NetworkConfig) -> Any:
    """The variables of a search with `cast_weights` done for its own network; an opponent's stay.

    Args:
      variables: of a network, `PriorBoost` or not, or `WithOpponentVariables` with such as `own`.
      network: config of the search's own network.
    """
    if isinstance(variables, WithOpponentVariables):
        return variables._replace(own=cast_own_weights(variables.own, network))
    if isinstance(variables, PriorBoost):
        return variables._replace(variables=cast_weights(variables.variables, network))
    return cast_weights(variables, network)


def make_search(
    evaluate: Evaluator,
    config: SearchConfig,
    *,
    explores: bool = False,
    budgets: Sequence[Budget] = (),
    symmetries: int = 1,
    model: Evaluator | None = None,
) -> Search:
    """A search as a function of (variables, states [B], key).

    Where the variables are `PriorBoost`, classes of moves get more of the root's prior. The
    improved policy of Gumbel search is freed of them again, else the network would learn the
    boosts; PUCT's shares of visits are learned as they are.

    Args:
      evaluate: evaluates roots and leaves.
      config: options of the search.
      explores: searches with the noise of self-play; else it plays the strongest move.
      budgets: in place of `explores` and the config's simulations: each call gets one of them, and
        finds what a search of that budget alone finds. The native engine grows a tree with room for
        the largest in one loop, which compiles in the time of one search; elsewhere each budget has
        a separate search.
      symmetries: turned copies of the root, 1 to 8, whose mean evaluation the search begins with.
      model: evaluates for the other players, whose moves in the tree follow its raw policy in
        proportion. The variables are then `WithOpponentVariables`, of which `own` may be
        `PriorBoost`. After Wang et al., "Adversarial Policies Beat Superhuman Go AIs" (2023),
        section Attack Methodology: A-MCTS-S, whose draws from the policy are visits in proportion
        here.

    Raises:
      ValueError: a model with the engine `mctx` or a search that Python passes.
    """
    is_native = config.engine == "native" and not config.custom
    assert model is None or is_native, "a model of the opponent needs the engine 'native'"
    if budgets and (not is_native or (config.rounds and config.kind == "gumbel")):
        searches = [
            make_search(
                evaluate,
                dataclasses.replace(config, simulations=each.simulations),
                explores=each.explores,
                symmetries=symmetries,
                model=model,
            )
            for each in budgets
        ]
        return lambda variables, states, key, budget: jax.lax.switch(
            budget, searches, variables, states, key
        )
    if config.custom:
        return _make_custom_search(evaluate, config, explores=explores)
    choose = make_engine(config, explores=explores, budgets=budgets, has_model=model is not None)
    evaluate_root = make_symmetric_evaluator(evaluate, symmetries)
    play = make_play(evaluate, opponents=config.opponents, model=model)

    def search(
        variables: Any, states: State, key: jax.Array, budget: jax.Array | None = None
    ) -> SearchResult:
        chex.assert_rank(states.position.player, 1)
        chex.assert_equal_shape_prefix(jax.tree.leaves(states), 1)
        own, opponent = (variables, None) if model is None else variables
        own, boosts = own if isinstance(own, PriorBoost) else (own, None)
        variables = own if model is None else WithOpponentVariables(own, opponent)
        variant, position = states
        evaluation = evaluate_root(own, states)
        legal = jax.vmap(legal_slots)(states)
        chex.assert_equal_shape([evaluation.logits, legal])
        logits = evaluation.logits
        if boosts is not None:
            is_setup = jax.vmap(in_setup)(*states)
            stones = position.stones.shape[-1]
            logits = boost_classes(logits, boosts, legal, is_setup, stones=stones)
        root = Root(logits, evaluation.value[:, 0], position, legal, budget)
        choice = choose(key, root, functools.partial(play, (variables, variant, position.player)))
        policy = choice.policy
        if boosts is not None and config.kind == "gumbel":
            # A softmax whose logits are changed where a slot is legal.
            free = _log(policy) + (evaluation.logits - logits)
            policy = jax.nn.softmax(free, axis=1, where=legal)
        surprise = divergence(policy, evaluation.logits)
        return SearchResult(
            choice.slot, policy, choice.value, surprise, evaluation.logits, choice.visits
        )

    return search


def boost_classes(
    logits: jax.Array, boosts: jax.Array, legal: jax.Array, is_setup: jax.Array, *, stones: int
) -> jax.Array:
    """float32[B, A]: logits with boosts of classes of moves.

    A boost is added to the plays of a class. Placements are never among plays, so that adding to
    all of them would change nothing: their logits are divided by 1 + boost, towards equal chances.

    Args:
      logits: float32[B, A].
      boosts: float32[4], of MOVE_CLASSES.
      legal: bool[B, A].
      is_setup: bool[B], whether the moves are placements.
      stones: S.
    """
    chex.assert_shape(boosts, (len(MOVE_CLASSES),))
    by_slot = np.zeros(logits.shape[1], np.int32)
    plays = np.tile(np.repeat(_CLASS_OF_MOVE, NUM_SIDES), stones)
    # A large board has more cells than plays: slots that are placements alone.
    by_slot[: stones * PLAYS_PER_STONE] = plays[: len(by_slot)]
    play = logits + boosts[by_slot][None]
    placement = logits / (1 + boosts[MOVE_CLASSES.index("placement")])
    return jnp.where(legal, jnp.where(is_setup[:, None], placement, play), MASKED)


def divergence(policy: jax.Array, logits: jax.Array) -> jax.Array:
    """float32[B] nats: Kullback and Leibler's, of a policy [B, A] from logits [B, A]."""
    nats = (policy * (_log(policy) - jax.nn.log_softmax(logits, axis=-1))).sum(axis=-1)
    # Never negative but for rounding.
    return jnp.maximum(nats, 0.0)


def _log(policy: jax.Array) -> jax.Array:
    return jnp.log(jnp.maximum(policy, jnp.finfo(policy.dtype).tiny))


def _make_custom_search(evaluate: Evaluator, config: SearchConfig, *, explores: bool) -> Search:
    """A search by a function of your own: (evaluate, states [B], key, simulations, explores) ->
    slots int32[B], the policy to learn float32[B, A], values float32[B] of the player to move."""
    custom = call_of("search.custom", config.custom)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        ask = functools.partial(evaluate, variables)
        prior = ask(states).logits
        found = custom(ask, states, key, simulations=config.simulations, explores=explores)
        if not isinstance(found, tuple) or len(found) != 3:
            raise refusal("search", config.custom, found, "(slots, policy, values)")
        slot, policy, value = found
        boards, actions = prior.shape
        for array, shape, wanted in (
            (slot, (boards,), f"slots int32[{boards}]"),
            (policy, (boards, actions), f"a policy float32[{boards},{actions}]"),
            (value, (boards,), f"values float32[{boards}]"),
        ):
            check_returned("search", config.custom, array, shape, wanted)
        policy, value = policy.astype(jnp.float32), value.astype(jnp.float32)
        return SearchResult(slot.astype(jnp.int32), policy, value, divergence(policy, prior), prior)

    return search


def make_engine(
    config: SearchConfig,
    *,
    explores: bool = False,
    budgets: Sequence[Budget] = (),
    has_model: bool = False,
) -> Choose:
    """The engine and kind of search that a config names; the arguments are those of `make_search`.
    Only `native` has budgets and follows a model."""
    if config.engine == "mctx":
        # mctx is loaded only where it searches.
        from train.search import mctx_engine

        mctx_makers = {"gumbel": mctx_engine.make_gumbel, "puct": mctx_engine.make_puct}
        return mctx_makers[config.kind](config, explores=explores)
    make = {"gumbel": make_gumbel, "puct": make_puct}[config.kind]
    return make(config, budgets or [Budget(config.simulations, explores)], has_model=has_model)


def make_selection(config: SearchConfig) -> Selection:
    """The choices of a config's kind of search, without noise."""
    return {"gumbel": select_by_halving, "puct": select_by_visits}[config.kind](config)
