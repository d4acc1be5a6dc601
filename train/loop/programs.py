"""Assembles a run's programs from those of its state, self-play, replay and learning, where the
memory is large enough for them."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.stages import Traced

from train.arena.match import MatchOptions, match_needs
from train.config import RunConfig
from train.data import replay
from train.data.replay import ReplayState, Trajectory
from train.data.selfplay import first_boards
from train.learning.learner import Learner, make_learner
from train.loop.learn_programs import LearnInputs, LearnProgram, make_learn_program
from train.loop.replay_programs import (
    HOST,
    FinishedPlies,
    make_replay_programs,
    replay_rows,
)
from train.loop.run_state import Keys, RunState, make_keys, make_state_programs
from train.loop.selfplay_programs import Stage, make_selfplay_programs, selfplay_of, stage_at
from train.network import Network
from train.network.build import network_for
from train.players.learned import search_player
from train.registry import MAX_SIMULATIONS
from train.runtime.devices import BY_BOARD, EVERYWHERE, Devices, devices_for
from train.runtime.errors import UsageError
from train.runtime.memory import (
    Need,
    check_fits,
    check_sizes,
    device_memory,
    host_memory,
    least_bytes,
    tree_bytes,
)
from wallgo_jax.game.state import Variant, make_variant


class Programs(NamedTuple):
    """A run's programs, each compiled once."""

    init: Callable[[], RunState]
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
    them waits for the compiler. Returns the seconds that it took, 0 where all is compiled."""


def make_programs(config: RunConfig, devices: Devices | None = None) -> Programs:
    """Build and jit the functions of a run; nothing is compiled yet.

    Raises:
      UsageError: boards or samples cannot be shared by the devices.
    """
    shared = {"selfplay_boards": config.selfplay.boards, "learner_batch": config.learner.batch}
    devices = devices_for(**shared) if devices is None else devices
    devices.check_divides(**shared)
    _check_sizes(config)
    network = network_for(config.network, config.rules.players)
    learner = _make_learner(config, network, devices)
    variants = _broadcast_variant(config)
    selfplay = _trace_selfplay(config, network, variants)
    # Before anything lies on a device.
    _check_memory(config, selfplay, variants, learner, network, devices)
    variant = devices.place(variants, jax.tree.map(lambda x: BY_BOARD, variants))
    plies: Trajectory = selfplay.out_info[1]
    replay_programs = make_replay_programs(config, plies, variants, devices)
    state = make_state_programs(config, network, learner, variants, replay_programs, devices)
    keys = make_keys(config, devices)

    @functools.cache
    def learn_program() -> LearnProgram:
        like = LearnInputs(
            learner=state.like.learner,
            replay_state=state.like.replay_state,
            variant=devices.like(variants, BY_BOARD),
            keys=devices.like(jax.eval_shape(lambda: keys(0)).learn, EVERYWHERE),
        )
        return make_learn_program(config, learner, replay_programs, like, devices)

    selfplay = make_selfplay_programs(config, network, variant, devices)
    compiled: set[Stage] = set()

    def compile_from(iteration: int) -> float:
        stage = stage_at(config, iteration)
        if stage in compiled:
            return 0.0
        started = time.perf_counter()
        keys(iteration)
        selfplay.compile(iteration)
        replay_programs.compile_add()
        learn_program()
        compiled.update(stage_at(config, later) for later in range(iteration, config.iterations))
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


def _check_sizes(config: RunConfig) -> None:
    """Refuse sizes that cannot even be traced."""
    check_sizes(
        selfplay_boards=config.selfplay.boards,
        selfplay_plies=config.selfplay.plies,
        learner_batch=config.learner.batch,
        learner_steps=config.learner.steps,
    )
    for table in (config.search, config.evaluation):
        if table.simulations > MAX_SIMULATIONS:
            key = "search" if table is config.search else "evaluation"
            raise UsageError(
                f"{key}.simulations ({table.simulations}) must be at most {MAX_SIMULATIONS}"
            )


def _make_learner(config: RunConfig, network: Network, devices: Devices) -> Learner:
    return make_learner(
        network,
        config.learner,
        total_steps=config.iterations * config.learner.steps,
        planes=config.network.planes,
        has_playable=False,
        per_device=lambda prepare: devices.per_device(prepare, BY_BOARD, BY_BOARD),
    )


def _broadcast_variant(config: RunConfig) -> Variant:
    """The rules for each board, NumPy arrays [B]."""
    # In NumPy: nothing is on a device until each process places its own part.
    boards = config.selfplay.boards
    return jax.tree.map(
        lambda x: np.broadcast_to(np.asarray(x), (boards, *np.shape(x))), make_variant(config.rules)
    )


def _trace_selfplay(config: RunConfig, network: Network, variants: Variant) -> Traced:
    """An iteration of the last stage on all boards, which returns boards, plies [T, B], metrics."""
    # Stages differ in simulations, not in shapes; the last one has the most.
    selfplay = selfplay_of(config, stage_at(config, config.iterations - 1))
    boards = jax.eval_shape(first_boards, variants)
    return jax.jit(selfplay).trace(network.shapes, variants, boards, jax.random.key(0))


def _check_memory(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    devices: Devices,
) -> None:
    """Refuse a config that needs more memory than a device or this host has.

    Raises:
      UsageError: which keys take how much, and what would fit.
    """
    check_fits(run_needs(config, selfplay, variants, learner, network, devices), device_memory())
    if config.replay.memory == HOST:
        check_fits([_replay_need(config, selfplay)], host_memory())


def run_needs(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    devices: Devices,
) -> list[Need]:
    """Estimate the memory of one device in the phase of an iteration that needs the most.

    Args:
      config: the run.
      selfplay: an iteration of the most simulations on all boards, traced.
      variants: NumPy arrays [B], what each board plays.
      learner: the run's.
      network: the run's.
      devices: which share boards and samples.
    """
    count, own = devices.count, config.selfplay
    state = jax.eval_shape(learner.init, network.shapes)
    boards = tree_bytes((variants, selfplay.out_info[0])) // count
    replay_need = _replay_need(config, selfplay)
    replay_need = replay_need._replace(bytes=replay_need.bytes // count)
    held = [
        Need("selfplay.boards", own.boards, boards),
        Need("network.width", config.network.width, tree_bytes(state)),
        *([] if config.replay.memory == HOST else [replay_need]),
    ]
    note = f"search.simulations = {config.search.simulations}"
    phases = [
        [Need("selfplay.boards", own.boards, least_bytes(selfplay) // count, note)],
        [_learning_need(config, selfplay, variants, learner, network, count)],
    ]
    if config.evaluation.opponents:
        phases.append(_evaluation_needs(config, network))
    if jax.default_backend() == "cpu":
        # A checkpoint copies the whole state twice, in the memory that holds it already.
        phases.append([replay_need._replace(bytes=2 * replay_need.bytes)])
    return held + max(phases, key=lambda needs: sum(need.bytes for need in needs))


def _replay_need(config: RunConfig, selfplay: Traced) -> Need:
    """The replay of all devices; self-play decides its size where an iteration is larger."""
    row = jax.eval_shape(lambda: replay.init(1, selfplay.out_info[1]))
    size, own = replay_rows(config) * tree_bytes((row.plies, row.outcome)), config.selfplay
    if own.boards * own.plies > config.replay.positions:
        return Need("selfplay.boards", own.boards, size, f"selfplay.plies = {own.plies}")
    return Need("replay.positions", config.replay.positions, size)


def _learning_need(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    count: int,
) -> Need:
    """A step of learning: samples, features kept for the gradient, gradient."""
    batch = config.learner.batch

    def step(state: Any, plies: Trajectory, variants: Variant, key: jax.Array) -> Any:
        sample = replay.sample(
            replay.init(1, plies), variants, key, size=batch, has_reply=config.network.reply
        )
        return learner.update(state, sample, key)

    state = jax.eval_shape(learner.init, network.shapes)
    plies = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((1, 1, *x.shape[2:]), x.dtype), selfplay.out_info[1]
    )
    traced = jax.jit(step).trace(
        state, plies, jax.tree.map(lambda x: x[:1], variants), jax.random.key(0)
    )
    return Need("learner.batch", batch, least_bytes(traced) // count)


def _evaluation_needs(config: RunConfig, network: Network) -> list[Need]:
    """A final match of the newest weights, against themselves for want of an opponent here."""
    options = config.evaluation
    simulations = options.simulations
    player = search_player(
        config.name,
        network.shapes,
        config.network,
        config.search,
        config.rules,
        simulations=simulations,
    )
    how = MatchOptions(
        games=max(options.games, options.final_games),
        batch=options.batch,
        opening_plies=options.opening_plies,
    )
    note = f"evaluation.simulations = {simulations}"
    keys = {"games": ("evaluation.final_games", ""), "batch": ("evaluation.batch", note)}
    return [
        Need(keys[need.key][0], need.value, need.bytes, keys[need.key][1])
        for need in match_needs(player, player, config.rules, how)
        if need.key in keys
    ]
