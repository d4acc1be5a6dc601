"""The functions of an iteration: self-play, the write to the replay, learning.

Each is jitted for a run's devices and compiled once, within the memory that they have. Seeds and
numbers (`train.loop.numbers`) are arguments: runs that differ in nothing else share what is
compiled.

B boards, T plies of an iteration, R rows of the replay, S steps of an iteration, N samples.
"""

import copy
import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jax.stages import Traced

from train.config import RunConfig
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.diversity import OpeningDiversity, opening_diversity
from train.data.replay import ReplayState, Sample, Trajectory
from train.data.selfplay import Boards, SelfPlayMetrics, first_boards, make_selfplay, stagger
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.learning.losses import Losses
from train.loop.memory import HOST, check_held, check_programs
from train.loop.numbers import Numbers, numbers_of, unchecked, with_numbers, without_numbers
from train.loop.selfplay import (
    BoardSums,
    Stage,
    selfplay_of,
    split_coin_key,
    stage_at,
    sum_by_board,
    variables_of,
    variants_of,
)
from train.loop.start import first_key, load_opponent
from train.network import Variables, cast_weights
from train.network.build import network_for, observer_for
from train.players.basic import Player, make_random_search
from train.runtime.devices import (
    AXIS,
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    backend,
    device_key,
    devices_for,
    placed,
    set_gpu_flags,
    shapes_of,
)
from train.runtime.errors import UsageError
from train.runtime.fields import is_off
from train.runtime.memory import CompiledFunction, tree_bytes
from wallgo_jax.game.state import Variant

_MOST_SHARED = 4
"""Configs whose functions are kept for the next run: a sweep goes through few."""
_STAGGER_SALT = 2**31 - 2
"""Folded into the seed for the plies that the first games begin with, as in `first_key`."""
_VALIDATION_SALT = 2**31 - 3
"""Folded into the key of an iteration's first step."""
_STAGGER_PLIES = 64
"""The most plies before a run's first one on a board: about two random games."""
_REPLAY_SPECS: Any = ReplayState._make((ROWS_BY_BOARD, ROWS_BY_BOARD, EVERYWHERE, BY_BOARD))
"""Rows lie with the boards that played them, so writing and sampling transfer nothing."""
_FIRST = np.int32(0)


class TrainState(NamedTuple):
    """Everything that an iteration changes; with the config, everything that resuming needs."""

    learner: LearnerState
    boards: Boards  # [B], games under way
    replay_state: ReplayState
    iterations: jax.Array  # int32, iterations done


class Keys(NamedTuple):
    """The random keys of an iteration."""

    play: jax.Array
    learn: jax.Array  # [S], one for each step


class SelfPlayFigures(NamedTuple):
    """Figures of an iteration on all devices, float32[] where nothing else is said."""

    sums: SelfPlayMetrics
    setups: OpeningDiversity
    openings: OpeningDiversity
    by_board: BoardSums  # float32[B]


class FinishedPlies(NamedTuple):
    """Number of plies that can be sampled, int32[]."""

    all: jax.Array
    least: jax.Array  # on the device that has the fewest
    newest: jax.Array  # of games that ended in this iteration, on the device that has the fewest


class Shared(NamedTuple):
    """What the steps of an iteration share."""

    numbers: Numbers
    variant: Variant  # [B]
    keys: jax.Array  # [S]


class TrainStep:
    """The functions that a run's iterations call.

    Attributes:
      config: the run.
      devices: that share boards and samples.
      network: the one that learns.
      variants: NumPy arrays [B], what each board plays.
      plies: shapes of the plies [T, B] of an iteration, which are the same whoever plays.
      like: shapes of a state, and where they lie.
      learning: a step of learning, or on accelerators all of an iteration.
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
        self._shape, self.devices, self._opponent = _shape_of(config), devices, opponent
        # The CPU device that keeps and samples the replay; None where the devices of the run do.
        self._host = jax.local_devices(backend="cpu")[0] if config.replay.memory == HOST else None
        if self._host is not None and jax.process_count() > 1:
            raise UsageError("replay.memory = 'host' is for one process")
        self.network = network_for(config.network, config.rules.players, size=config.grid_side)
        self.variants = variants_of(config)
        self._set_run(config)
        weights = None if opponent is None else opponent.trained
        self._opponent_weights = None
        if weights is not None:
            self._opponent_weights = cast_weights(weights.variables, weights.config.network)

        everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
        replay_at: Any = devices.shardings(_REPLAY_SPECS)
        if self._host is not None:
            replay_at = SingleDeviceSharding(self._host)
        state_at: Any = TrainState._make((everywhere, by_board, None, everywhere))
        self.plies: Trajectory = devices.like(self._plies_of_random_play(), ROWS_BY_BOARD)
        held = shapes_of(jax.eval_shape(self._empty_replay), replay_at)
        state = shapes_of(jax.eval_shape(self._first_state, self._seed), state_at)
        self.like: TrainState = state._replace(replay_state=held)

        self._init = jax.jit(self._first_state, out_shardings=state_at)
        # Made in parts, each on its device: one device may be too small for the whole.
        self._init_replay = jax.jit(self._empty_replay, out_shardings=replay_at)
        self._keys = jax.jit(self._iteration_keys, out_shardings=everywhere)
        self._self_play: dict[Stage, CompiledFunction] = {}
        counts_at = everywhere if self._host is None else replay_at
        self._writing = CompiledFunction(
            jax.jit(self._write, donate_argnums=0, out_shardings=(replay_at, counts_at)),
            lambda: (held, self._to_replay_device(self.plies)),
        )
        self._sampling = CompiledFunction(jax.jit(self._batch_of_step), self._sample_like)
        self._held_out = CompiledFunction(
            jax.jit(self.validation_batch), lambda: self._sample_like()[:-1]
        )
        self._validating = CompiledFunction(
            jax.jit(self._validate, out_shardings=everywhere), self._validate_like
        )
        # XLA runs the gradients of convolutions many times slower inside a loop on a CPU, and a
        # host's replay is sampled between two steps: there each step is a call.
        self._is_one_call = self._host is None and backend() != "cpu"
        learn = self._learn_steps if self._is_one_call else self._learn_step
        # Weights and optimizer state are updated in place.
        jitted = jax.jit(learn, donate_argnums=1, out_shardings=everywhere)
        self.learning = CompiledFunction(jitted, self._learn_like)

    def _set_run(self, config: RunConfig) -> None:
        self.config = config
        # The data of the seed's key, uint32[...].
        self._seed = np.asarray(jax.random.key_data(jax.random.key(config.seed)))
        self._numbers = numbers_of(config)
        self._compiled: set[Stage] = set()

    def of_run(self, config: RunConfig) -> "TrainStep":
        """The same functions for another run, which differs in its seed and its numbers alone."""
        other = copy.copy(self)
        other._set_run(config)
        return other

    @functools.cached_property
    def variant(self) -> Variant:
        """[B], what each board plays, on the devices."""
        return self.devices.place(self.variants, BY_BOARD)

    @functools.cached_property
    def _placed_opponent(self) -> Any:
        return self.devices.place(self._opponent_weights, EVERYWHERE)

    def init(self, variables: Variables | None = None) -> TrainState:
        """The first state, with random weights or with these."""
        return self._init(self._seed, variables)._replace(replay_state=self._init_replay())

    def place(self, state: TrainState) -> TrainState:
        """Put a state of NumPy arrays, such as a checkpoint's, where an iteration takes it."""
        return placed(state, jax.tree.map(lambda x: x.sharding, self.like))

    def keys(self, iteration: int) -> Keys:
        """The keys of an iteration, counted from 0."""
        return self._keys(self._seed, jnp.int32(iteration))

    def play(
        self, iteration: int, variables: Variables, boards: Boards, key: jax.Array
    ) -> tuple[Boards, Trajectory, SelfPlayFigures]:
        """Play T plies with these weights on boards [B], each device for itself, with one coin for
        all of them; boards and key are consumed.

        Returns:
          The boards as they stand, the plies [T, B] and their figures.
        """
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
        shared = Shared(self._numbers, self.variant, keys)
        if self._is_one_call:
            learner, metrics = self.learning(shared, learner, replay_state, np.int32(steps))
            return learner, [metrics]
        # A host's replay is sampled here, a batch while the devices learn from the one before.
        sampled_by = None if self._host is None else self._to_replay_device(shared[1:])

        def batch_of(index: int) -> Any:
            if sampled_by is None:
                return replay_state
            return self._spread(self._sampling(replay_state, *sampled_by, np.int32(index)))

        batch, seen = batch_of(0) if steps else None, list[StepMetrics]()
        for index in range(steps):
            learner, metrics = self.learning(shared, learner, batch, np.int32(index))
            # Read after the last step: reading here would make each step wait for the one before.
            seen.append(metrics)
            if index + 1 < steps:
                batch = batch_of(index + 1)
            if index and sampled_by is not None:
                # Two batches at most lie on the devices: of the step under way and the next.
                jax.block_until_ready(seen[index - 1])
        return learner, seen

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
        return jax.device_put(jax.device_get(batch), self.devices.sharding(BY_BOARD))

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
        started, later = time.perf_counter(), range(iteration, self.config.iterations)
        stages = {stage_at(self.config, number) for number in later}
        self.keys(iteration)
        if self._host is not None:
            _ = self._sampling.compiled
        plies, written = tree_bytes(self.plies), self._writing.bytes
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
            jitted = jax.jit(functools.partial(self._play, stage), donate_argnums=3)
            self._self_play[stage] = CompiledFunction(jitted, self._play_like)
        return self._self_play[stage]

    def _to_replay_device(self, tree: Any) -> Any:
        """Copy arrays, or shapes of them, to the host's device where that keeps the replay."""
        if self._host is None:
            return tree
        if any(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(tree)):
            return shapes_of(tree, SingleDeviceSharding(self._host))
        # JAX 0.12 copies what lies on several devices by way of NumPy, which the guard refuses.
        with jax.transfer_guard_device_to_host("allow"):
            return jax.device_put(tree, self._host)

    # What is compiled; of the run's numbers it sees which there are, and takes them as arguments.

    def learner(self, numbers: Numbers) -> Learner:
        """The learner of numbers that may be arguments of a function."""
        config = with_numbers(self._shape, numbers)
        return make_learner(
            self.network,
            config.learner,
            total_steps=config.iterations * config.learner.steps,
            observe=observer_for(config.network),
            per_device=lambda prepare: self.devices.per_device(prepare, BY_BOARD, BY_BOARD),
        )

    def _plies_of_random_play(self) -> Trajectory:
        selfplay = make_selfplay(
            make_random_search(),
            SelfPlayConfig(plies=self._shape.selfplay.plies),
            has_root_value=not is_off(self._shape.learner.value_mix),
        )
        boards, key = jax.eval_shape(first_boards, self.variants), jax.random.key(0)
        return jax.eval_shape(selfplay, (), self.variants, boards, key)[1]

    def _first_state(self, seed: jax.Array, variables: Variables | None = None) -> TrainState:
        """All of the first state but the replay, which may lie in the host's memory."""
        key, variant = first_key(seed), jax.tree.map(jnp.asarray, self.variants)
        # Copied, for the first step of learning consumes the state.
        first = self.network.init(key) if variables is None else jax.tree.map(jnp.copy, variables)
        boards = first_boards(variant, has_opponent=self._opponent is not None)
        stagger_key = jax.random.fold_in(jax.random.wrap_key_data(seed), _STAGGER_SALT)
        boards = stagger(variant, boards, stagger_key, plies=_STAGGER_PLIES)
        no_replay: Any = None
        return TrainState(self.learner({}).init(first), boards, no_replay, jnp.zeros((), jnp.int32))

    def _empty_replay(self) -> ReplayState:
        """A replay of R rows, a multiple of T, so that the rows of an iteration never wrap round
        the end of the ring."""
        options = self._shape.selfplay
        iterations = -(-self._shape.replay.positions // (options.boards * options.plies))
        return replay.init(iterations * options.plies, self.plies)

    def _iteration_keys(self, seed: jax.Array, iteration: jax.Array) -> Keys:
        key = jax.random.fold_in(jax.random.wrap_key_data(seed), iteration)
        play_key, learn_key = jax.random.split(key)
        return Keys(play_key, jax.random.split(learn_key, self._shape.learner.steps))

    def _play(
        self,
        stage: Stage,
        numbers: Numbers,
        variables: Any,
        variant: Variant,
        boards: Boards,
        key: jax.Array,
    ) -> tuple[Boards, Trajectory, SelfPlayFigures]:
        """As `play`, for a stage, with variables as `variables_of` makes them."""

        def play(
            numbers: Numbers, variables: Any, variant: Variant, boards: Boards, key: jax.Array
        ):
            selfplay = selfplay_of(with_numbers(self._shape, numbers), stage, self._opponent)
            key, coin_key = split_coin_key(key)
            boards, plies, sums = selfplay(variables, variant, boards, device_key(key), coin_key)
            gather = functools.partial(jax.lax.all_gather, axis_name=AXIS)
            setups, openings = opening_diversity(variant, plies.position, gather)
            by_board = jax.tree.map(functools.partial(gather, tiled=True), sum_by_board(plies))
            sums = jax.lax.psum(sums, AXIS)
            return boards, plies, SelfPlayFigures(sums, setups, openings, by_board)

        return self.devices.per_device(
            play,
            (EVERYWHERE, EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE),
            (BY_BOARD, ROWS_BY_BOARD, EVERYWHERE),
        )(numbers, variables, variant, boards, key)

    def _write(
        self, replay_state: ReplayState, plies: Trajectory
    ) -> tuple[ReplayState, FinishedPlies]:
        written = replay.add(replay_state, plies)
        devices = self.devices.count if self._host is None else 1

        def by_device(plies: jax.Array) -> jax.Array:
            return plies.reshape(devices, -1).sum(axis=1, dtype=jnp.int32)

        counts = by_device(written.finished)
        newest = by_device(replay.newly_finished(written, self._shape.selfplay.plies))
        return written, FinishedPlies(counts.sum(dtype=jnp.int32), counts.min(), newest.min())

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
        config, spread = self._shape, self._host is None
        draw = functools.partial(
            replay.sample,
            size=config.learner.batch // (self.devices.count if spread else 1),
            has_reply=config.network.reply,
            td_steps=config.learner.td_steps,
            newest=newest,
        )
        if not spread:
            # The key of the first device, so that one device draws the same from either memory.
            return draw(replay_state, variant, jax.random.fold_in(key, 0))
        return self.devices.per_device(
            lambda replay_state, variant, key: draw(replay_state, variant, device_key(key)),
            (_REPLAY_SPECS, BY_BOARD, EVERYWHERE),
            BY_BOARD,
        )(replay_state, variant, key)

    def _batch_of_step(
        self, replay_state: ReplayState, variant: Variant, keys: jax.Array, index: jax.Array
    ) -> Sample:
        """The batch of a step, from a host's replay."""
        return self.sample(replay_state, variant, jax.random.split(keys[index])[0])

    def validation_batch(
        self, replay_state: ReplayState, variant: Variant, keys: jax.Array
    ) -> Sample:
        """A batch of games that ended in this iteration, which no step has learned from yet; `keys`
        are those of its steps."""
        key, newest = jax.random.fold_in(keys[0], _VALIDATION_SALT), self._shape.selfplay.plies
        return self.sample(replay_state, variant, key, newest=newest)

    def _learn_step(
        self, shared: Shared, learner: LearnerState, batch: Any, index: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        """Take a step of learning.

        Args:
          shared: with the other steps of the iteration.
          learner: to be donated.
          batch: the devices' replay, which is sampled, or the batch of a host's.
          index: of the step, an array, so that one program serves all steps.
        """
        sample_key, turn_key = jax.random.split(shared.keys[index])
        if self._host is None:
            batch = self.sample(batch, shared.variant, sample_key)
        return self.learner(shared.numbers).update(learner, batch, turn_key)

    def _learn_steps(
        self, shared: Shared, learner: LearnerState, replay_state: ReplayState, steps: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        """Take a number of steps as one program; metrics [S], of which the first belong to them."""

        def step(learner: LearnerState, index: jax.Array) -> tuple[LearnerState, StepMetrics]:
            # The loop changes neither numbers nor replay, so they are not in the carry.
            return self._learn_step(shared, learner, replay_state, index)

        def one(index: jax.Array, carry: Any) -> tuple[LearnerState, StepMetrics]:
            learner, seen = step(carry[0], index)
            return learner, jax.tree.map(lambda all, new: all.at[index].set(new), carry[1], seen)

        like, count = jax.eval_shape(step, learner, jnp.int32(0))[1], shared.keys.shape[0]
        nothing = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), like)
        return jax.lax.fori_loop(0, steps, one, (learner, nothing))

    def _validate(self, shared: Shared, variables: Variables, batch: Any) -> Losses:
        """Losses on a `validation_batch`; of a replay on the devices it is drawn here."""
        if self._host is None:
            batch = self.validation_batch(batch, shared.variant, shared.keys)
        return self.learner(shared.numbers).validation_losses(variables, batch)

    # The arguments that it is compiled for.

    def _play_like(self) -> tuple[Any, ...]:
        like = self.devices.like
        weights = variables_of(self._shape, self.network.shapes, 0, self._opponent_weights)
        return (
            like(numbers_of(self._shape), EVERYWHERE),
            like(weights, EVERYWHERE),
            like(self.variants, BY_BOARD),
            self.like.boards,
            like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
        )

    def _shared_like(self) -> Shared:
        keys = jax.eval_shape(self._keys, self._seed, _FIRST).learn
        specs: Any = Shared._make((EVERYWHERE, BY_BOARD, EVERYWHERE))
        return self.devices.like(Shared(numbers_of(self._shape), self.variants, keys), specs)

    def _sample_like(self) -> tuple[Any, ...]:
        sampled_by = self._to_replay_device(self._shared_like()[1:])
        return (self.like.replay_state, *sampled_by, _FIRST)

    def _learn_like(self) -> tuple[Any, ...]:
        batch = self.like.replay_state
        if self._host is not None:
            sample = jax.eval_shape(self._batch_of_step, *self._sample_like())
            batch = self.devices.like(sample, BY_BOARD)
        return self._shared_like(), self.like.learner, batch, _FIRST

    def _validate_like(self) -> tuple[Any, ...]:
        shared, learner, batch, _ = self._learn_like()
        return shared, learner.player, batch


def make_step(
    config: RunConfig, devices: Devices | None = None, *, opponent: Player | None = None
) -> TrainStep:
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
    opponent = opponent or load_opponent(config)
    if opponent is None:
        # What JAX makes other programs by.
        names = "enable_x64", "default_matmul_precision", "default_prng_impl"
        names = *names, "numpy_dtype_promotion"
        settings = backend(), *(getattr(jax.config, f"jax_{name}") for name in names)
        step = _shared(_shape_of(config), devices, settings).of_run(config)
    else:
        step = TrainStep(config, devices, opponent)
    check_held(config, step.like, tree_bytes(step.plies), devices)
    return step


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(shape: RunConfig, devices: Devices, settings: tuple[Any, ...]) -> TrainStep:
    del settings
    return TrainStep(shape, devices)


def _shape_of(config: RunConfig) -> RunConfig:
    """The config of all runs that share functions with this one."""
    plain = RunConfig()
    # Not read by the functions, or an argument of theirs.
    free = ("name", "seed", "evaluation", "checkpoint", "tracking", "start_weights", "init_from")
    return unchecked(without_numbers(config), **{key: getattr(plain, key) for key in free})


def steps_due(config: RunConfig, finished: FinishedPlies) -> int:
    """Number of steps of an iteration that ends with so many finished plies, read by the host.

    It is `learner.steps`, but fewer at the start of a run, where the few finished games are the
    short ones: a ply is not drawn more often in an iteration than new plies are in all. One step is
    taken as soon as each device has a finished game.
    """
    if finished.least == 0:
        return 0
    played = config.selfplay.boards * config.selfplay.plies
    return min(max(config.learner.steps * int(finished.all) // played, 1), config.learner.steps)
