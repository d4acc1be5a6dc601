"""A run's replay: where it lies, what is written to it, what is drawn from it.

Rows lie with the boards that played them, so writing and sampling transfer nothing; or a CPU device
keeps and samples them in the host's memory.

B boards, T plies of an iteration, R rows of the replay, S steps of an iteration, N samples.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from train.config import RunConfig
from train.data import replay
from train.data.replay import ReplayState, Sample, Trajectory
from train.loop.memory import HOST
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    device_key,
    shapes_of,
)
from train.runtime.errors import UsageError
from train.runtime.memory import CompiledFunction
from wallgo_jax.game.state import Variant

_SPECS: Any = ReplayState._make((ROWS_BY_BOARD, ROWS_BY_BOARD, EVERYWHERE, BY_BOARD))
_VALIDATION_SALT = 2**31 - 3
"""Folded into the key of an iteration's first step."""


class FinishedPlies(NamedTuple):
    """Number of plies that can be sampled, int32[]."""

    all: jax.Array
    least: jax.Array  # on the device that has the fewest
    newest: jax.Array  # of games that ended in this iteration, on the device that has the fewest


class RunReplay:
    """The functions of a run's replay.

    Attributes:
      host: the CPU device that keeps and samples it; None where the devices of the run do.
      like: shapes of the replay, and where they lie.
      init: makes an empty one of R rows, a multiple of T, so that the rows of an iteration never
        wrap round the end of the ring.
    """

    def __init__(
        self, config: RunConfig, devices: Devices, plies: Trajectory, variants: Variant
    ) -> None:
        """Jit the functions.

        Args:
          config: the run.
          devices: of the run.
          plies: shapes of the plies [T, B] of an iteration.
          variants: [B], what each board plays.

        Raises:
          UsageError: several processes cannot share a host's replay.
        """
        self._config, self._devices = config, devices
        self.host = jax.local_devices(backend="cpu")[0] if config.replay.memory == HOST else None
        if self.host is not None and jax.process_count() > 1:
            raise UsageError("replay.memory = 'host' is for one process")
        at: Any = devices.shardings(_SPECS)
        counts_at: Any = devices.sharding(EVERYWHERE)
        if self.host is not None:
            at = counts_at = SingleDeviceSharding(self.host)
        options = config.selfplay
        rows = -(-config.replay.positions // (options.boards * options.plies)) * options.plies
        # Made in parts, each on its device: one device may be too small for the whole.
        self.init = jax.jit(functools.partial(replay.init, rows, plies), out_shardings=at)
        self.like: ReplayState = shapes_of(jax.eval_shape(self.init), at)
        self._writing = CompiledFunction(
            jax.jit(self._write, donate_argnums=0, out_shardings=(at, counts_at)),
            lambda: (self.like, self._to_host(plies)),
        )
        if self.host is not None:
            keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), config.learner.steps))
            drawn_by = self.like, *self._to_host((variants, keys))
            self._drawn_by = *drawn_by, np.int32(0)
            self._draw = CompiledFunction(jax.jit(self.batch_of_step), lambda: self._drawn_by)
            self._held_out = CompiledFunction(jax.jit(self.held_out_batch), lambda: drawn_by)

    def write(
        self, replay_state: ReplayState, plies: Trajectory
    ) -> tuple[ReplayState, FinishedPlies]:
        """Write plies [T, B]; the replay is consumed."""
        return self._writing(replay_state, self._to_host(plies))

    def batches(
        self, replay_state: ReplayState, variant: Variant, keys: jax.Array
    ) -> Callable[[int], Any]:
        """The batches of an iteration's steps by index, from keys [S], on the devices that learn:
        those of a host's replay, or the replay itself, which a step there samples."""
        if self.host is None:
            return lambda index: replay_state
        drawn_by = self._to_host((variant, keys))
        return lambda index: self._spread(self._draw(replay_state, *drawn_by, np.int32(index)))

    def held_out(self, replay_state: ReplayState, variant: Variant, keys: jax.Array) -> Any:
        """As `batches`, for the `held_out_batch` of an iteration."""
        if self.host is None:
            return replay_state
        return self._spread(self._held_out(replay_state, *self._to_host((variant, keys))))

    def batch_like(self) -> Any:
        """Shapes of what a step learns from: of a batch, or of the devices' replay."""
        if self.host is None:
            return self.like
        return self._devices.like(jax.eval_shape(self.batch_of_step, *self._drawn_by), BY_BOARD)

    def compile(self) -> int:
        """Compile all; returns the bytes that writing takes on a device of those that learn."""
        written = self._writing.bytes
        if self.host is None:
            return written
        _ = self._draw.compiled, self._config.learner.validation_every and self._held_out.compiled
        return 0

    def sample(
        self,
        replay_state: ReplayState,
        variant: Variant,
        key: jax.Array,
        *,
        newest: int | None = None,
    ) -> Sample:
        """Draw a batch [N], with what the losses read.

        Devices that keep the replay draw equally many samples, so a ply is as likely as any other
        of its device. `newest` is that of `replay.sample`.
        """
        config, devices = self._config, self._devices
        draw = functools.partial(
            replay.sample,
            size=config.learner.batch // (devices.count if self.host is None else 1),
            has_reply=config.network.reply,
            td_steps=config.learner.td_steps,
            newest=newest,
        )
        if self.host is not None:
            # The key of the first device, so that one device draws the same from either memory.
            return draw(replay_state, variant, jax.random.fold_in(key, 0))
        return devices.per_device(
            lambda replay_state, variant, key: draw(replay_state, variant, device_key(key)),
            (_SPECS, BY_BOARD, EVERYWHERE),
            BY_BOARD,
        )(replay_state, variant, key)

    def batch_of_step(
        self, replay_state: ReplayState, variant: Variant, keys: jax.Array, index: jax.Array
    ) -> Sample:
        """Draw the batch of a step, from the first half of its key."""
        return self.sample(replay_state, variant, jax.random.split(keys[index])[0])

    def held_out_batch(
        self, replay_state: ReplayState, variant: Variant, keys: jax.Array
    ) -> Sample:
        """Draw a batch of games that ended in this iteration, which no step has learned from yet;
        `keys` are those of its steps."""
        key, newest = jax.random.fold_in(keys[0], _VALIDATION_SALT), self._config.selfplay.plies
        return self.sample(replay_state, variant, key, newest=newest)

    def _write(
        self, replay_state: ReplayState, plies: Trajectory
    ) -> tuple[ReplayState, FinishedPlies]:
        written = replay.add(replay_state, plies)
        devices = self._devices.count if self.host is None else 1

        def by_device(plies: jax.Array) -> jax.Array:
            return plies.reshape(devices, -1).sum(axis=1, dtype=jnp.int32)

        counts = by_device(written.finished)
        newest = by_device(replay.newly_finished(written, self._config.selfplay.plies))
        return written, FinishedPlies(counts.sum(dtype=jnp.int32), counts.min(), newest.min())

    def _to_host(self, tree: Any) -> Any:
        """Copy arrays, or shapes of them, to the host's device where that keeps the replay."""
        if self.host is None:
            return tree
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(tree)):
            return shapes_of(tree, SingleDeviceSharding(self.host))
        # JAX 0.12 copies what lies on several devices by way of NumPy, which the guard refuses.
        with jax.transfer_guard_device_to_host("allow"):
            return jax.device_put(tree, self.host)

    def _spread(self, batch: Sample) -> Sample:
        """Copy a host's batch to the devices that learn from it."""
        # By way of NumPy: to spread a device's array over several compiles a program an array.
        # The batch is in the host's memory already: this is no read from an accelerator.
        return jax.device_put(jax.device_get(batch), self._devices.sharding(BY_BOARD))
