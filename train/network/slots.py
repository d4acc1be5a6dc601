"""Gathers the logits of one board's slots from policy planes over its cells."""

import chex
import jax
import jax.numpy as jnp

from train.game import (
    PLAYS_PER_STONE,
    State,
    fusion_barrier,
    in_setup,
    legal_slots,
    own_cells,
    take,
)

POLICY_PLANES = PLAYS_PER_STONE + 1
MASKED = jnp.finfo(jnp.float32).min
"""Logit of an illegal slot: finite, so that a softmax over illegal slots alone stays finite."""


def slot_logits(policy: jax.Array, state: State, legal: jax.Array | None = None) -> jax.Array:
    """float32[A] logits of one board's slots from its policy planes, MASKED where illegal.

    In play the slots of each of the mover's stones read the first 52 planes at the stone's cell; in
    setup slot i reads the last plane at cell i.

    Args:
      policy: float32[grid, grid, 53].
      state: one board.
      legal: bool[A], the state's legal slots, if they are known already.
    """
    chex.assert_shape(policy, (state.grid, state.grid, POLICY_PLANES))
    if legal is None:
        legal = legal_slots(state)
    return jnp.where(legal, _gather(policy, state), MASKED)


def reply_logits(policy: jax.Array, after: State) -> jax.Array:
    """float32[A] logits of the slots of the position after a ply, from planes made before it.

    Only slots that the phase of the game does not use are MASKED: which of the others are legal
    depends on the ply, which the planes do not show.
    """
    chex.assert_shape(policy, (after.grid, after.grid, POLICY_PLANES))
    plays = after.position.stones.shape[1] * PLAYS_PER_STONE
    last = jnp.where(in_setup(*after), after.grid**2, plays)
    return jnp.where(jnp.arange(after.num_slots) < last, _gather(policy, after), MASKED)


def _gather(policy: jax.Array, state: State) -> jax.Array:
    """[A]: each slot's logit, read at the cell where the slot acts.

    plays:   stone 0: planes 0 .. 51 at its cell | stone 1: planes 0 .. 51 at its cell | ... | zeros
    places:  plane 52 at cell 0, at cell 1, ... | zeros
    """
    grid = policy.shape[0]
    flat = policy.reshape(grid * grid, POLICY_PLANES)
    # Without the barrier XLA fuses their computation into the gather and repeats it for each slot.
    cells, is_setup = fusion_barrier(
        (own_cells(state.position), in_setup(*state)),
        token=state.position.ply < 0,
    )
    slots = state.num_slots
    play = take(flat, jnp.maximum(cells, 0), width=PLAYS_PER_STONE).reshape(-1)
    place = flat[:, PLAYS_PER_STONE]
    play, place = (jnp.pad(x, (0, slots - x.shape[0])) for x in (play, place))
    return jnp.where(is_setup, place, play)
