"""The hours of a million games on a device, from what its compiler makes of a simulation of
self-play and of a step of the learner.

Nothing is measured, so each time has a low and a high end. On a TPU it is that of the compiler's
cycles, without and with CYCLES_AN_INDEX; on a GPU the starts of kernels, the host's reads, and the
slower of matrix products and memory, at the shares of ASSUMED. A ply counts as a simulation more:
it evaluates the root and plays a move.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax.numpy as jnp

from train.bench import trainer
from train.bench.report import short
from train.bench.trainer import MILLION
from train.config import RunConfig
from train.network import compute_dtype

OPTIMIZER_BYTES = 9 * 4
"""Bytes a parameter: AdamW with averaged weights reads gradient, weights, average and both moments,
and writes four of them."""
BACKWARD = 3
"""Numbers that a step of learning reads and writes, over those of an evaluation."""


class Assumed(NamedTuple):
    """What a GPU is assumed to need and to reach."""

    launch: float  # seconds, for the start of a kernel
    read: float  # seconds, for a condition that the host reads
    products: float  # share of its matrix products
    memory: float  # share of its memory's speed


ASSUMED = (Assumed(2e-6, 10e-6, 0.5, 0.8), Assumed(4e-6, 30e-6, 0.2, 0.5))
"""For the low and the high end."""


class Limits(NamedTuple):
    """A GPU, by its maker's data."""

    operations: float  # of matrix products a second, bfloat16, without sparsity
    bandwidth: float  # bytes a second of its memory


LIMITS = {
    "h100": Limits(989e12, 3.35e12),
    "h200": Limits(989e12, 4.8e12),
}
"""Source: NVIDIA H100 and H200 Tensor Core GPU Datasheets (SXM)."""


Ends = tuple[float, float]
"""The low and the high end of a range."""
Figures = Mapping[str, float | None]
"""`turn_ms`, `turn_ms_low`, `turn_kernels` and `turn_reads` of a compiled program."""


class MillionGames(NamedTuple):
    """A million games."""

    plies_a_game: float
    evaluations_a_position: float
    operations_an_evaluation: int
    parameters: int
    selfplay_operations: float
    learner_operations: float
    simulation_ms: Ends  # of all boards
    step_ms: Ends  # of the learner
    hours: Ends


def million_games(
    config: RunConfig, device: str, selfplay: Figures, learn: Figures, *, plies_a_game: float
) -> MillionGames | None:
    """Predict a million games, at the run's full number of simulations.

    Args:
      device: of LIMITS, or a TPU.
      selfplay: of a simulation of all boards.
      learn: of a step of the learner.
      plies_a_game: mean length of a game.

    Returns:
      None where a turn of self-play is no simulation of all boards (`search.rounds`, a frozen
      opponent), or nothing is known of the device.
    """
    shape, limits = config.selfplay, LIMITS.get(device)
    has_times = selfplay["turn_ms"] is not None or limits is not None
    if config.search.rounds or shape.opponent or not has_times:
        return None
    share = 1.0 if shape.full_search_prob is None else shape.full_search_prob
    evaluations = trainer.evaluations(config, share, 1.0)
    simulations = MILLION * plies_a_game / shape.boards * evaluations
    steps = MILLION * plies_a_game / (shape.boards * shape.plies) * config.learner.steps
    parts, dtype = trainer.census_of(config), config.network.dtype
    number = jnp.dtype("bfloat16" if dtype == "auto" else compute_dtype(dtype)).itemsize
    parameters = sum(part.parameters for part in parts)
    activations = number * sum(part.numbers for part in parts)
    # Operations of an evaluation of all boards and of a step of the learner, a multiply-add counted
    # as two, and bytes that they read and write.
    forward, batch = trainer.forward_operations(config), config.learner.batch
    evaluation, step = shape.boards * forward, batch * trainer.step_operations(config)
    evaluation_bytes = shape.boards * activations + number * parameters
    step_bytes = BACKWARD * batch * activations + OPTIMIZER_BYTES * parameters
    simulation_ms = _milliseconds(selfplay, evaluation, evaluation_bytes, limits)
    step_ms = _milliseconds(learn, step, step_bytes, limits)
    low, high = (
        (simulations * each + steps * of_step) / 3.6e6
        for each, of_step in zip(simulation_ms, step_ms, strict=True)
    )
    return MillionGames(
        plies_a_game,
        evaluations,
        operations_an_evaluation=forward,
        parameters=parameters,
        selfplay_operations=simulations * evaluation,
        learner_operations=steps * step,
        simulation_ms=simulation_ms,
        step_ms=step_ms,
        hours=(low, high),
    )


def _milliseconds(figures: Figures, operations: float, moved: float, limits: Limits | None) -> Ends:
    """The time of a turn with these operations and bytes."""
    low, high = figures["turn_ms_low"], figures["turn_ms"]
    if low is not None and high is not None:
        return low, high
    kernels, reads = figures["turn_kernels"], figures["turn_reads"]
    assert limits is not None and kernels is not None and reads is not None
    low, high = (
        1e3 * (kernels * each.launch + reads * each.read)
        + 1e3
        * max(
            operations / (each.products * limits.operations),
            moved / (each.memory * limits.bandwidth),
        )
        for each in ASSUMED
    )
    return low, high


def lines(games: MillionGames) -> Iterator[str]:
    """The prediction for the console."""
    yield (
        f"a million games of {games.plies_a_game:g} plies: "
        f"{games.evaluations_a_position:.3g} evaluations a position of "
        f"{short(games.operations_an_evaluation)} operations, {games.parameters:,} parameters; "
        f"operations of self-play {short(games.selfplay_operations)}, "
        f"of the learner {short(games.learner_operations)}"
    )
    yield (
        f"predicted, not measured: {_range(games.hours)} hours; a simulation of all boards "
        f"{_range(games.simulation_ms)} ms, a step of the learner {_range(games.step_ms)} ms"
    )


def _range(ends: Ends) -> str:
    return f"{ends[0]:.3g} to {ends[1]:.3g}"
