"""From policy planes over the cells to the slots of one board."""

import jax
import jax.numpy as jnp

from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import PLAYS_PER_STONE
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

POLICY_PLANES = PLAYS_PER_STONE + 1
MASKED = jnp.finfo(jnp.float32).min
"""Logit of an illegal slot: finite, so that a softmax with nothing legal stays finite."""


def slot_logits(policy: jax.Array, state: State, legal: jax.Array | None = None) -> jax.Array:
    """float32[A] logits of one board's slots from its policy planes, MASKED where illegal.

    The 52 plays are gathered at the mover's stones; in setup the last plane is read cell by cell.

    Args:
      policy: float32[grid, grid, 53].
      legal: bool[A], the state's legal slots, where they are known already.
    """
    if legal is None:
        legal = actions.legal_slots(state)
    return jnp.where(legal, _gather(policy, state), MASKED)


def reply_logits(policy: jax.Array, after: State) -> jax.Array:
    """float32[A] logits of the slots of the position after a ply, from planes made before it.

    Only slots that mean nothing in its phase are MASKED: which of the others are legal hangs on
    the ply that the planes do not know.
    """
    plays = after.position.stones.shape[1] * PLAYS_PER_STONE
    last = jnp.where(actions.in_setup(*after), after.grid**2, plays)
    return jnp.where(jnp.arange(after.num_slots) < last, _gather(policy, after), MASKED)


def _gather(policy: jax.Array, state: State) -> jax.Array:
    """[A]: the planes read where each slot acts."""
    grid = policy.shape[0]
    flat = policy.reshape(grid * grid, POLICY_PLANES)
    # Without a border they are worked out anew for each of the slots.
    cells, in_setup = fusion_barrier(
        (actions.own_cells(state.position), actions.in_setup(*state)),
        token=state.position.ply < 0,
    )
    slots = state.num_slots
    play = flat[jnp.maximum(cells, 0), :PLAYS_PER_STONE].reshape(-1)
    place = flat[:, PLAYS_PER_STONE]
    play, place = (jnp.pad(x, (0, slots - x.shape[0])) for x in (play, place))
    return jnp.where(in_setup, place, play)
