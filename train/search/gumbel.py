"""Gumbel search over the native tree: sequential halving at the root, an improved policy.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022). It finds what `mctx.gumbel_muzero_policy` finds from the same key.

B boards, A slots.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.engine import Budget, Choice, Choose, Root, simulations_of, where_explored
from train.search.rounds import round_schedule, simulate_rounds
from train.search.sequential_halving import (
    best_due,
    completed_values,
    halving_schedule,
    root_score,
    slot_below,
    visits_due,
)
from train.search.simulation import simulate
from train.search.tree import Node, Play, init_tree, root_view


def make_gumbel(
    config: SearchConfig, budgets: Sequence[Budget], *, has_model: bool = False
) -> Choose:
    """The native engine's Gumbel search, whose policy is the improved one.

    Args:
      config: options of the search, but for its simulations.
      budgets: of which a search gets one; one alone with `config.rounds`. Those that explore draw
        the Gumbel noise; without it nothing is drawn and the move is the strongest.
      has_model: as in `init_tree`.
    """
    considered, most = config.max_considered_actions, max(each.simulations for each in budgets)
    schedules = _schedules(considered, [each.simulations for each in budgets])
    rounds = round_schedule(considered, most)

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        prior = _mask(root.logits, root.legal)
        gumbel = jnp.zeros_like(prior)
        if any(each.explores for each in budgets):
            # mctx draws from the same half of the key, which keeps the two engines equal.
            drawn = jax.random.gumbel(jax.random.split(key)[1], prior.shape, prior.dtype)
            gumbel = where_explored(budgets, root.budget, drawn, gumbel)
        schedule = schedules[0] if root.budget is None else jnp.asarray(schedules)[root.budget]

        def best(node: Node, due: jax.Array) -> jax.Array:
            completed = completed_values(node, config)
            return best_due(
                node.logits, node.slot_visits, completed, due, gumbel=gumbel, legal=root.legal
            )

        def score(node: Node) -> jax.Array:
            return root_score(node.logits, completed_values(node, config), gumbel)

        def at_root(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            return best(node, visits_due(node.visits, root.legal, schedule))

        def below(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            return slot_below(node, completed_values(node, config))

        tree = init_tree(prior, root.value, root.position, nodes=most + 1, has_model=has_model)
        if config.rounds:
            grown = simulate_rounds(
                tree, rounds, legal=root.legal, score=score, below=below, play=play
            )
        else:
            count = simulations_of(budgets, root.budget)
            grown = simulate(tree, None, at_root=at_root, below=below, play=play, count=count)
        found = root_view(grown)
        policy = jax.nn.softmax(_mask(prior + completed_values(found, config), root.legal), axis=1)
        # The survivors of the last halving are those of the most visits.
        slot = best(found, found.slot_visits.max(axis=1))
        return Choice(slot, policy, found.value, grown)

    return choose


def _schedules(considered: int, simulations: Sequence[int]) -> np.ndarray:
    """int32[budgets, considered + 1, the most simulations]: a schedule each, zeros behind it."""
    found = np.zeros((len(simulations), considered + 1, max(simulations)), np.int32)
    for schedule, count in zip(found, simulations, strict=True):
        schedule[:, :count] = halving_schedule(considered, count)
    return found


def _mask(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """float32[B, A]: logits less the largest of their board, MASKED where not legal."""
    return jnp.where(legal, logits - logits.max(axis=1, keepdims=True), MASKED)
