"""Assembles a run's programs from those of its state, self-play, replay and learning."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.stages import Traced

from train.config import RunConfig
from train.data.replay import ReplayState, Trajectory
from train.data.selfplay import TargetOptions, first_boards, make_selfplay
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.network import Network
from train.network.build import network_for, observer_for
from train.players.basic import Player, make_random_search
from train.programs.boards import variants_of
from train.programs.learn import (
    LearnInputs,
    LearnProgram,
    make_learn_program,
    trace_learning,
)
from train.programs.memory import (
    LEARNER_KEYS,
    SELFPLAY_KEYS,
    check_held,
    check_sizes_of_run,
    checkpoint_need,
    held_needs,
)
from train.programs.numbers import (
    Numbers,
    numbers_of,
    unchecked,
    with_numbers,
    without_numbers,
)
from train.programs.replay import FinishedPlies, ReplayPrograms, make_replay_programs
from train.programs.selfplay import (
    SelfplayPrograms,
    Stage,
    load_opponent,
    make_selfplay_programs,
    stage_at,
    stages_from,
)
from train.programs.state import (
    Keys,
    RunState,
    StatePrograms,
    make_keys,
    make_state_programs,
    seed_of,
)
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    devices_for,
    set_gpu_flags,
)
from train.runtime.memory import Need, check_fits, device_memory, program_bytes, tree_bytes
from train.runtime.numbers import is_off
from wallgo_jax.game.state import Variant


class RunParts(NamedTuple):
    """The parts that a run's programs are made of; none of them is on a device.

    T plies of an iteration, B boards.
    """

    config: RunConfig
    devices: Devices  # share boards and samples
    network: Network
    learner: Learner
    variants: Variant  # NumPy arrays [B], what each board plays
    plies: Trajectory
    """Shapes of the plies [T, B] of an iteration."""


class Programs(NamedTuple):
    """A run's programs, each compiled once, also for other runs that differ in their numbers alone
    (`train.programs.numbers`)."""

    init: Callable[..., RunState]
    """() -> the first state, with random weights; (variables) -> the same with these."""
    place: Callable[[RunState], RunState]
    """Takes a state of NumPy arrays, such as a checkpoint's."""
    variant: Variant  # [B], what each board plays
    keys: Callable[[int], Keys]
    """Iteration -> its keys."""
    selfplay_at: Callable[[int], Callable[..., Any]]
    """The program of an iteration, as `SelfplayPrograms.at`, which has the run's numbers."""
    add: Callable[[ReplayState, Trajectory], tuple[ReplayState, FinishedPlies]]
    learn: Callable[..., tuple[LearnerState, list[StepMetrics]]]
    """(learner, replay, variant [B], keys [S], steps), as `LearnProgram.learn` with the run's
    numbers; the first call compiles it."""
    learn_program: Callable[[], LearnProgram]
    """The first call compiles it."""
    compile: Callable[[int], float]
    """Compiles all that an iteration and those after it call, learning included, so that none of
    them waits for the compiler. Returns the seconds that it took, 0 where all is compiled. Raises
    UsageError where the programs need more memory than a device has."""


def make_programs(
    config: RunConfig, devices: Devices | None = None, *, opponent: Player | None = None
) -> Programs:
    """Build and jit the functions of a run; nothing is compiled yet.

    Args:
      config: the run.
      devices: that share its boards and samples; None for all of this process that can.
      opponent: the frozen one of self-play; None for the one that the config names, if any.

    Raises:
      UsageError: boards or samples cannot be shared by the devices, or the frozen opponent of
        self-play cannot be loaded.
    """
    set_gpu_flags(deterministic=config.deterministic, loops_in_graphs=config.loops_in_graphs)
    devices = _checked_devices(config, devices)
    opponent = opponent or load_opponent(config)
    shape = _shape_of(config)
    if opponent is None:
        made = _shared(shape, devices, _jax_settings())
    else:
        made = _make(shape, devices, opponent)
    check_held(config, made.state.like, made.plies_bytes, devices)
    seed, numbers = seed_of(config), numbers_of(config)
    compiled: set[Stage] = set()

    def compile_from(iteration: int) -> float:
        stage = stage_at(config, iteration)
        if stage in compiled:
            return 0.0
        started = time.perf_counter()
        made.keys(seed, iteration)
        needs = [
            Need("self-play", made.selfplay.compile(iteration) - made.plies_bytes, SELFPLAY_KEYS),
            Need("adding to the replay", made.replay.compile_add(), ("selfplay.boards",)),
            Need("learning", program_bytes(made.learn_program().compiled), LEARNER_KEYS),
            *filter(None, [checkpoint_need(config, made.state.like)]),
        ]
        held = held_needs(config, made.state.like, made.plies_bytes)
        check_fits(held, device_memory(), programs=needs)
        compiled.update(stages_from(config, iteration))
        return time.perf_counter() - started

    def learn(*inputs: Any) -> tuple[LearnerState, list[StepMetrics]]:
        *arrays, steps = inputs
        return made.learn_program().learn(LearnInputs(numbers, *arrays), steps)

    return Programs(
        init=functools.partial(made.state.init, seed),
        place=made.state.place,
        variant=made.variant(),
        keys=functools.partial(made.keys, seed),
        selfplay_at=lambda iteration: functools.partial(made.selfplay.at(iteration), numbers),
        add=made.replay.add,
        learn=learn,
        learn_program=made.learn_program,
        compile=compile_from,
    )


class _Made(NamedTuple):
    """The programs of all runs that differ in seeds and numbers alone, which are arguments."""

    state: StatePrograms
    replay: ReplayPrograms
    selfplay: SelfplayPrograms
    keys: Callable[[np.ndarray, int], Keys]
    trace_learning: Callable[[], Traced]
    learn_program: Callable[[], LearnProgram]  # the first call compiles it
    variant: Callable[[], Variant]  # [B], on the devices
    plies_bytes: int  # of an iteration, on one device


_MOST_SHARED = 4
"""Configs whose compiled programs are kept for the next run: a sweep goes through few."""


def _shape_of(config: RunConfig) -> RunConfig:
    """The config of all runs that share programs with this one."""
    plain = RunConfig()
    # Read by what is done beside the programs, or an argument of theirs.
    beside = ("name", "seed", "evaluation", "checkpoint", "tracking", "start_weights", "init_from")
    return unchecked(without_numbers(config), **{key: getattr(plain, key) for key in beside})


def _make(config: RunConfig, devices: Devices, opponent: Player | None) -> _Made:
    """Build the programs of a `_shape_of` a config; nothing is compiled yet."""
    parts = make_parts(config, devices)
    network, variants = parts.network, parts.variants
    replay_programs = make_replay_programs(config, parts.plies, variants, devices)
    state = make_state_programs(config, network, parts.learner, variants, replay_programs, devices)
    keys, seed = make_keys(config, devices), seed_of(config)

    @functools.cache
    def variant() -> Variant:
        return devices.place(variants, jax.tree.map(lambda x: BY_BOARD, variants))

    def learner_of(numbers: Numbers) -> Learner:
        return _make_learner(with_numbers(config, numbers), network, devices)

    @functools.cache
    def learn_inputs() -> LearnInputs:
        return LearnInputs(
            numbers=devices.like(numbers_of(config), EVERYWHERE),
            learner=state.like.learner,
            replay_state=state.like.replay_state,
            variant=devices.like(variants, BY_BOARD),
            keys=devices.like(jax.eval_shape(keys, seed, 0).learn, EVERYWHERE),
        )

    def trace() -> Traced:
        return trace_learning(config, learner_of, replay_programs, learn_inputs(), devices)

    @functools.cache
    def learn_program() -> LearnProgram:
        return make_learn_program(config, learner_of, replay_programs, learn_inputs(), devices)

    return _Made(
        state=state,
        replay=replay_programs,
        selfplay=make_selfplay_programs(config, network, variants, devices, opponent),
        keys=keys,
        trace_learning=trace,
        learn_program=learn_program,
        variant=variant,
        plies_bytes=tree_bytes(devices.like(parts.plies, ROWS_BY_BOARD)),
    )


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(config: RunConfig, devices: Devices, settings: tuple[Any, ...]) -> _Made:
    del settings
    return _make(config, devices, None)


def _jax_settings() -> tuple[Any, ...]:
    """What JAX makes other programs by."""
    names = ("enable_x64", "default_matmul_precision", "default_prng_impl", "numpy_dtype_promotion")
    return tuple(getattr(jax.config, f"jax_{name}") for name in names)


def trace_programs(config: RunConfig, devices: Devices) -> dict[str, Callable[[], Traced]]:
    """Functions that trace what a run compiles for self-play in its last iteration (`selfplay`) and
    for learning (`learn`). The devices need not be there (`tracing_for`).

    Raises:
      UsageError: the frozen opponent of self-play cannot be loaded.
    """
    made = _make(config, devices, load_opponent(config))
    last = config.iterations - 1
    return {"selfplay": lambda: made.selfplay.trace(last), "learn": made.trace_learning}


def check_run(config: RunConfig) -> None:
    """Refuse a run that cannot begin on this machine; nothing is compiled or computed.

    Raises:
      UsageError: as `make_programs`, or arrays beyond the memory.
    """
    devices = _checked_devices(config, None)
    made = _make(config, devices, load_opponent(config))
    check_held(config, made.state.like, made.plies_bytes, devices)


def _checked_devices(config: RunConfig, devices: Devices | None) -> Devices:
    """The devices of a run, whose numbers of boards and samples they can share."""
    shared = {"selfplay_boards": config.selfplay.boards, "learner_batch": config.learner.batch}
    devices = devices_for(**shared) if devices is None else devices
    devices.check_divides(**shared)
    check_sizes_of_run(config)
    return devices


def make_parts(config: RunConfig, devices: Devices) -> RunParts:
    """Make a run's network, learner and shapes; nothing is put onto a device."""
    network = network_for(config.network, config.rules.players, size=config.grid_side)
    variants = variants_of(config)
    return RunParts(
        config=config,
        devices=devices,
        network=network,
        learner=_make_learner(config, network, devices),
        variants=variants,
        plies=_shapes_of_plies(config, variants),
    )


def _make_learner(config: RunConfig, network: Network, devices: Devices) -> Learner:
    return make_learner(
        network,
        config.learner,
        total_steps=config.iterations * config.learner.steps,
        observe=observer_for(config.network),
        per_device=lambda prepare: devices.per_device(prepare, BY_BOARD, BY_BOARD),
    )


def _shapes_of_plies(config: RunConfig, variants: Variant) -> Trajectory:
    """The plies [T, B] of an iteration, whose shapes no player changes."""
    selfplay = make_selfplay(
        make_random_search(),
        plies=config.selfplay.plies,
        targets=TargetOptions(has_root_value=not is_off(config.learner.value_mix)),
    )
    boards = jax.eval_shape(first_boards, variants)
    return jax.eval_shape(selfplay, (), variants, boards, jax.random.key(0))[1]
