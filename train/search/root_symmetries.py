"""The root as it looks from several sides: a mean of evaluations over symmetries of the square.

A network is not symmetric, so turned copies of a position get other logits and values. Their mean,
mapped back, is a better evaluation than any one of them, as an ensemble's is (KataGo's
`rootNumSymmetriesToSample`). A search evaluates its root once and its leaves many times, so only
the root is worth it.

B boards, S symmetries, A slots, P players.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.evaluator import Evaluation, Evaluator, legal_slots
from wallgo_jax.board.geometry import INVERSE_SYMMETRIES, NUM_SYMMETRIES
from wallgo_jax.game import symmetry as symmetry_lib
from wallgo_jax.game.state import State
from wallgo_jax.game.terrain import BoardAnalysis

ORDER = (0, 2, 1, 3, 4, 5, 6, 7)
"""The symmetries as they are taken: the first 1, 2, 4 and 8 are groups, so the mean over them is
the same for a board and for that board turned by any of them."""


@functools.cache
def make_symmetric_evaluator(evaluate: Evaluator, symmetries: int) -> Evaluator:
    """An evaluator that gives the mean logits and values of an evaluator over turned copies.

    It evaluates all copies in one batch of B * S boards. For one symmetry it is the evaluator
    itself.

    Args:
      evaluate: evaluates the copies.
      symmetries: S, how many of ORDER, 1 to 8.
    """
    if not 1 <= symmetries <= NUM_SYMMETRIES:
        raise ValueError(f"symmetries ({symmetries}) must be from 1 to {NUM_SYMMETRIES}")
    if symmetries == 1:
        return evaluate
    there = np.asarray(ORDER[:symmetries], np.int32)
    back = np.asarray(INVERSE_SYMMETRIES, np.int32)[there]

    def evaluate_turned(
        variables: Any, states: State, analysis: BoardAnalysis | None = None
    ) -> Evaluation:
        turned = jax.vmap(_turn_by(there))(states)
        merged = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), turned)
        found = evaluate(variables, merged)
        by_copy = jax.tree.map(lambda x: x.reshape(-1, symmetries, *x.shape[1:]), found)
        logits = jax.vmap(_turn_policies_by(back))(by_copy.logits, states)
        legal = legal_slots(states, analysis)
        # A sum of masked logits would overflow.
        mean = jnp.where(legal[:, None], logits, 0.0).mean(axis=1)
        return Evaluation(jnp.where(legal, mean, MASKED), by_copy.value.mean(axis=1))

    return evaluate_turned


def _turn_by(symmetries: np.ndarray) -> Any:
    """state -> its turned copies [S]."""
    return lambda state: jax.vmap(symmetry_lib.turn_state, in_axes=(None, 0))(
        state, jnp.asarray(symmetries)
    )


def _turn_policies_by(symmetries: np.ndarray) -> Any:
    """(policies [S, A], the state before it was turned) -> each policy turned by its symmetry."""

    def turn(policies: jax.Array, state: State) -> jax.Array:
        in_setup = symmetry_lib.phase_of(state)
        return jax.vmap(symmetry_lib.turn_policy, in_axes=(0, 0, None, None))(
            policies, jnp.asarray(symmetries), in_setup, state.variant
        )

    return turn
