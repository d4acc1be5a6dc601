"""A search's policy over slots, kept by its likeliest slots: in the replay and in records.

A slots, K slots that are kept.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

KEPT = 32
"""Slots that are kept, at most. A Gumbel search with up to 32 considered actions looks at no more,
and shares what is left among the other legal slots as its network does."""


class BestSlots(NamedTuple):
    """The likeliest slots of a policy [..., A], the likeliest first: leading axes [...]."""

    slot: jax.Array  # uint8[..., K], uint16 beyond 256 slots
    share: jax.Array  # float16[..., K]
    rest: jax.Array  # float16[...], the share of all other slots together


def keep_best(policy: jax.Array, *, kept: int = KEPT) -> BestSlots:
    """The likeliest slots of policies float[..., A], `kept` of them or all A where those are
    fewer."""
    slots = policy.shape[-1]
    share, slot = jax.lax.top_k(policy, min(kept, slots))
    # Summed, not taken from 1: what is rounded off would be a share of no slot.
    others = jnp.put_along_axis(policy, slot, 0, axis=-1, inplace=False)
    return BestSlots(
        slot=slot.astype(jnp.uint8 if slots <= 256 else jnp.uint16),
        share=share.astype(jnp.float16),
        rest=others.sum(axis=-1).astype(jnp.float16),
    )


def all_on(slot: jax.Array) -> BestSlots:
    """The policies that are all on one slot each, int[...]."""
    share = jnp.ones((*slot.shape, 1), jnp.float16)
    return BestSlots(slot[..., None], share, jnp.zeros(slot.shape, jnp.float16))


def spread_out(best: BestSlots, slots: int) -> jax.Array:
    """float16[..., A], the policies over A slots, 0 where `rest` alone tells of a slot."""
    policy = jnp.zeros((*best.rest.shape, slots), best.share.dtype)
    place = best.slot.astype(jnp.int32)
    return jnp.put_along_axis(policy, place, best.share, axis=-1, inplace=False)
