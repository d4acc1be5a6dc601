"""The trainer's own self-play, and the forward pass of its network alone.

The ratio of the two shows how near self-play is to the limit that its network sets. The network
alone evaluates ready planes in a loop, with the heads that the search reads, on the same number of
boards and the same devices. Self-play's evaluations are its roots and leaves, terminal ones
included.

B boards.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.describe import random_planes
from train.bench.harness.peak import OPERATIONS, forward_operations
from train.bench.harness.play import count_set
from train.bench.harness.program import compile_program, timed
from train.bench.harness.timing import CHECKSUM, Bench
from train.bench.parts.search import spread_boards
from train.config import RunConfig
from train.data.openings import no_opening
from train.data.selfplay import Boards
from train.loop.compiled_step import make_step
from train.loop.numbers import numbers_of
from train.network import cast_weights
from train.network.build import channels_of, network_for
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices
from train.runtime.host import fetch

SELFPLAY, FORWARD = "self-play", "network alone"


def steady(config: RunConfig, boards: int) -> RunConfig:
    """The config with that number of boards and without its first stages: no growing number of
    simulations, no bootstrap, no boosts of the prior. A frozen opponent is left out."""
    return dataclasses.replace(
        config,
        search=dataclasses.replace(config.search, first_simulations=0, prior_boost=()),
        selfplay=dataclasses.replace(
            config.selfplay, boards=boards, bootstrap_iterations=0, opponent=""
        ),
    )


def make_selfplay_bench(config: RunConfig, boards: int, devices: Devices) -> Bench:
    """Compile an iteration of self-play; boards begin anywhere in their games."""
    config = _with_batch_for(steady(config, boards), devices)
    step, numbers = make_step(config, devices), numbers_of(config)
    network = network_for(config.network, config.rules.players)
    everywhere = devices.sharding(EVERYWHERE)
    variables = jax.device_put(network.init(jax.random.key(0)), everywhere)
    _, positions = spread_boards(config.rules, boards, devices)
    opening = jax.device_put(no_opening(boards), devices.sharding(BY_BOARD))
    spread = Boards(positions, opening, seat=None)
    (_, compiled), stats = timed(lambda: ((traced := step.trace_play(0)), traced.lower().compile()))
    sum_up = jax.jit(_checksum)
    held, calls = [spread], 0

    def run(length: int) -> dict[str, float]:
        nonlocal calls
        done = {"games": 0.0, "positions": 0.0, "evaluations": 0.0, CHECKSUM: 0.0}
        pending = []
        for _ in range(length):
            calls += 1
            key = step.keys(calls).play
            held[0], plies, metrics = compiled(numbers, variables, step.variant, held[0], key)
            pending.append((sum_up(plies), metrics.sums))
        for checksum, metrics in fetch(pending):
            done["games"] += float(metrics.games)
            done["positions"] += float(metrics.positions)
            done["evaluations"] += evaluations(config, metrics)
            done[CHECKSUM] += int(checksum)
        return done

    return Bench(SELFPLAY, boards, run, stats)


def evaluations(config: RunConfig, metrics: Any) -> float:
    """Number of network evaluations of self-play: one at each root and at each simulation."""
    full, simulations = float(metrics.full), config.search.simulations
    cheap_simulations = min(config.selfplay.cheap_simulations, simulations)
    cheap = float(metrics.positions) - full
    return full * (simulations + 1) + cheap * (cheap_simulations + 1)


def make_forward_bench(config: RunConfig, boards: int, devices: Devices) -> Bench:
    """Compile evaluations of a network in a loop, each waiting for the one before."""
    players, size = config.rules.players, config.rules.size
    channels = channels_of(config.network, players)
    network = network_for(config.network, players)

    def forward(variables: Any, planes: jax.Array, length: jax.Array):
        def evaluate(_: jax.Array, carry: tuple[jax.Array, jax.Array]):
            planes, checksum = carry
            output = network.evaluate(variables, planes)
            # Never true, but all logits and values are needed to know it.
            top = jnp.maximum(output.policy.max(axis=(1, 2, 3)), output.value.max(axis=1))
            planes = planes ^ (top > 1e30)[:, None, None, None]
            return planes, checksum + count_set(top < 1e30)

        planes, checksum = jax.lax.fori_loop(0, length, evaluate, (planes, jnp.uint32(0)))
        return planes, jax.lax.psum(checksum, AXIS)

    everywhere = devices.sharding(EVERYWHERE)
    variables = cast_weights(network.init(jax.random.key(0)), config.network)
    variables = jax.device_put(variables, everywhere)
    planes = jax.device_put(
        random_planes(jax.random.key(1), boards, size, len(channels)), devices.sharding(BY_BOARD)
    )
    program = devices.per_device(
        forward, (EVERYWHERE, BY_BOARD, EVERYWHERE), (BY_BOARD, EVERYWHERE)
    )
    compiled = compile_program(program, (variables, planes, np.int32(1)), donate=(1,))
    held, operations = [planes], forward_operations(config)

    def run(length: int) -> dict[str, float]:
        held[0], checksum = compiled.call(variables, held[0], np.int32(length))
        done = boards * length
        return {
            "evaluations": done,
            OPERATIONS: done * operations,
            CHECKSUM: int(fetch(checksum)),
        }

    return Bench(FORWARD, boards, run, compiled.stats)


def _with_batch_for(config: RunConfig, devices: Devices) -> RunConfig:
    """The config with a batch that the devices can share; the learner does not run here."""
    learner = dataclasses.replace(config.learner, batch=devices.count)
    return dataclasses.replace(config, learner=learner)


def _checksum(plies: Any) -> jax.Array:
    """uint32[] that depends on every array of the plies."""
    return sum((count_set(x) for x in jax.tree.leaves(plies)), jnp.uint32(0))
