"""Batches to learn from: of a replay, on the devices or in the host's memory, or of recorded games.

B boards, S steps of an iteration, N samples.
"""

import functools
from typing import Any

import jax
import numpy as np

from train.data import replay as replay_lib
from train.data.replay import ReplayState, Sample
from train.loop.tables import REPLAY_SPECS, LearnTables, ReplayPlace
from train.runtime.devices import BY_BOARD, EVERYWHERE, constrained, device_key

_VALIDATION_SALT = 2**31 - 3
"""Folded into the key of an iteration's first step."""


@jax.named_scope("replay")
def sample(
    tables: LearnTables, source: Any, variant: Any, key: jax.Array, *, newest: int | None = None
) -> Sample:
    """Draw a batch [N] of a replay, or of `RecordedPositions`, with what the losses read.

    Devices that keep the replay draw equally many samples, so a ply is as likely as any other of
    its device. `newest` is that of `replay.sample`.
    """
    place, batch, has_reply = tables.place, tables.learner.batch, tables.network.reply
    if not isinstance(source, ReplayState):
        td_steps = tables.learner.td_steps
        drawn = source.sample(key, batch, has_reply=has_reply, td_steps=td_steps)
        return constrained(drawn, place.devices.sharding(BY_BOARD))
    draw = functools.partial(
        replay_lib.sample,
        size=batch // place.parts,
        has_reply=has_reply,
        td_steps=tables.learner.td_steps,
        newest=newest,
    )
    if place.host is not None:
        # The key of the first device, so that one device draws the same from either memory.
        return draw(source, variant, jax.random.fold_in(key, 0))
    return place.devices.per_device(
        lambda source, variant, key: draw(source, variant, device_key(key)),
        (REPLAY_SPECS, BY_BOARD, EVERYWHERE),
        BY_BOARD,
    )(source, variant, key)


def draw(tables: LearnTables, source: Any, drawn_by: Any, index: int) -> Sample:
    """Draw the batch of a step from a host's replay, and copy it to the devices that learn."""
    return spread(tables.place, draw_batch(tables, source, *drawn_by, np.int32(index)))


def spread(place: ReplayPlace, batch: Sample) -> Sample:
    """Copy a host's batch to the devices that learn from it."""
    # By way of NumPy: to spread a device's array over several compiles a program an array.
    # The batch is in the host's memory already: this is no read from an accelerator.
    return jax.device_put(jax.device_get(batch), place.devices.sharding(BY_BOARD))


@jax.jit
def draw_batch(
    tables: LearnTables, source: Any, variant: Any, keys: jax.Array, index: jax.Array
) -> Sample:
    """The batch of a step, drawn by the first half of its key."""
    return sample(tables, source, variant, jax.random.split(keys[index])[0])


@jax.jit
def draw_held_out(tables: LearnTables, source: Any, variant: Any, keys: jax.Array) -> Sample:
    """A batch of games that ended in this iteration, which no step has learned from yet."""
    key = jax.random.fold_in(keys[0], _VALIDATION_SALT)
    return sample(tables, source, variant, key, newest=tables.newest)


def to_host(place: ReplayPlace, tree: Any) -> Any:
    """Copy arrays to the host's device where that keeps the replay."""
    if place.host is None:
        return tree
    # JAX 0.12 copies what lies on several devices by way of NumPy, which the guard refuses.
    with jax.transfer_guard_device_to_host("allow"):
        return jax.device_put(tree, place.host)
