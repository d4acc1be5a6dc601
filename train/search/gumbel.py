"""Gumbel search over the native tree: sequential halving at the root, an improved policy.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022). It finds what `mctx.gumbel_muzero_policy` finds from the same key.

B boards, A slots.
"""

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.engine import Choice, Choose, Root
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


def make_gumbel(config: SearchConfig, *, explores: bool, has_model: bool = False) -> Choose:
    """The native engine's Gumbel search, whose policy is the improved one.

    Args:
      config: options of the search.
      explores: draws the Gumbel noise; without it nothing is drawn and the move is the strongest.
      has_model: as in `init_tree`.
    """
    sizes = config.max_considered_actions, config.simulations
    schedule, rounds = halving_schedule(*sizes), round_schedule(*sizes)

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        prior = _mask(root.logits, root.legal)
        gumbel = jnp.zeros_like(prior)
        if explores:
            # mctx draws from the same half of the key, which keeps the two engines equal.
            gumbel = jax.random.gumbel(jax.random.split(key)[1], prior.shape, prior.dtype)

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

        nodes = config.simulations + 1
        tree = init_tree(prior, root.value, root.position, nodes=nodes, has_model=has_model)
        if config.rounds:
            grown = simulate_rounds(
                tree, rounds, legal=root.legal, score=score, below=below, play=play
            )
        else:
            grown = simulate(tree, None, at_root=at_root, below=below, play=play)
        found = root_view(grown)
        policy = jax.nn.softmax(_mask(prior + completed_values(found, config), root.legal), axis=1)
        # The survivors of the last halving are those of the most visits.
        slot = best(found, found.slot_visits.max(axis=1))
        return Choice(slot, policy, found.value, grown)

    return choose


def _mask(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """float32[B, A]: logits less the largest of their board, MASKED where not legal."""
    return jnp.where(legal, logits - logits.max(axis=1, keepdims=True), MASKED)
