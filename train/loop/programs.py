"""What is compiled once a run: its state, and the programs that change it, on all devices."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from jax.stages import Compiled, Traced

from train.config import RunConfig
from train.data import replay
from train.data.selfplay import first_boards, make_selfplay
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.network import Network
from train.network.build import network_for
from train.players.basic import make_greedy_search
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, Devices, devices_for
from train.runtime.errors import UsageError
from train.search.config import simulations_at
from train.search.evaluator import evaluator_for
from train.search.search import Search, make_search
from wallgo_jax.game.state import Position, Variant, make_variant

GREEDY = 0
"""In place of a number of simulations: the greedy player plays."""


class RunState(NamedTuple):
    """All that an iteration changes; with the config, all that resuming needs."""

    learner: LearnerState
    boards: Position  # [B], games under way
    replay_state: replay.ReplayState
    iterations: jax.Array  # int32, iterations done


class Keys(NamedTuple):
    """The random numbers of an iteration."""

    play: jax.Array
    learn: jax.Array  # [S], one a step


class Programs(NamedTuple):
    """What is compiled once a run."""

    init: Callable[[], RunState]
    place: Callable[[RunState], RunState]
    """A state of NumPy arrays, such as a checkpoint's, onto the devices."""
    variant: Variant  # [B], what each board plays
    keys: Callable[[int], Keys]
    """By iteration."""
    selfplay_at: Callable[[int], Callable[..., Any]]
    """The program of an iteration; the first asked for brings those of all later ones."""
    append: Callable[..., Any]
    prepare: Callable[..., tuple[Traced, Compiled]]
    """Compile `learn`, whose arguments it takes, once; they stay as they are."""
    learn: Callable[..., tuple[LearnerState, list[StepMetrics]]]
    """(learner, ring, variant, keys [S]) -> all steps of an iteration, metrics scalars or [S]; the
    learner is consumed."""


def make_programs(config: RunConfig, devices: Devices | None = None) -> Programs:
    """Build and jit the functions of a run; nothing is compiled yet.

    Raises:
      UsageError: boards or samples cannot be shared by the devices.
    """
    plies, boards = config.selfplay.plies, config.selfplay.boards
    shared = {"selfplay_boards": boards, "learner_batch": config.learner.batch}
    devices = devices_for(**shared) if devices is None else devices
    devices.check_divides(**shared)
    rules = config.rules
    same = jax.tree.map(
        lambda x: np.broadcast_to(np.asarray(x), (boards, *np.shape(x))), make_variant(rules)
    )
    variant = devices.place(same, jax.tree.map(lambda x: BY_BOARD, same))
    network = network_for(config.network, rules.players)
    learner = _make_learner(config, network, devices)
    rows = -(-config.replay.positions // (boards * plies)) * plies

    def init() -> RunState:
        key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
        first, no_replay = first_boards(jax.tree.map(jnp.asarray, same)), cast(Any, ())
        return RunState(learner.init(network.init(key)), first, no_replay, jnp.zeros((), jnp.int32))

    def empty_replay() -> replay.ReplayState:
        selfplay = selfplay_of(config, config.search.simulations)
        key = jax.random.key(config.seed)
        first = jax.eval_shape(first_boards, same)
        _, like, _ = jax.eval_shape(selfplay, network.shapes, same, first, key)
        return replay.init_replay(rows, like)

    specs = _specs(jax.eval_shape(init), jax.eval_shape(empty_replay))
    replay_state = _make_replay_programs(config, devices, specs.replay_state)
    without_replay = specs._replace(replay_state=())

    def first_state() -> RunState:
        state = jax.jit(init, out_shardings=devices.shardings(without_replay))()
        return state._replace(replay_state=replay_state.make(empty_replay))

    def place(state: RunState) -> RunState:
        placed = devices.place(state._replace(replay_state=()), without_replay)
        return placed._replace(replay_state=replay_state.place(state.replay_state))

    prepare, learn = _make_learn(config, learner, replay_state, devices, specs.learner)
    return Programs(
        init=first_state,
        place=place,
        variant=variant,
        keys=_make_keys(config, devices),
        selfplay_at=_make_selfplay_at(config, network, variant, devices),
        append=replay_state.append,
        prepare=prepare,
        learn=learn,
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


def _specs(like: RunState, replay_like: replay.ReplayState) -> RunState:
    """How each array of a state lies on the devices."""

    def everywhere(tree: Any) -> Any:
        return jax.tree.map(lambda x: EVERYWHERE, tree)

    def by_board(tree: Any, spec: Any) -> Any:
        return jax.tree.map(lambda x: spec, tree)

    replay_state = everywhere(replay_like)._replace(
        plies=by_board(replay_like.plies, ROWS_BY_BOARD),
        outcome=by_board(replay_like.outcome, ROWS_BY_BOARD),
    )
    learner, boards = everywhere(like.learner), by_board(like.boards, BY_BOARD)
    return RunState(learner, boards, replay_state, everywhere(like.iterations))


def _make_keys(config: RunConfig, devices: Devices) -> Callable[[int], Keys]:
    def keys(iteration: jax.Array) -> Keys:
        key = jax.random.fold_in(jax.random.key(config.seed), iteration)
        play_key, learn_key = jax.random.split(key)
        return Keys(play_key, jax.random.split(learn_key, config.learner.steps))

    everywhere = devices.sharding(EVERYWHERE)
    program = jax.jit(keys, out_shardings=everywhere)
    return lambda iteration: program(np.int32(iteration))


class _ReplayPrograms(NamedTuple):
    """The ring, where the config keeps it."""

    make: Callable[[Callable[[], replay.ReplayState]], replay.ReplayState]
    """An empty ring, from the function that makes one."""
    place: Callable[[replay.ReplayState], replay.ReplayState]
    """A ring of NumPy arrays."""
    append: Callable[[replay.ReplayState, replay.Trajectory], replay.ReplayState]
    draw: Callable[[replay.ReplayState, Variant, jax.Array], replay.Sample]
    """A batch [N], spread over the devices; on the devices it is part of the learner's program."""


def _make_replay_programs(config: RunConfig, devices: Devices, specs: Any) -> _ReplayPrograms:
    batch, has_reply = config.learner.batch, config.network.reply

    def draw(
        replay_state: replay.ReplayState, variant: Variant, key: jax.Array, size: int
    ) -> replay.Sample:
        return replay.draw(replay_state, variant, key, size=size, has_reply=has_reply)

    if config.replay.memory == "host":
        if jax.process_count() > 1:
            raise UsageError("replay.memory = 'host' is for one process")
        cpu = jax.local_devices(backend="cpu")[0]
        append_there = jax.jit(replay.append, donate_argnums=0)
        draw_there = jax.jit(draw, static_argnums=3)

        def append(
            replay_state: replay.ReplayState, plies: replay.Trajectory
        ) -> replay.ReplayState:
            return append_there(replay_state, jax.device_put(plies, cpu))

        def draw_and_send(
            replay_state: replay.ReplayState, variant: Variant, key: jax.Array
        ) -> replay.Sample:
            # The key of the first device, so that one device draws the same from either memory.
            rules, own = jax.device_put((variant, jax.random.fold_in(key, 0)), cpu)
            sample = draw_there(replay_state, rules, own, batch)
            return jax.device_put(sample, devices.sharding(BY_BOARD))

        there = SingleDeviceSharding(cpu)
        return _ReplayPrograms(
            make=lambda empty: jax.jit(empty, out_shardings=there)(),
            place=lambda replay_state: jax.device_put(jax.tree.map(np.array, replay_state), cpu),
            append=append,
            draw=draw_and_send,
        )

    def draw_own(
        replay_state: replay.ReplayState, variant: Variant, key: jax.Array
    ) -> replay.Sample:
        return draw(replay_state, variant, own_key(key), batch // devices.count)

    return _ReplayPrograms(
        make=lambda empty: jax.jit(empty, out_shardings=devices.shardings(specs))(),
        place=lambda replay_state: devices.place(replay_state, specs),
        append=jax.jit(replay.append, donate_argnums=0, out_shardings=devices.shardings(specs)),
        draw=devices.per_device(draw_own, (specs, BY_BOARD, EVERYWHERE), BY_BOARD),
    )


def _make_learn(
    config: RunConfig,
    learner: Learner,
    replay_programs: _ReplayPrograms,
    devices: Devices,
    specs: Any,
) -> tuple[
    Callable[..., tuple[Traced, Compiled]],
    Callable[..., tuple[LearnerState, list[StepMetrics]]],
]:
    """All steps of an iteration, and what compiles them. On accelerators they are one program; XLA
    runs the gradients of convolutions many times slower inside a loop on a CPU, so there each step
    is a call."""
    is_host, steps = config.replay.memory == "host", config.learner.steps
    in_one = not is_host and jax.default_backend() != "cpu"

    def step(
        state: LearnerState, source: Any, variant: Any, keys: jax.Array, index: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        draw_key, turn_key = jax.random.split(keys[index])
        sample = source if is_host else replay_programs.draw(source, variant, draw_key)
        return learner.update(state, sample, turn_key)

    def scan(
        state: LearnerState, source: Any, variant: Any, keys: jax.Array, index: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        indices = index + jnp.arange(steps)
        return jax.lax.scan(lambda s, i: step(s, source, variant, keys, i), state, indices)

    out = (devices.shardings(specs), devices.sharding(EVERYWHERE))
    jitted = jax.jit(scan if in_one else step, donate_argnums=0, out_shardings=out)
    draw_key_of = jax.jit(lambda keys, index: jax.random.split(keys[index])[0])
    made: list[tuple[Traced, Compiled]] = []

    def source_of(
        replay_state: replay.ReplayState, variant: Variant, keys: jax.Array, index: np.int32
    ) -> tuple[Any, Any]:
        if not is_host:
            return replay_state, variant
        return replay_programs.draw(replay_state, variant, draw_key_of(keys, index)), ()

    def prepare(
        state: LearnerState, replay_state: replay.ReplayState, variant: Variant, keys: jax.Array
    ) -> tuple[Traced, Compiled]:
        if not made:
            source, rules = source_of(replay_state, variant, keys, np.int32(0))
            traced = jitted.trace(state, source, rules, keys, np.int32(0))
            made.append((traced, traced.lower().compile()))
        return made[0]

    def learn(
        state: LearnerState, replay_state: replay.ReplayState, variant: Variant, keys: jax.Array
    ) -> tuple[LearnerState, list[StepMetrics]]:
        _, compiled = prepare(state, replay_state, variant, keys)
        found = []
        for index in map(np.int32, range(1 if in_one else steps)):
            source, rules = source_of(replay_state, variant, keys, index)
            state, metrics = compiled(state, source, rules, keys, index)
            found.append(metrics)
        return state, found

    return prepare, learn


def own_key(key: jax.Array) -> jax.Array:
    """Another key on each device; to be called on each apart."""
    return jax.random.fold_in(key, jax.lax.axis_index(AXIS))


def selfplay_of(config: RunConfig, simulations: int) -> Callable[..., Any]:
    """An iteration of self-play with so many simulations a move, or by the greedy player for
    GREEDY, to be jitted with its boards donated."""
    evaluate = evaluator_for(config.network, config.rules)
    options = config.selfplay
    if simulations == GREEDY:
        return make_selfplay(make_greedy_search(), plies=options.plies)

    def search_of(simulations: int, *, explores: bool) -> Search:
        search = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
        return make_search(evaluate, search, explores=explores)

    cheap = None
    if options.full_search_prob < 1:
        cheap = search_of(min(options.cheap_simulations, simulations), explores=False)
    return make_selfplay(
        search_of(simulations, explores=True),
        plies=options.plies,
        cheap=cheap,
        full_search_prob=options.full_search_prob,
        policy_surprise_weight=options.policy_surprise_weight,
    )


def simulations_of(config: RunConfig, iteration: int) -> int:
    """Simulations a move in an iteration of self-play, or GREEDY."""
    if iteration < config.selfplay.bootstrap_iterations:
        return GREEDY
    return simulations_at(config.search, iteration, config.iterations)


def _make_selfplay_at(
    config: RunConfig, network: Network, variant: Variant, devices: Devices
) -> Callable[[int], Callable[..., Any]]:
    def jitted(count: int) -> Any:
        selfplay = selfplay_of(config, count)

        def own(variables: Any, variant: Variant, boards: Position, key: jax.Array) -> Any:
            key, coin_key = jax.random.split(key)
            boards, plies, metrics = selfplay(variables, variant, boards, own_key(key), coin_key)
            return boards, plies, jax.lax.psum(metrics, AXIS)

        in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE)
        per_device = devices.per_device(own, in_specs, (BY_BOARD, ROWS_BY_BOARD, EVERYWHERE))
        return jax.jit(per_device, donate_argnums=2)

    counts = [simulations_of(config, iteration) for iteration in range(config.iterations)]
    if len(set(counts)) == 1:
        only = jitted(counts[0])
        return lambda iteration: only

    def shapes(tree: Any, spec: Any) -> Any:
        sharding = devices.sharding(spec)
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), tree
        )

    inputs = (
        shapes(network.shapes, EVERYWHERE),
        shapes(variant, BY_BOARD),
        shapes(jax.eval_shape(first_boards, variant), BY_BOARD),
        shapes(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
    )
    compiled: dict[int, Callable[..., Any]] = {}

    def selfplay_at(iteration: int) -> Callable[..., Any]:
        for count in counts[iteration:]:
            if count not in compiled:
                compiled[count] = jitted(count).lower(*inputs).compile()
        return compiled[simulations_of(config, iteration)]

    return selfplay_at
