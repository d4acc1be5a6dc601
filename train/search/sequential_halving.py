"""Chooses the slot that a Gumbel search visits next: sequential halving, matched visits below.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022), sections 3 and 5, and Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed
Bandits" (ICML 2013). The choices are those of mctx's `gumbel_muzero_root_action_selection` and
`gumbel_muzero_interior_action_selection`, found with two plain reductions in place of an argmax,
which XLA runs one number at a time on CPU.

B boards, A slots.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.tree import Node

_ROUNDING = 1e-6
"""How far equal scores that are worked out twice may differ, of one and of their size."""

NO_CHANCE = -1e9
"""Least score of a slot that is due, above that of all that are not."""


def halving_schedule(considered: int, simulations: int) -> np.ndarray:
    """int32[considered + 1, simulations]: the visits that a slot has had when it is due.

    The row is how many slots are considered, the column the simulation.
    """
    return np.array([halving_dues(slots, simulations) for slots in range(considered + 1)], np.int32)


def halving_dues(considered: int, simulations: int) -> list[int]:
    """A row of `halving_schedule`: equal shares of the simulations for each halving of the slots,
    down to two."""
    if considered <= 1:
        return list(range(simulations))
    halvings, left, had, dues = math.ceil(math.log2(considered)), considered, 0, []
    while len(dues) < simulations:
        # At least a round, even where the simulations end in the middle of it.
        for _ in range(max(1, simulations // (halvings * left))):
            dues.extend([had] * left)
            had += 1
        # The last two share whatever simulations are left.
        left = max(2, left // 2)
    return dues[:simulations]


def visits_due(visits: jax.Array, legal: jax.Array, schedule: np.ndarray | jax.Array) -> jax.Array:
    """int32[B]: the visits that a slot of the root has had when it is due.

    Args:
      visits: int32[B], of the root so far, one of them before any of its slots.
      legal: bool[B, A].
      schedule: `halving_schedule`.
    """
    considered = jnp.minimum(legal.sum(axis=1), len(schedule) - 1)
    return jnp.asarray(schedule)[considered, visits - 1]


def expected_values(node: Node) -> jax.Array:
    """float32[B, A]: expected rewards of all slots: Q-values where they are visited, elsewhere the
    mean of the node's raw value and of those Q-values (appendix D of the paper)."""
    is_seen = node.slot_visits > 0
    prior = jnp.maximum(jax.nn.softmax(node.logits, axis=1), jnp.finfo(node.logits.dtype).tiny)
    seen = jnp.where(is_seen, prior, 0.0)
    share = jnp.maximum(seen.sum(axis=1), jnp.finfo(seen.dtype).tiny)
    mean = (seen * node.slot_qvalues).sum(axis=1) / share
    mixed = (node.raw_value + (node.visits - 1) * mean) / node.visits
    return jnp.where(is_seen, node.slot_qvalues, mixed[:, None])


def completed_values(node: Node, config: SearchConfig) -> jax.Array:
    """float32[B, A]: scaled `expected_values` of all slots, in logits.

    `mctx.qtransform_completed_by_mix_value` (section 5), written out here because sums and maxima
    of integers are slow on a CPU: a node has one visit more than its slots together, and the rest
    is done in floats.
    """
    values = expected_values(node)
    most = node.slot_visits.astype(jnp.float32).max(axis=1, keepdims=True)
    scale = config.value_scale * (config.visit_offset + most)
    if not config.rescale_values:
        return scale * values
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    return scale * (values - low) / jnp.maximum(high - low, config.spread)


def best_due(
    node: Node,
    completed: jax.Array,
    due: jax.Array,
    *,
    legal: jax.Array,
    gumbel: jax.Array | None = None,
    before: jax.Array | int = 0,
) -> jax.Array:
    """int32[B]: of the legal slots of the root that are due, that of the highest score.

    Args:
      node: the root.
      completed: float32[B, A], scaled values of its slots, visited or not.
      due: int32[B], the visits of the slots that are due.
      legal: bool[B, A].
      gumbel: float32[B, A], the draws of the search; None for none.
      before: int32[B, A], visits that the search began with, which do not count.
    """
    # A slot that is due beats all others, however low its score.
    score = root_score(node.logits, completed, 0.0 if gumbel is None else gumbel)
    is_due = legal & (node.slot_visits - before == due[:, None])
    return first_largest(jnp.where(is_due, jnp.maximum(score, NO_CHANCE), -jnp.inf))


def root_score(logits: jax.Array, completed: jax.Array, gumbel: jax.Array | float) -> jax.Array:
    """float32[B, A]: scores of the slots of the root; see `best_due`."""
    return gumbel + (logits - logits.max(axis=1, keepdims=True)) + completed


class Selection(NamedTuple):
    """The choices of a search: at the root, below it, and in the end."""

    at_root: Callable[[Node, Any, jax.Array], jax.Array]
    """(node, visits before the search, visits of slots that are due) -> slot int32[B]."""
    below: Callable[[Node], jax.Array]
    """node -> slot int32[B]."""
    result: Callable[[Node, Any], tuple[jax.Array, jax.Array]]
    """(node, visits before the search) -> slot int32[B], policy float32[B, A]."""


def select_by_halving(
    config: SearchConfig, legal: jax.Array | None = None, gumbel: jax.Array | None = None
) -> Selection:
    """The choices of Gumbel search: the slots of the highest score are considered and halved.

    Halving counts the visits of this search alone, while values and scores know all.

    Args:
      config: weighs values.
      legal: bool[B, A], slots of the root; by default those that are not MASKED.
      gumbel: float32[B, A], the draws of the search; None for none.
    """

    def allowed(node: Node) -> jax.Array:
        return node.logits > MASKED if legal is None else legal

    def best(node: Node, before: Any, due: jax.Array) -> jax.Array:
        completed = completed_values(node, config)
        return best_due(node, completed, due, legal=allowed(node), gumbel=gumbel, before=before)

    def result(node: Node, before: Any) -> tuple[jax.Array, jax.Array]:
        # The survivors of the last halving are those of the most visits in this search.
        slot = best(node, before, (node.slot_visits - before).max(axis=1))
        improved = node.logits + completed_values(node, config)
        return slot, jax.nn.softmax(mask_logits(improved, allowed(node)), axis=1)

    return Selection(best, lambda node: slot_below(node, completed_values(node, config)), result)


def mask_logits(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """float32[B, A]: logits less the largest of their board, MASKED where not legal."""
    largest = jnp.where(legal, logits, MASKED).max(axis=1, keepdims=True)
    return jnp.where(legal, logits - largest, MASKED)


def slot_below(node: Node, completed: jax.Array) -> jax.Array:
    """int32[B]: the slot whose share of the visits lags furthest behind the improved policy, or
    behind the prior where that is an opponent's policy.

    Args:
      completed: float32[B, A], scaled values of the node's slots, visited or not.
    """
    if node.is_modelled is not None:
        completed = jnp.where(node.is_modelled[:, None], 0.0, completed)
    share = node.slot_visits.astype(jnp.float32) / node.visits[:, None]
    return first_largest(jax.nn.softmax(node.logits + completed, axis=1) - share)


def first_largest(scores: jax.Array) -> jax.Array:
    """int32[B]: the first of the largest of scores [B, A], none of them NaN.

    A compiler that works the scores out once for the maximum and once for the comparison may round
    them in two ways, so that none equals the maximum. Then the first that all but equals it counts.
    """
    size = scores.shape[1]
    slots = jax.lax.broadcasted_iota(jnp.float32, scores.shape, 1)  # Exact, and faster than int32.
    largest = scores.max(axis=1, keepdims=True)
    # Slots that are near come after all that are equal.
    later = jnp.where(_is_near(scores, largest), size + slots, 2 * size)
    place = jnp.where(scores == largest, slots, later)
    first = place.min(axis=1).astype(jnp.int32)
    return jnp.where(first < size, first, first - size)


def are_largest(scores: jax.Array) -> jax.Array:
    """bool[..., A]: which of scores [..., A] are the largest, none of them NaN; where none equals
    the largest (see `first_largest`), those that all but equal it."""
    largest = scores.max(axis=-1, keepdims=True)
    is_equal = scores == largest
    return jnp.where(is_equal.any(axis=-1, keepdims=True), is_equal, _is_near(scores, largest))


def _is_near(scores: jax.Array, largest: jax.Array) -> jax.Array:
    return scores >= largest - _ROUNDING * (1 + jnp.abs(largest))
