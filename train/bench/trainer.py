"""The trainer's own self-play and learner, each next to its network alone.

The ratio of a program to its network alone shows how near it is to the limit that the network sets.
For self-play that is the forward pass from ready planes, with the heads that the search reads, each
evaluation waiting for the one before; self-play's evaluations are its roots and leaves, terminal
ones included. For the learner it is forward and backward passes. Both have the same boards or
samples and the same devices. A multiply-add counts as two operations; convolutions count cells
beyond the border too. `train_a_little` trains a run for a while, and says what its speed means for
a million games.

B boards, N samples, H W cells, C planes.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.describe import random_planes
from train.bench.search import spread_boards
from train.bench.timing import (
    CHECKSUM,
    Benchmark,
    compile_traced,
    count_set,
    make_call_bench,
    make_loop_bench,
)
from train.config import EvaluationConfig, RunConfig
from train.data.exploration import no_opening
from train.data.selfplay import Boards
from train.loop import programs
from train.loop.iterations import iterations
from train.loop.programs import init, iteration_keys
from train.loop.reporting import save
from train.loop.stages import BOOTSTRAP, evaluations, simulations_of
from train.loop.tables import tables_of, variants_of
from train.metrics.rows import Row
from train.network import (
    Network,
    Part,
    Variables,
    cast_weights,
    census,
    channels_of,
    network_for,
)
from train.runtime.devices import BY_BOARD, EVERYWHERE, Devices

SELFPLAY, FORWARD = "self-play", "network alone"
LEARNER, BACKWARD = "learner", "network forward and backward"
STEPS = 8
"""Steps of the learner in one call."""
BOARDS, MOST_POSITIONS = 256, 50_000
"""Boards and most positions of the replay buffer that batches are sampled from."""


def make_selfplay_bench(config: RunConfig, boards: int, devices: Devices) -> Benchmark:
    """Compile an iteration of self-play; boards begin anywhere in their games."""
    config = steady(config, boards, devices.count)
    tables = tables_of(config, devices)
    variant = devices.place(variants_of(config), BY_BOARD)
    network = network_for(config.network, config.rules.players)
    variables = jax.device_put(network.init(jax.random.key(0)), devices.sharding(EVERYWHERE))
    positions = spread_boards(config.rules, boards, devices).position
    opening = jax.device_put(no_opening(boards), devices.sharding(BY_BOARD))
    spread = Boards(positions, opening, seat=None)
    key = iteration_keys(tables.learn, config.seed, 0).play
    simulations = simulations_of(config, 0)
    play, stats = compile_traced(
        lambda: programs.play.trace(tables.play, simulations, variables, variant, spread, key)
    )
    sum_up = jax.jit(lambda plies: sum(map(count_set, jax.tree.leaves(plies)), jnp.uint32(0)))

    def call(boards: Boards, number: int) -> tuple[Boards, dict[str, jax.Array]]:
        key = iteration_keys(tables.learn, config.seed, number).play
        boards, plies, metrics = play(tables.play, variables, variant, boards, key)
        sums = {name: getattr(metrics.sums, name) for name in ("positions", "full")}
        sums["games"] = metrics.by_board.games
        return boards, sums | {CHECKSUM: sum_up(plies)}

    def amounts(length: int, sums: dict[str, float]) -> dict[str, float]:
        full = sums.pop("full")
        return sums | {"evaluations": evaluations(config, full, sums["positions"])}

    return make_call_bench(SELFPLAY, boards, call, spread, stats, amounts)


def steady(config: RunConfig, boards: int, batch: int) -> RunConfig:
    """The config with those numbers of boards and samples and without its first stages: no growing
    number of simulations, no bootstrap, no boosts of the prior. A frozen opponent is left out."""
    return dataclasses.replace(
        config,
        search=dataclasses.replace(config.search, first_simulations=0, prior_boost=()),
        selfplay=dataclasses.replace(
            config.selfplay, boards=boards, bootstrap_iterations=0, opponent=""
        ),
        learner=dataclasses.replace(config.learner, batch=batch),
    )


def make_forward_bench(
    config: RunConfig, boards: int, devices: Devices, name: str = FORWARD
) -> Benchmark:
    """Compile evaluations of a network in a loop, each waiting for the one before."""
    network, planes = _network_and_planes(config, boards)

    def evaluate(variables: Variables, planes: jax.Array, key: jax.Array):
        output = network.evaluate(variables, planes)
        # Never true, but all logits and values are needed to know it.
        top = jnp.maximum(output.policy.max(axis=(1, 2, 3)), output.value.max(axis=1))
        return planes ^ (top > 1e30)[:, None, None, None], {CHECKSUM: count_set(top < 1e30)}

    def amounts(length: int, sums: dict[str, float]) -> dict[str, float]:
        return sums | {"evaluations": boards * length}

    variables = cast_weights(network.init(jax.random.key(0)), config.network)
    return make_loop_bench(name, boards, evaluate, variables, planes, devices, amounts)


def make_learner_bench(config: RunConfig, batch: int, devices: Devices) -> Benchmark:
    """Compile the trainer's steps on batches sampled from random games."""
    boards = max(BOARDS // devices.count, 1) * devices.count
    rows = max(min(config.replay.positions, MOST_POSITIONS) // boards, 2 * config.rules.max_plies)
    config = steady(config, boards, batch)
    config = dataclasses.replace(
        config,
        selfplay=dataclasses.replace(
            config.selfplay, bootstrap_iterations=1, bootstrap_player="random"
        ),
        learner=dataclasses.replace(config.learner, steps=STEPS),
        replay=dataclasses.replace(config.replay, positions=rows * boards),
    )
    tables = tables_of(config, devices)
    variant = devices.place(variants_of(config), BY_BOARD)
    state = init(tables, variant, config.seed)
    boards_now, replay, weights = state.boards, state.replay_state, state.learner.weights
    for index in range(-(-rows // config.selfplay.plies)):
        key = iteration_keys(tables.learn, config.seed, index).play
        boards_now, played, _ = programs.play(
            tables.play, BOOTSTRAP, weights, variant, boards_now, key
        )
        replay, _ = programs.write(tables.learn.place, replay, played)
    keys = iteration_keys(tables.learn, config.seed, 0).learn
    _, stats = compile_traced(
        lambda: programs.trace_learning(tables.learn, state.learner, replay, variant, keys)
    )

    def call(learner: Any, number: int) -> tuple[Any, dict[str, Any]]:
        keys = iteration_keys(tables.learn, config.seed, number).learn
        learner, metrics = programs.learn(tables.learn, learner, replay, variant, keys, STEPS)
        return learner, {CHECKSUM: [(each.losses.loss, each.gradient_norm) for each in metrics]}

    def amounts(length: int, sums: dict[str, Any]) -> dict[str, float]:
        steps, checks = length * STEPS, jax.tree.leaves(sums[CHECKSUM])
        return {"steps": steps, "positions": steps * batch, CHECKSUM: _bits(sum(checks))}

    return make_call_bench(LEARNER, batch, call, state.learner, stats, amounts)


def _bits(number: float) -> int:
    """A checksum of a number: the bits of its float32."""
    return int(np.float32(number).view(np.uint32))


def make_backward_bench(config: RunConfig, batch: int, devices: Devices) -> Benchmark:
    """Compile forward and backward passes: one a call on CPU, STEPS a call on accelerators, as the
    learner does."""
    network, planes = _network_and_planes(config, batch)
    steps_a_call = 1 if jax.default_backend() == "cpu" else STEPS
    everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
    variables = jax.device_put(_stirred(network.init(jax.random.key(0))), everywhere)
    planes = jax.device_put(planes, by_board)
    jitted = jax.jit(
        _make_backward(network, steps_a_call), donate_argnums=0, out_shardings=everywhere
    )
    program, stats = compile_traced(lambda: jitted.trace(variables, planes))

    def call(variables: Variables, number: int) -> tuple[Variables, dict[str, jax.Array]]:
        value = jnp.float32(0)
        for _ in range(STEPS // steps_a_call):
            variables, value = program(variables, planes)
        return variables, {CHECKSUM: value}

    def amounts(length: int, sums: dict[str, float]) -> dict[str, float]:
        steps = length * STEPS
        return {"steps": steps, "positions": steps * batch, CHECKSUM: _bits(sums[CHECKSUM])}

    return make_call_bench(BACKWARD, batch, call, variables, stats, amounts)


def _make_backward(
    network: Network, steps: int
) -> Callable[[Any, jax.Array], tuple[Any, jax.Array]]:
    """That number of forward and backward passes: (variables, planes [N, H, W, C]) -> variables and
    the last loss, float32[]."""

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

    def repeated(variables: Any, planes: jax.Array) -> tuple[Any, jax.Array]:
        variables, values = jax.lax.scan(
            lambda v, _: step(v, planes), variables, None, length=steps
        )
        return variables, values[-1]

    return step if steps == 1 else repeated


def _stirred(variables: Variables) -> Variables:
    """The weights with a little noise: last layers that begin at zero would return zero gradients
    or, after a tiny step, subnormal numbers, which CPUs compute slowly."""
    leaves, tree = jax.tree.flatten(variables.params)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    moved = [
        x + 0.05 * jax.random.normal(key, x.shape) for x, key in zip(leaves, keys, strict=True)
    ]
    return variables._replace(params=jax.tree.unflatten(tree, moved))


def census_of(config: RunConfig) -> tuple[Part, ...]:
    """The parts of a config's network on a board of its rules."""
    channels = channels_of(config.network, config.rules.players)
    return census(config.network, channels, size=config.rules.size)


def _network_and_planes(config: RunConfig, boards: int) -> tuple[Network, jax.Array]:
    """The network of a config, and random planes bool[B, H, W, C] for it."""
    players, size = config.rules.players, config.rules.size
    channels = len(channels_of(config.network, players))
    planes = random_planes(jax.random.key(1), boards, size, channels)
    return network_for(config.network, players), planes


MILLION = 1_000_000
ITERATIONS, MINUTES = 3, 5.0
"""Length of a report's training on a CPU, and on an accelerator."""


def train_a_little(config: RunConfig, directory: Path, minutes: float | None) -> list[str]:
    """Train a new run of the config for a while without matches and save it; it can be resumed.

    Args:
      config: the run.
      directory: of the report; the run lies below it.
      minutes: length from the end of the first compiling, the iteration under way is finished;
        None for ITERATIONS on a CPU, and for MINUTES on an accelerator.

    Returns:
      Lines on its speed.
    """
    runs, number = directory / "runs", 1
    while (runs / f"{config.name}-{number}").exists():
        number += 1
    matches = EvaluationConfig(every=0, opponents=(), anchors=())
    short = dataclasses.replace(config, name=f"{config.name}-{number}", evaluation=matches)
    if minutes is None and jax.default_backend() == "cpu":
        short, minutes = dataclasses.replace(short, iterations=ITERATIONS), math.inf
    seconds = 60 * (MINUTES if minutes is None else minutes)
    rows = []
    with contextlib.closing(iterations(short, runs / short.name)) as run:
        next(run)
        started = time.perf_counter()
        took = 0.0
        for now in run:
            rows.append(now.row)
            took = time.perf_counter() - started
            if took >= seconds:
                save(now.run, now.state, now.row)
                break
    return [
        f"{len(rows)} iterations of `{config.name}`: {took:.0f} s, compilation left out",
        *training_lines(rows),
        f"metrics in `runs/{short.name}`",
    ]


def training_lines(rows: Sequence[Row]) -> list[str]:
    """The last iteration's times, and the hours that a million games would take in its stage.

    Games end in waves, so they are counted by their plies: by the positions a second of the stage's
    iterations after the first of the run, and the mean length of the games that ended.
    """
    last = rows[-1]
    stage = [row for row in rows if row["simulations"] == last["simulations"]]
    later = [row for row in stage if row is not rows[0]] or stage
    seconds = sum(row["selfplay_seconds"] + row["learn_seconds"] for row in later)
    speed = sum(row["positions"] for row in later) / seconds
    lines = [
        f"the last: {last['selfplay_seconds']:.1f} s of self-play, {last['learn_seconds']:.1f} s "
        "of learning"
    ]
    if games := sum(row["games"] for row in stage):
        length = sum(row["games"] * (row["mean_length"] or 0) for row in stage) / games
        search = last["simulations"]
        name = f"stage of {search} simulations" if search else "bootstrap"
        lines.append(
            f"a million games of {length:.1f} plies, at {speed:,.0f} positions a second in the "
            f"{name}: {MILLION * length / speed / 3600:.3g} hours"
        )
    return lines
