"""The trainer's own learner, and the forward and backward pass of its network alone.

N samples.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.describe import random_planes
from train.bench.harness.peak import OPERATIONS, step_operations
from train.bench.harness.program import compile_program, timed
from train.bench.harness.timing import CHECKSUM, Bench
from train.bench.parts.search import random_search
from train.bench.parts.selfplay import steady
from train.config import RunConfig
from train.data.config import SelfPlayConfig
from train.data.selfplay import make_selfplay
from train.loop.compiled_step import CompiledStep, make_step
from train.loop.train_step import TrainState
from train.network import Network, Variables
from train.network.build import channels_of, network_for
from train.runtime.devices import BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, Devices, device_key
from train.runtime.host import fetch

LEARNER, BACKWARD = "learner", "network forward and backward"
STEPS = 8
"""Steps of the learner in one call."""
BOARDS, MOST_POSITIONS = 256, 50_000
"""Boards and most positions of the replay buffer that batches are sampled from."""


def make_learner_bench(config: RunConfig, batch: int, devices: Devices) -> Bench:
    """Compile the trainer's steps on batches sampled from random games."""
    config = _with_batch(config, batch, devices)
    step = make_step(config, devices)
    state = _filled(config, step, devices)
    _, stats = timed(lambda: (step.learning.trace(), step.learning.compiled))
    held, calls = [state.learner], 0

    def run(length: int) -> dict[str, float]:
        nonlocal calls
        pending = []
        for _ in range(length):
            calls += 1
            keys = step.keys(calls).learn
            held[0], metrics = step.learn(held[0], state.replay_state, keys, STEPS)
            pending.append([(each.losses.loss, each.gradient_norm) for each in metrics])
        checksum = sum(
            int(np.asarray(x, np.float32).view(np.uint32).sum(dtype=np.uint64))
            for x in jax.tree.leaves(fetch(pending))
        )
        fetch(jax.tree.leaves(held[0].variables.params)[0])
        steps = length * STEPS
        return {"steps": steps, "positions": steps * batch, CHECKSUM: checksum}

    return Bench(LEARNER, batch, run, stats)


def _with_batch(config: RunConfig, batch: int, devices: Devices) -> RunConfig:
    boards = max(BOARDS // devices.count, 1) * devices.count
    config = steady(config, boards)
    positions = min(config.replay.positions, MOST_POSITIONS)
    rows = max(positions // boards, 2 * config.rules.max_plies)
    return dataclasses.replace(
        config,
        learner=dataclasses.replace(config.learner, batch=batch, steps=STEPS),
        replay=dataclasses.replace(config.replay, positions=rows * boards),
    )


def _filled(config: RunConfig, step: CompiledStep, devices: Devices) -> TrainState:
    """A run's first state, with a replay buffer full of random games."""
    state = step.init()
    plies, weight = config.selfplay.plies, config.selfplay.policy_surprise_weight
    random_play = make_selfplay(
        random_search(),
        SelfPlayConfig(plies=plies, policy_surprise_weight=weight),
        has_root_value=config.learner.value_mix > 0,
    )

    def own(variant: Any, boards: Any, key: jax.Array) -> Any:
        return random_play((), variant, boards, device_key(key))[:2]

    program = jax.jit(
        devices.per_device(own, (BY_BOARD, BY_BOARD, EVERYWHERE), (BY_BOARD, ROWS_BY_BOARD))
    )
    boards, replay_state = state.boards, state.replay_state
    rows = replay_state.plies.terminated.shape[0]
    for index in range(-(-rows // config.selfplay.plies)):
        boards, plies = program(step.variant, boards, step.keys(index).play)
        replay_state, _ = step.write(replay_state, plies)
    if not fetch(replay_state.finished).reshape(devices.count, -1).any(axis=1).all():
        raise RuntimeError(f"{rows} plies of random games hold no whole game")
    return state._replace(boards=boards, replay_state=replay_state)


def make_backward_bench(config: RunConfig, batch: int, devices: Devices) -> Bench:
    """Compile forward and backward passes: one a call on CPU, STEPS a call on accelerators, as the
    learner does."""
    players, size = config.rules.players, config.rules.size
    channels = channels_of(config.network, players)
    network = network_for(config.network, players)
    step, steps_a_call = _make_backward(network), 1
    if jax.default_backend() != "cpu":
        step, steps_a_call = _repeat(step), STEPS
    everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
    variables = jax.device_put(_stirred(network.init(jax.random.key(0))), everywhere)
    planes = jax.device_put(random_planes(jax.random.key(1), batch, size, len(channels)), by_board)
    jitted = jax.jit(step, donate_argnums=0, out_shardings=everywhere)
    compiled = compile_program(jitted, (variables, planes))
    held, operations = [variables], step_operations(config)

    def run(length: int) -> dict[str, float]:
        value = jnp.float32(0)
        for _ in range(length * STEPS // steps_a_call):
            held[0], value = compiled.call(held[0], planes)
        checksum = int(np.asarray(fetch(value)).view(np.uint32))
        fetch(jax.tree.leaves(held[0].params)[0])
        done = length * STEPS
        return {
            "steps": done,
            "positions": done * batch,
            OPERATIONS: done * batch * operations,
            CHECKSUM: checksum,
        }

    return Bench(BACKWARD, batch, run, compiled.stats)


_Backward = Callable[[Any, jax.Array], tuple[Any, jax.Array]]
"""(variables, planes [N, H, W, C]) -> variables and a loss, float32[]."""


def _make_backward(network: Network) -> _Backward:
    """One forward and backward pass."""

    def step(variables: Any, planes: jax.Array) -> tuple[Any, jax.Array]:
        def loss(params: Any) -> tuple[jax.Array, Any]:
            output, stats = network.evaluate_batch(variables._replace(params=params), planes)
            # Each output of a head gets a gradient of about the same size, and no two the same.
            losses = [jnp.square(x - 1).mean() for x in jax.tree.leaves(output)]
            return jnp.stack(losses).sum(), stats

        (value, stats), gradient = jax.value_and_grad(loss, has_aux=True)(variables.params)
        # The next step depends on this gradient, though the factor leaves the weights as they are.
        params = jax.tree.map(lambda x, g: x - 1e-30 * g, variables.params, gradient)
        return variables._replace(params=params, batch_stats=stats), value

    return step


def _repeat(step: _Backward) -> _Backward:
    """STEPS passes as one program."""

    def steps(variables: Any, planes: jax.Array) -> tuple[Any, jax.Array]:
        variables, values = jax.lax.scan(
            lambda v, _: step(v, planes), variables, None, length=STEPS
        )
        return variables, values[-1]

    return steps


def _stirred(variables: Variables) -> Variables:
    """The weights with a little noise: last layers that begin at zero would return zero gradients
    or, after a tiny step, subnormal numbers, which CPUs compute slowly."""
    leaves, tree = jax.tree.flatten(variables.params)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    moved = [
        x + 0.05 * jax.random.normal(key, x.shape) for x, key in zip(leaves, keys, strict=True)
    ]
    return variables._replace(params=jax.tree.unflatten(tree, moved))
