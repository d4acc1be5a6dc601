"""The functions of an iteration: self-play, the write to the replay, learning.

Each is jitted for a run's devices and compiled once, within the memory that they have. Seeds and
numbers (`train.loop.numbers`) are arguments: runs that differ in nothing else share what is
compiled.

B boards, T plies of an iteration, R rows of the replay, S steps of an iteration, N samples.
"""

import copy
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data.config import SelfPlayConfig
from train.data.diversity import OpeningDiversity, opening_diversity
from train.data.replay import ReplayState, Trajectory
from train.data.selfplay import Boards, SelfPlaySums, first_boards, make_selfplay, stagger
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.learning.losses import Losses
from train.loop.memory import check_held, check_programs
from train.loop.numbers import Numbers, numbers_of, unchecked, with_numbers, without_numbers
from train.loop.run_replay import FinishedPlies, RunReplay
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
from train.network import Variables, cast_weights, network_for, observer_for
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
from train.runtime.fields import is_off
from train.runtime.memory import CompiledFunction, tree_bytes
from wallgo_jax.game.state import Variant

_MOST_SHARED = 4
"""Configs whose functions are kept for the next run: a sweep goes through few."""
_STAGGER_SALT = 2**31 - 2
"""Folded into the seed for the plies that the first games begin with, as in `first_key`."""
_STAGGER_PLIES = 64
"""The most plies before a run's first one on a board: about two random games."""
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


class IterationFigures(NamedTuple):
    """Figures of an iteration on all devices, float32[] where nothing else is said."""

    sums: SelfPlaySums
    setups: OpeningDiversity
    openings: OpeningDiversity
    by_board: BoardSums  # float32[B]


class Shared(NamedTuple):
    """What the steps of an iteration share."""

    numbers: Numbers
    variant: Variant  # [B]
    keys: jax.Array  # [S]


class RunPrograms:
    """The functions that a run's iterations call.

    Attributes:
      config: the run.
      devices: that share boards and samples.
      network: the one that learns.
      variants: NumPy arrays [B], what each board plays.
      plies: shapes of the plies [T, B] of an iteration, which are the same whoever plays.
      replay: writes and draws them.
      like: shapes of a state, and where they lie.
      learning: a step of learning, or on accelerators all of an iteration.
    """

    def __init__(self, config: RunConfig, devices: Devices, opponent: Player | None = None) -> None:
        """Jit the functions; nothing is compiled yet.

        Args:
          config: the run.
          devices: that share boards and samples.
          opponent: the frozen one of self-play.
        """
        self._template, self.devices, self._opponent = _template_of(config), devices, opponent
        self.network = network_for(config.network, config.rules.players, size=config.grid_side)
        self.variants = variants_of(config)
        self._set_run(config)
        weights, self._opponent_weights = None if opponent is None else opponent.trained, None
        if weights is not None:
            self._opponent_weights = cast_weights(weights.variables, weights.config.network)
        everywhere = devices.sharding(EVERYWHERE)
        state_at: Any = TrainState._make((everywhere, devices.sharding(BY_BOARD), None, everywhere))
        self.plies: Trajectory = devices.like(self._plies_of_random_play(), ROWS_BY_BOARD)
        self.replay = RunReplay(self._template, devices, self.plies, self.variants)
        state = shapes_of(jax.eval_shape(self._first_state, self._seed), state_at)
        self.like: TrainState = state._replace(replay_state=self.replay.like)

        self._init = jax.jit(self._first_state, out_shardings=state_at)
        self._keys = jax.jit(self._iteration_keys, out_shardings=everywhere)
        self._self_play: dict[Stage, CompiledFunction] = {}
        # XLA runs the gradients of convolutions many times slower inside a loop on a CPU, and a
        # host's replay is sampled between two steps: there each step is a call.
        self._is_one_call = self.replay.host is None and backend() != "cpu"
        learn = self._learn_steps if self._is_one_call else self._learn_step
        # Weights and optimizer state are updated in place.
        jitted = jax.jit(learn, donate_argnums=1, out_shardings=everywhere)
        self.learning = CompiledFunction(jitted, self._learn_like)
        validate = jax.jit(self._validate, out_shardings=everywhere)
        self._validating = CompiledFunction(validate, self._validate_like)

    def _set_run(self, config: RunConfig) -> None:
        self.config = config
        # The data of the seed's key, uint32[...].
        self._seed = np.asarray(jax.random.key_data(jax.random.key(config.seed)))
        self._numbers = numbers_of(config)
        self._compiled: set[Stage] = set()

    def of_run(self, config: RunConfig) -> "RunPrograms":
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
        return self._init(self._seed, variables)._replace(replay_state=self.replay.init())

    def place(self, state: TrainState) -> TrainState:
        """Put a state of NumPy arrays, such as a checkpoint's, where an iteration takes it."""
        return placed(state, jax.tree.map(lambda x: x.sharding, self.like))

    def keys(self, iteration: int) -> Keys:
        """The keys of an iteration, counted from 0."""
        return self._keys(self._seed, jnp.int32(iteration))

    def play(
        self, iteration: int, variables: Variables, boards: Boards, key: jax.Array
    ) -> tuple[Boards, Trajectory, IterationFigures]:
        """Play T plies with these weights on boards [B], each device for itself, with one coin for
        all of them; boards and key are consumed.

        Returns:
          The boards as they stand, the plies [T, B] and their figures.
        """
        inputs = variables_of(self.config, variables, iteration, self._placed_opponent)
        return self.self_play(iteration)(self._numbers, inputs, self.variant, boards, key)

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
        batch_of = self.replay.batches(replay_state, self.variant, keys)
        batch, seen = batch_of(0) if steps else None, list[StepMetrics]()
        for index in range(steps):
            learner, metrics = self.learning(shared, learner, batch, np.int32(index))
            # Read after the last step: reading here would make each step wait for the one before.
            seen.append(metrics)
            if index + 1 < steps:
                batch = batch_of(index + 1)
            if index and self.replay.host is not None:
                # Two batches at most lie on the devices: of the step under way and the next.
                jax.block_until_ready(seen[index - 1])
        return learner, seen

    def validate(self, variables: Variables, replay_state: ReplayState, keys: jax.Array) -> Losses:
        """Losses of weights on games that ended in this iteration, before any step has learned from
        them; `keys` are the steps'."""
        source = self.replay.held_out(replay_state, self.variant, keys)
        return self._validating(Shared(self._numbers, self.variant, keys), variables, source)

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
        first_of = {stage_at(self.config, number): number for number in reversed(later)}
        self.keys(iteration)
        plies, write, learn = tree_bytes(self.plies), self.replay.compile(), self.learning.bytes
        if self.config.learner.validation_every > 0:
            learn = max(learn, self._validating.bytes)
        play = max(self.self_play(number).bytes for number in first_of.values()) - plies
        check_programs(self.config, self.like, plies, play=play, write=write, learn=learn)
        self._compiled.update(first_of)
        return time.perf_counter() - started

    def self_play(self, iteration: int) -> CompiledFunction:
        """The self-play of an iteration, which shares it with others of its stage."""
        stage = stage_at(self.config, iteration)
        if stage not in self._self_play:
            jitted = jax.jit(self._make_play(stage), donate_argnums=3)
            self._self_play[stage] = CompiledFunction(jitted, self._play_like)
        return self._self_play[stage]

    # What is compiled; of the run's numbers it sees which there are, and takes them as arguments.

    def make_learner(self, numbers: Numbers) -> Learner:
        """The learner of numbers that may be arguments of a function."""
        config = with_numbers(self._template, numbers)
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
            SelfPlayConfig(plies=self._template.selfplay.plies),
            has_root_value=not is_off(self._template.learner.value_mix),
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
        return TrainState(
            self.make_learner({}).init(first), boards, no_replay, jnp.zeros((), jnp.int32)
        )

    def _iteration_keys(self, seed: jax.Array, iteration: jax.Array) -> Keys:
        key = jax.random.fold_in(jax.random.wrap_key_data(seed), iteration)
        play_key, learn_key = jax.random.split(key)
        return Keys(play_key, jax.random.split(learn_key, self._template.learner.steps))

    def _make_play(self, stage: Stage) -> Callable[..., Any]:
        """An iteration of self-play in a stage, on arrays of all devices."""

        def play(
            numbers: Numbers, variables: Any, variant: Variant, boards: Boards, key: jax.Array
        ) -> tuple[Boards, Trajectory, IterationFigures]:
            selfplay = selfplay_of(with_numbers(self._template, numbers), stage, self._opponent)
            key, coin_key = split_coin_key(key)
            boards, plies, sums = selfplay(variables, variant, boards, device_key(key), coin_key)
            gather = functools.partial(jax.lax.all_gather, axis_name=AXIS)
            setups, openings = opening_diversity(variant, plies.position, gather)
            by_board = jax.tree.map(functools.partial(gather, tiled=True), sum_by_board(plies))
            sums = jax.lax.psum(sums, AXIS)
            return boards, plies, IterationFigures(sums, setups, openings, by_board)

        return self.devices.per_device(
            play,
            (EVERYWHERE, EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE),
            (BY_BOARD, ROWS_BY_BOARD, EVERYWHERE),
        )

    def _learn_step(
        self, shared: Shared, learner: LearnerState, source: Any, index: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        """Take a step of learning.

        Args:
          shared: with the other steps of the iteration.
          learner: to be donated.
          source: the devices' replay, which is sampled, or the batch of a host's.
          index: of the step, an array, so that one program serves all steps.
        """
        sample_key, turn_key = jax.random.split(shared.keys[index])
        batch = source
        if self.replay.host is None:
            batch = self.replay.sample(source, shared.variant, sample_key)
        return self.make_learner(shared.numbers).update(learner, batch, turn_key)

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

    def _validate(self, shared: Shared, variables: Variables, source: Any) -> Losses:
        """Losses on a `held_out_batch`; of a replay on the devices it is drawn here."""
        batch = source
        if self.replay.host is None:
            batch = self.replay.held_out_batch(source, shared.variant, shared.keys)
        return self.make_learner(shared.numbers).validation_losses(variables, batch)

    # The arguments that it is compiled for.

    def _play_like(self) -> tuple[Any, ...]:
        like = self.devices.like
        weights = variables_of(self._template, self.network.shapes, 0, self._opponent_weights)
        return (
            like(numbers_of(self._template), EVERYWHERE),
            like(weights, EVERYWHERE),
            like(self.variants, BY_BOARD),
            self.like.boards,
            like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
        )

    def _learn_like(self) -> tuple[Any, ...]:
        keys = jax.eval_shape(self._keys, self._seed, _FIRST).learn
        specs: Any = Shared._make((EVERYWHERE, BY_BOARD, EVERYWHERE))
        shared = self.devices.like(Shared(numbers_of(self._template), self.variants, keys), specs)
        return shared, self.like.learner, self.replay.batch_like(), _FIRST

    def _validate_like(self) -> tuple[Any, ...]:
        shared, learner, batch, _ = self._learn_like()
        return shared, learner.player, batch


def make_run_programs(
    config: RunConfig, devices: Devices | None = None, *, opponent: Player | None = None
) -> RunPrograms:
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
        programs = _shared(_template_of(config), devices, settings).of_run(config)
    else:
        programs = RunPrograms(config, devices, opponent)
    check_held(config, programs.like, tree_bytes(programs.plies), devices)
    return programs


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(template: RunConfig, devices: Devices, settings: tuple[Any, ...]) -> RunPrograms:
    del settings
    return RunPrograms(template, devices)


def _template_of(config: RunConfig) -> RunConfig:
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
