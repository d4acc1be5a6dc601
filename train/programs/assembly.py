"""Assembles a run's programs from those of its state, self-play, replay and learning."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.stages import Traced

from train.config import RunConfig
from train.data.replay import ReplayState, Trajectory
from train.data.selfplay import TargetOptions, first_boards, make_selfplay
from train.learning.learner import Learner, make_learner
from train.network import Network
from train.network.build import network_for, observer_for
from train.players.basic import make_random_search
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
from train.programs.replay import FinishedPlies, ReplayPrograms, make_replay_programs
from train.programs.selfplay import (
    Stage,
    inputs_of,
    load_opponent,
    make_selfplay_programs,
    selfplay_of,
    stage_at,
    stages_from,
)
from train.programs.state import Keys, RunState, StatePrograms, make_keys, make_state_programs
from train.registry import FrozenOpponent
from train.runtime.devices import (
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    devices_for,
    make_deterministic,
)
from train.runtime.memory import Need, check_fits, device_memory, program_bytes, tree_bytes
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
    selfplay: Callable[[], Traced]
    """Traces an iteration of the most simulations on all boards, the first time it is called."""
    opponent: FrozenOpponent | None  # of self-play


class Programs(NamedTuple):
    """A run's programs, each compiled once."""

    init: Callable[..., RunState]
    """() -> the first state, with random weights; (variables) -> the same with these."""
    place: Callable[[RunState], RunState]
    """Takes a state of NumPy arrays, such as a checkpoint's."""
    variant: Variant  # [B], what each board plays
    keys: Callable[[int], Keys]
    """Iteration -> its keys."""
    selfplay_at: Callable[[int], Callable[..., Any]]
    """The program of an iteration, as `SelfplayPrograms.at`."""
    add: Callable[[ReplayState, Trajectory], tuple[ReplayState, FinishedPlies]]
    learn_program: Callable[[], LearnProgram]
    """The first call compiles it."""
    compile: Callable[[int], float]
    """Compiles all that an iteration and those after it call, learning included, so that none of
    them waits for the compiler. Returns the seconds that it took, 0 where all is compiled. Raises
    UsageError where the programs need more memory than a device has."""


def make_programs(
    config: RunConfig, devices: Devices | None = None, *, opponent: FrozenOpponent | None = None
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
    if config.deterministic:
        make_deterministic()
    parts, replay_programs, state = _checked_parts(config, devices, opponent)
    devices, variants = parts.devices, parts.variants
    variant = devices.place(variants, jax.tree.map(lambda x: BY_BOARD, variants))
    keys = make_keys(config, devices)

    @functools.cache
    def learn_program() -> LearnProgram:
        like = _learn_inputs(parts, state, keys)
        return make_learn_program(config, parts.learner, replay_programs, like, devices)

    selfplay = make_selfplay_programs(config, parts.network, variant, devices, parts.opponent)
    compiled: set[Stage] = set()

    def compile_from(iteration: int) -> float:
        stage = stage_at(config, iteration)
        if stage in compiled:
            return 0.0
        started = time.perf_counter()
        keys(iteration)
        plies = _plies_bytes(parts)
        needs = [
            Need("self-play", selfplay.compile(iteration) - plies, SELFPLAY_KEYS),
            Need("adding to the replay", replay_programs.compile_add(), ("selfplay.boards",)),
            Need("learning", program_bytes(learn_program().compiled), LEARNER_KEYS),
            *filter(None, [checkpoint_need(config, state.like)]),
        ]
        check_fits(held_needs(config, state.like, plies), device_memory(), programs=needs)
        compiled.update(stages_from(config, iteration))
        return time.perf_counter() - started

    return Programs(
        init=state.init,
        place=state.place,
        variant=variant,
        keys=keys,
        selfplay_at=selfplay.at,
        add=replay_programs.add,
        learn_program=learn_program,
        compile=compile_from,
    )


def trace_programs(parts: RunParts) -> dict[str, Callable[[], Traced]]:
    """Functions that trace what a run compiles for self-play in its last iteration (`selfplay`) and
    for learning (`learn`). The devices need not be there (`tracing_for`)."""
    config, variants, devices = parts.config, parts.variants, parts.devices
    selfplay = make_selfplay_programs(config, parts.network, variants, devices, parts.opponent)

    def learn() -> Traced:
        replay_programs = make_replay_programs(config, parts.plies, variants, devices)
        state = make_state_programs(
            config, parts.network, parts.learner, variants, replay_programs, devices
        )
        like = _learn_inputs(parts, state, make_keys(config, devices))
        return trace_learning(config, parts.learner, replay_programs, like, devices)

    return {"selfplay": lambda: selfplay.trace(config.iterations - 1), "learn": learn}


def _learn_inputs(
    parts: RunParts, state: StatePrograms, keys: Callable[[int], Keys]
) -> LearnInputs:
    """Shapes of what learning takes, and how they lie on the devices."""
    devices = parts.devices
    return LearnInputs(
        learner=state.like.learner,
        replay_state=state.like.replay_state,
        variant=devices.like(parts.variants, BY_BOARD),
        keys=devices.like(jax.eval_shape(lambda: keys(0)).learn, EVERYWHERE),
    )


def check_run(config: RunConfig) -> None:
    """Refuse a run that cannot begin on this machine; nothing is compiled or computed.

    Raises:
      UsageError: as `make_programs`, or arrays beyond the memory.
    """
    _checked_parts(config, None, None)


def _checked_parts(
    config: RunConfig, devices: Devices | None, opponent: FrozenOpponent | None
) -> tuple[RunParts, ReplayPrograms, StatePrograms]:
    """The parts of a run whose arrays fit, and what puts them onto the devices."""
    shared = {"selfplay_boards": config.selfplay.boards, "learner_batch": config.learner.batch}
    devices = devices_for(**shared) if devices is None else devices
    devices.check_divides(**shared)
    check_sizes_of_run(config)
    parts = make_parts(config, devices, opponent)
    network, learner, variants = parts.network, parts.learner, parts.variants
    replay_programs = make_replay_programs(config, parts.plies, variants, devices)
    state = make_state_programs(config, network, learner, variants, replay_programs, devices)
    check_held(config, state.like, _plies_bytes(parts), devices)
    return parts, replay_programs, state


def _plies_bytes(parts: RunParts) -> int:
    """Bytes of the plies of an iteration on one device."""
    return tree_bytes(parts.devices.like(parts.plies, ROWS_BY_BOARD))


def make_parts(
    config: RunConfig, devices: Devices, opponent: FrozenOpponent | None = None
) -> RunParts:
    """Make a run's network, learner and shapes; nothing is put onto a device.

    Args:
      opponent: as in `make_programs`.
    """
    network = network_for(config.network, config.rules.players, size=config.grid_side)
    variants, opponent = variants_of(config), opponent or load_opponent(config)
    return RunParts(
        config=config,
        devices=devices,
        network=network,
        learner=_make_learner(config, network, devices),
        variants=variants,
        plies=_shapes_of_plies(config, variants),
        selfplay=functools.cache(lambda: _trace_selfplay(config, network, variants, opponent)),
        opponent=opponent,
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
        targets=TargetOptions(has_root_value=config.learner.value_mix > 0),
    )
    boards = jax.eval_shape(first_boards, variants)
    return jax.eval_shape(selfplay, (), variants, boards, jax.random.key(0))[1]


def _trace_selfplay(
    config: RunConfig, network: Network, variants: Variant, opponent: FrozenOpponent | None
) -> Traced:
    """An iteration of the last stage on all boards, which returns boards, plies [T, B], metrics."""
    # Stages differ in simulations, not in shapes; the last one has the most.
    selfplay = selfplay_of(config, stage_at(config, config.iterations - 1), opponent)
    first = functools.partial(first_boards, has_opponent=opponent is not None)
    boards = jax.eval_shape(first, variants)
    theirs = None if opponent is None else opponent.trained.variables
    variables = inputs_of(config, network.shapes, 0, theirs)
    return jax.jit(selfplay).trace(variables, variants, boards, jax.random.key(0))
