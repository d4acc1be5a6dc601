"""The replay of a run, compiled for the memory that holds it: the devices' or the host's."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jax.stages import Compiled

from train.config import RunConfig
from train.data import replay
from train.data.replay import ReplayState, Sample, Trajectory
from train.runtime.ahead import Ahead
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    device_key,
)
from train.runtime.errors import UsageError
from wallgo_jax.game.state import Variant

HOST = "host"
"""The `replay.memory` that is not the devices'."""


class FinishedPlies(NamedTuple):
    """Number of plies that can be sampled, int32[]."""

    all: jax.Array
    least: jax.Array  # on the device that has the fewest


class ReplayPrograms(NamedTuple):
    """The replay where the config keeps it."""

    like: ReplayState
    """Shapes, and where they lie."""
    init: Callable[[], ReplayState]
    """An empty replay."""
    place: Callable[[ReplayState], ReplayState]
    """Takes a replay of NumPy arrays, such as a checkpoint's."""
    add: Callable[[ReplayState, Trajectory], tuple[ReplayState, FinishedPlies]]
    """Consumes the replay."""
    compile_add: Callable[[], int]
    """Compiles `add`, which its first call does otherwise; returns the bytes that it takes on one
    device in addition to its arguments."""
    sample_like: Callable[[], Sample]
    """Shapes of a batch, and how it lies on the devices. Where sampling is a program of its own,
    this compiles it."""
    sample: Callable[[ReplayState, Variant, jax.Array], Sample]
    """(replay, variant [B], key) -> a batch [N], spread over the devices. The devices' replay is
    sampled inside the learner's program, the host's by a program of the CPU, whose variant and key
    must lie where `beside` puts them."""
    beside: Callable[[Any], Any]
    """Copies arrays, or shapes of them, to where a host's replay is sampled."""


def replay_rows(config: RunConfig) -> int:
    """R: a multiple of T, so that the rows of an iteration never wrap round the end of the ring."""
    boards, plies = config.selfplay.boards, config.selfplay.plies
    return -(-config.replay.positions // (boards * plies)) * plies


def steps_due(config: RunConfig, found: FinishedPlies) -> int:
    """Number of steps of an iteration that ends with so many finished plies, read by the host.

    It is `learner.steps`, but fewer at the start of a run, where the few finished games are the
    short ones: a ply is not drawn more often in an iteration than new plies are in all. One step is
    taken as soon as each device has a finished game.
    """
    if found.least == 0:
        return 0
    played = config.selfplay.boards * config.selfplay.plies
    return min(max(config.learner.steps * int(found.all) // played, 1), config.learner.steps)


def make_replay_programs(
    config: RunConfig, like: Trajectory, variants: Variant, devices: Devices
) -> ReplayPrograms:
    """Make the replay's programs for the memory that the config names; nothing is compiled yet.

    Args:
      config: the run.
      like: shapes [T, B] of what self-play makes in an iteration.
      variants: NumPy arrays [B], what each board plays.
      devices: which learn.

    Raises:
      UsageError: several processes cannot share a host's replay.
    """
    rows = replay_rows(config)
    make = _make_host_replay if config.replay.memory == HOST else _make_device_replay
    return make(config, rows, like, variants, devices)


def _add_and_count(
    replay_state: ReplayState, plies: Trajectory, *, parts: int
) -> tuple[ReplayState, FinishedPlies]:
    """Add plies and count the finished ones, on each of so many parts of the boards."""
    added = replay.add(replay_state, plies)
    counts = added.finished.reshape(parts, -1).sum(axis=1, dtype=jnp.int32)
    return added, FinishedPlies(counts.sum(dtype=jnp.int32), counts.min())


def _sampler(config: RunConfig, size: int) -> Callable[[ReplayState, Variant, jax.Array], Sample]:
    """`replay.sample` of so many plies, with what the config's losses read."""
    return functools.partial(
        replay.sample,
        size=size,
        has_reply=config.network.reply,
        td_steps=config.learner.td_steps,
    )


def _make_device_replay(
    config: RunConfig, rows: int, plies: Trajectory, variants: Variant, devices: Devices
) -> ReplayPrograms:
    """Each device keeps and samples the rows of its own boards.

    Devices draw equally many samples, so a ply is as likely as any other of its device.
    """
    empty = functools.partial(replay.init, rows, plies)
    like = jax.eval_shape(empty)
    # Rows lie with the boards that played them, so adding and sampling transfer nothing.
    specs = jax.tree.map(lambda x: EVERYWHERE, like)._replace(
        plies=jax.tree.map(lambda x: ROWS_BY_BOARD, like.plies),
        outcome=jax.tree.map(lambda x: ROWS_BY_BOARD, like.outcome),
        finished=BY_BOARD,
    )
    shardings = devices.shardings(specs)
    draw = _sampler(config, config.learner.batch // devices.count)
    placed_like, plies_like = devices.like(like, specs), devices.like(plies, ROWS_BY_BOARD)
    add = Ahead(
        jax.jit(
            functools.partial(_add_and_count, parts=devices.count),
            donate_argnums=0,
            out_shardings=(shardings, devices.sharding(EVERYWHERE)),
        )
    )

    def sample_own(replay_state: ReplayState, variant: Variant, key: jax.Array) -> Sample:
        return draw(replay_state, variant, device_key(key))

    def compile_add() -> int:
        add.compile(placed_like, plies_like)
        return add.bytes

    sample = devices.per_device(sample_own, (specs, BY_BOARD, EVERYWHERE), BY_BOARD)

    def sample_like() -> Sample:
        found = jax.eval_shape(sample, like, variants, jax.eval_shape(jax.random.key, 0))
        return devices.like(found, BY_BOARD)

    return ReplayPrograms(
        like=placed_like,
        # Made in parts, each on its device: one device may be too small for the whole.
        init=lambda: jax.jit(empty, out_shardings=shardings)(),
        place=lambda replay_state: devices.place(replay_state, specs),
        add=add,
        compile_add=compile_add,
        sample_like=sample_like,
        sample=sample,
        beside=lambda tree: tree,
    )


def _make_host_replay(
    config: RunConfig, rows: int, plies: Trajectory, variants: Variant, devices: Devices
) -> ReplayPrograms:
    """The host's first CPU device keeps and samples the rows of all boards."""
    if jax.process_count() > 1:
        raise UsageError("replay.memory = 'host' is for one process")
    cpu = jax.local_devices(backend="cpu")[0]
    there = SingleDeviceSharding(cpu)
    empty = functools.partial(replay.init, rows, plies)
    add = Ahead(jax.jit(functools.partial(_add_and_count, parts=1), donate_argnums=0))
    draw = _sampler(config, config.learner.batch)

    def place_like(tree: Any) -> Any:
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), tree)

    like = place_like(jax.eval_shape(empty))

    def sample_all(replay_state: ReplayState, variant: Variant, key: jax.Array) -> Sample:
        # The key of the first device, so that one device draws the same from either memory.
        return draw(replay_state, variant, jax.random.fold_in(key, 0))

    @functools.cache
    def compiled_sample() -> Compiled:
        key = jax.eval_shape(jax.random.key, 0)
        return jax.jit(sample_all).lower(like, *place_like((variants, key))).compile()

    def beside(tree: Any) -> Any:
        is_shape = any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(tree))
        return place_like(tree) if is_shape else jax.device_put(tree, cpu)

    def compile_add() -> int:
        add.compile(like, place_like(plies))
        return 0  # on the devices that learn

    def sample_like() -> Sample:
        return devices.like(compiled_sample().out_info, BY_BOARD)

    def sample(replay_state: ReplayState, variant: Variant, key: jax.Array) -> Sample:
        found = compiled_sample()(replay_state, variant, key)
        # By way of NumPy: to spread a device's array over several compiles a program an array. The
        # batch is in the host's memory already, so this is no read from an accelerator.
        return jax.device_put(jax.device_get(found), devices.sharding(BY_BOARD))

    return ReplayPrograms(
        like=like,
        init=lambda: jax.jit(empty, out_shardings=there)(),
        # Copied: a CPU array may share memory with its source, and `add` consumes this one.
        place=lambda replay_state: jax.device_put(jax.tree.map(np.array, replay_state), cpu),
        add=lambda replay_state, plies: add(replay_state, jax.device_put(plies, cpu)),
        compile_add=compile_add,
        sample_like=sample_like,
        sample=sample,
        beside=beside,
    )
