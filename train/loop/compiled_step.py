"""Compiles the functions of an iteration for a run's devices, within the memory that they have.

Runs that differ in seeds and numbers alone share what is compiled.

B boards, T plies of an iteration, S steps of an iteration, N samples.
"""

import copy
import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jax.stages import Traced

from train.config import RunConfig
from train.data.replay import ReplayState, Sample, Trajectory
from train.data.selfplay import Boards
from train.learning.learner import LearnerState, StepMetrics
from train.learning.losses import Losses
from train.loop import train_step
from train.loop.memory import HOST, check_held, check_programs, check_sizes_of_run
from train.loop.numbers import numbers_of, unchecked, without_numbers
from train.loop.selfplay import Stage, stage_at, stages_from, variables_of
from train.loop.start import load_opponent
from train.loop.train_step import (
    REPLAY_SPECS,
    FinishedPlies,
    Keys,
    Parts,
    SelfPlayFigures,
    Shared,
    TrainState,
    seed_of,
)
from train.network import Variables, cast_weights
from train.players.basic import Player
from train.runtime.compiled import CompiledFunction
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    Devices,
    backend,
    devices_for,
    set_gpu_flags,
)
from train.runtime.errors import UsageError
from train.runtime.memory import tree_bytes
from wallgo_jax.game.state import Variant

State = TypeVar("State")
Batch = TypeVar("Batch")
Metrics = TypeVar("Metrics")

_MOST_SHARED = 4
"""Configs whose functions are kept for the next run: a sweep goes through few."""
_FIRST = np.int32(0)


class CompiledStep:
    """The functions that a run's iterations call, jitted; each is compiled once.

    Attributes:
      config: the run.
      parts: what the functions are made of.
      like: shapes of a state, and where they lie.
      learning: `learn_step`, or `learn_steps` on accelerators.
    """

    def __init__(self, config: RunConfig, devices: Devices, opponent: Player | None = None) -> None:
        """Jit the functions; nothing is compiled yet.

        Args:
          config: the run.
          devices: that share boards and samples.
          opponent: the frozen one of self-play.

        Raises:
          UsageError: several processes cannot share a host's replay.
        """
        self._host = _host_of(config)
        has_host_replay = self._host is not None
        self.parts = parts = Parts(_shape_of(config), devices, opponent, has_host_replay)
        self._set_run(config)
        self._opponent_weights = None
        weights = None if opponent is None else opponent.trained
        if weights is not None:
            self._opponent_weights = cast_weights(weights.variables, weights.config.network)

        everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
        replay_at: Any = devices.shardings(REPLAY_SPECS)
        if self._host is not None:
            replay_at = SingleDeviceSharding(self._host)
        state_at: Any = TrainState._make((everywhere, by_board, None, everywhere))
        first = functools.partial(train_step.first_state, parts)
        empty = functools.partial(train_step.empty_replay, parts)
        held = _like(jax.eval_shape(empty), replay_at)
        state = _like(jax.eval_shape(first, self._seed), state_at)
        self.like: TrainState = state._replace(replay_state=held)

        self._init = jax.jit(first, out_shardings=state_at)
        # Made in parts, each on its device: one device may be too small for the whole.
        self._init_replay = jax.jit(empty, out_shardings=replay_at)
        self._keys = jax.jit(
            functools.partial(train_step.iteration_keys, parts), out_shardings=everywhere
        )
        self._self_play: dict[Stage, CompiledFunction] = {}
        counts_at = replay_at if has_host_replay else everywhere
        write = functools.partial(train_step.write, parts)
        self._writing = CompiledFunction(
            jax.jit(write, donate_argnums=0, out_shardings=(replay_at, counts_at)),
            lambda: (held, self._to_replay_device(parts.plies)),
        )
        batch = functools.partial(train_step.host_batch, parts)
        self._sampling = CompiledFunction(jax.jit(batch), self._sample_like)
        batch = functools.partial(train_step.validation_batch, parts)
        self._held_out = CompiledFunction(jax.jit(batch), lambda: self._sample_like()[:-1])
        validate = jax.jit(functools.partial(train_step.validate, parts), out_shardings=everywhere)
        self._validating = CompiledFunction(validate, self._validate_like)
        # XLA runs the gradients of convolutions many times slower inside a loop on a CPU, and a
        # host's replay is sampled between two steps: there each step is a call.
        self._is_one_call = not has_host_replay and backend() != "cpu"
        learn = train_step.learn_steps if self._is_one_call else train_step.learn_step
        learn = functools.partial(learn, parts)
        # Weights and optimizer state are updated in place.
        jitted = jax.jit(learn, donate_argnums=1, out_shardings=everywhere)
        self.learning = CompiledFunction(jitted, self._learn_like)

    def _set_run(self, config: RunConfig) -> None:
        self.config = config
        self._seed, self._numbers = seed_of(config), numbers_of(config)
        self._compiled: set[Stage] = set()

    def of_run(self, config: RunConfig) -> "CompiledStep":
        """The same functions for another run, which differs in its seed and its numbers alone."""
        other = copy.copy(self)
        other._set_run(config)
        return other

    @functools.cached_property
    def variant(self) -> Variant:
        """[B], what each board plays, on the devices."""
        return self._place(self.parts.variants, BY_BOARD)

    @functools.cached_property
    def _placed_opponent(self) -> Any:
        return self._place(self._opponent_weights, EVERYWHERE)

    def _place(self, tree: Any, spec: Any) -> Any:
        return self.parts.devices.place(tree, jax.tree.map(lambda x: spec, tree))

    def init(self, variables: Variables | None = None) -> TrainState:
        """The first state, with random weights or with these."""
        return self._init(self._seed, variables)._replace(replay_state=self._init_replay())

    def place(self, state: TrainState) -> TrainState:
        """Put a state of NumPy arrays, such as a checkpoint's, where an iteration takes it."""

        def put(leaf: Any, like: jax.ShapeDtypeStruct) -> jax.Array:
            # Copied: a CPU array may share memory with its source, and an iteration consumes it.
            return jax.make_array_from_callback(
                like.shape, like.sharding, lambda index: np.array(leaf[index])
            )

        return jax.tree.map(put, state, self.like)

    def keys(self, iteration: int) -> Keys:
        """The keys of an iteration, counted from 0."""
        return self._keys(self._seed, jnp.int32(iteration))

    def play(
        self, iteration: int, variables: Variables, boards: Boards, key: jax.Array
    ) -> tuple[Boards, Trajectory, SelfPlayFigures]:
        """Play an iteration with these weights on boards [B], which are consumed; results are those
        of `self_play`."""
        inputs = variables_of(self.config, variables, iteration, self._placed_opponent)
        program = self._program_of(stage_at(self.config, iteration))
        return program(self._numbers, inputs, self.variant, boards, key)

    def write(
        self, replay_state: ReplayState, plies: Trajectory
    ) -> tuple[ReplayState, FinishedPlies]:
        """Write plies [T, B] to the replay, which is consumed."""
        return self._writing(replay_state, self._to_replay_device(plies))

    def learn(
        self, learner: LearnerState, replay_state: ReplayState, keys: jax.Array, steps: int
    ) -> tuple[LearnerState, list[StepMetrics]]:
        """Learn for a number of steps, at most S, with keys [S]; the learner is consumed.

        Returns:
          The learner, and what each step saw: metrics of scalars, one a step, or one of arrays [S],
          of which the first belong to the steps.
        """
        shared, seen = Shared(self._numbers, self.variant, keys), []

        def learn_from(learner: LearnerState, batch: Any, index: int) -> tuple[Any, StepMetrics]:
            return self.learning(shared, learner, batch, np.int32(index))

        if self._is_one_call:
            learner, metrics = learn_from(learner, replay_state, steps)
            return learner, [metrics]
        if self._host is None:
            for index in range(steps):
                learner, metrics = learn_from(learner, replay_state, index)
                seen.append(metrics)
            return learner, seen
        sampled_by = self._to_replay_device((self.variant, keys))

        def batch_of(index: int) -> Any:
            batch = self._sampling(replay_state, *sampled_by, np.int32(index))
            return self._spread(batch)

        return learn_ahead(learner, steps, batch_of, learn_from)

    def validate(self, variables: Variables, replay_state: ReplayState, keys: jax.Array) -> Losses:
        """Losses of weights on games that ended in this iteration, before any step has learned from
        them; `keys` are the steps'."""
        batch: Any = replay_state
        if self._host is not None:
            batch = self._held_out(replay_state, *self._to_replay_device((self.variant, keys)))
            batch = self._spread(batch)
        return self._validating(Shared(self._numbers, self.variant, keys), variables, batch)

    def _spread(self, batch: Sample) -> Sample:
        """Copy a host's batch to the devices that learn from it."""
        # By way of NumPy: to spread a device's array over several compiles a program an array.
        # The batch is in the host's memory already: this is no read from an accelerator.
        return jax.device_put(jax.device_get(batch), self.parts.devices.sharding(BY_BOARD))

    def compile(self, iteration: int) -> float:
        """Compile all that an iteration and those after it call, so that none of them waits for the
        compiler.

        Returns:
          Seconds that it took, 0 where all is compiled.

        Raises:
          UsageError: the functions need more memory than a device has.
        """
        if stage_at(self.config, iteration) in self._compiled:
            return 0.0
        started, stages = time.perf_counter(), stages_from(self.config, iteration)
        self.keys(iteration)
        if self._host is not None:
            _ = self._sampling.compiled
        plies, written = tree_bytes(self.parts.plies), self._writing.bytes
        learn = self.learning.bytes
        if self.config.learner.validation_every > 0:
            learn = max(learn, self._validating.bytes)
            if self._host is not None:
                _ = self._held_out.compiled
        check_programs(
            self.config,
            self.like,
            plies,
            play=max(self._program_of(stage).bytes for stage in stages) - plies,
            write=written if self._host is None else 0,  # on the devices that learn
            learn=learn,
        )
        self._compiled.update(stages)
        return time.perf_counter() - started

    def trace_play(self, iteration: int) -> Traced:
        """Trace the self-play of an iteration; the devices need not be there."""
        return self._program_of(stage_at(self.config, iteration)).trace()

    def _program_of(self, stage: Stage) -> CompiledFunction:
        if stage not in self._self_play:
            play = functools.partial(train_step.self_play, self.parts, stage)
            jitted = jax.jit(play, donate_argnums=3)
            self._self_play[stage] = CompiledFunction(jitted, self._play_like)
        return self._self_play[stage]

    # What they are compiled for.

    def _play_like(self) -> tuple[Any, ...]:
        like, parts = self.parts.devices.like, self.parts
        weights = variables_of(parts.config, parts.network.shapes, 0, self._opponent_weights)
        return (
            like(numbers_of(parts.config), EVERYWHERE),
            like(weights, EVERYWHERE),
            like(parts.variants, BY_BOARD),
            self.like.boards,
            like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
        )

    def _shared_like(self) -> Shared:
        like, parts = self.parts.devices.like, self.parts
        keys = jax.eval_shape(self._keys, self._seed, _FIRST).learn
        specs: Any = Shared._make((EVERYWHERE, BY_BOARD, EVERYWHERE))
        return like(Shared(numbers_of(parts.config), parts.variants, keys), specs)

    def _sample_like(self) -> tuple[Any, ...]:
        _, *sampled_by = self._shared_like()
        return (self.like.replay_state, *self._to_replay_device(sampled_by), _FIRST)

    def _learn_like(self) -> tuple[Any, ...]:
        batch = self.like.replay_state
        if self._host is not None:
            sample = functools.partial(train_step.host_batch, self.parts)
            sample = jax.eval_shape(sample, *self._sample_like())
            batch = self.parts.devices.like(sample, BY_BOARD)
        return self._shared_like(), self.like.learner, batch, _FIRST

    def _validate_like(self) -> tuple[Any, ...]:
        shared, learner, batch, _ = self._learn_like()
        return shared, learner.player, batch

    def _to_replay_device(self, tree: Any) -> Any:
        """Copy arrays, or shapes of them, to the host's device where that keeps the replay."""
        if self._host is None:
            return tree
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(tree)):
            return _like(tree, SingleDeviceSharding(self._host))
        # JAX 0.12 copies what lies on several devices by way of NumPy, which the guard refuses.
        with jax.transfer_guard_device_to_host("allow"):
            return jax.device_put(tree, self._host)


def make_step(
    config: RunConfig, devices: Devices | None = None, *, opponent: Player | None = None
) -> CompiledStep:
    """Jit the functions of a run, or take those of an earlier run that differs in its seed and its
    numbers alone; nothing is compiled yet.

    Args:
      config: the run.
      devices: that share its boards and samples; None for all of this process that can.
      opponent: the frozen one of self-play; None for the one that the config names, if any.

    Raises:
      UsageError: boards or samples cannot be shared by the devices, the frozen opponent cannot be
        loaded, or arrays need more memory than there is.
    """
    set_gpu_flags(deterministic=config.deterministic, loops_in_graphs=config.loops_in_graphs)
    numbers = {"selfplay_boards": config.selfplay.boards, "learner_batch": config.learner.batch}
    devices = devices_for(**numbers) if devices is None else devices
    devices.check_divides(**numbers)
    check_sizes_of_run(config)
    opponent = opponent or load_opponent(config)
    if opponent is None:
        step = _shared(_shape_of(config), devices, _jax_settings()).of_run(config)
    else:
        step = CompiledStep(config, devices, opponent)
    check_held(config, step.like, tree_bytes(step.parts.plies), devices)
    return step


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(shape: RunConfig, devices: Devices, settings: tuple[Any, ...]) -> CompiledStep:
    del settings
    return CompiledStep(shape, devices)


def _shape_of(config: RunConfig) -> RunConfig:
    """The config of all runs that share functions with this one."""
    plain = RunConfig()
    # Not read by the functions, or an argument of theirs.
    free = ("name", "seed", "evaluation", "checkpoint", "tracking", "start_weights", "init_from")
    return unchecked(without_numbers(config), **{key: getattr(plain, key) for key in free})


def _jax_settings() -> tuple[Any, ...]:
    """What JAX makes other programs by."""
    names = ("enable_x64", "default_matmul_precision", "default_prng_impl", "numpy_dtype_promotion")
    return backend(), *(getattr(jax.config, f"jax_{name}") for name in names)


def _host_of(config: RunConfig) -> Any:
    """The CPU device that keeps and samples the replay; None where the devices of a run do."""
    if config.replay.memory != HOST:
        return None
    if jax.process_count() > 1:
        raise UsageError("replay.memory = 'host' is for one process")
    return jax.local_devices(backend="cpu")[0]


def _like(tree: Any, shardings: Any) -> Any:
    """Shapes of a tree, with a sharding for each array or branch."""

    def shape(sharding: Any, branch: Any) -> Any:
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), branch
        )

    return jax.tree.map(shape, shardings, tree)


def learn_ahead(
    state: State,
    steps: int,
    batch_of: Callable[[int], Batch],
    learn_from: Callable[[State, Batch, int], tuple[State, Metrics]],
) -> tuple[State, list[Metrics]]:
    """Learn from one batch while the next is sampled.

    Args:
      state: consumed by the first step.
      steps: number of batches, each drawn and learned from in its turn.
      batch_of: index -> the batch of a step; works on the host until it returns.
      learn_from: (state, batch, index) -> the next state and what the step saw; only starts the
        work of the devices.

    Returns:
      The last state, and what each step saw.
    """
    seen = []
    batch = batch_of(0) if steps else None
    for index in range(steps):
        assert batch is not None
        state, metrics = learn_from(state, batch, index)
        # Read after the last step: reading here would make each step wait for the one before.
        seen.append(metrics)
        if index + 1 < steps:
            batch = batch_of(index + 1)
        if index:
            # Two batches at most lie on the devices: that of the step under way and the next.
            jax.block_until_ready(seen[index - 1])
    return state, seen
