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

from train.bench.harness import peak
from train.bench.parts.memory import WORD
from train.config import RunConfig
from train.network import census, compute_dtype
from train.network.build import channels_of

LATENCY = 1e-5
"""Seconds that a sum over two devices takes whatever its size; 2 log2 n times as much over n."""
OPTIMIZER_WORDS = 9
"""AdamW with averaged weights reads gradient, weights, average, both moments, and writes four."""
BACKWARD = 3
"""Numbers that a step of learning reads and writes, over those of an evaluation."""
MILLION = 1_000_000
DEVICES = (8, 64)


class Assumed(NamedTuple):
    """What a GPU is assumed to need and to reach."""

    launch: float  # seconds, for the start of a kernel
    read: float  # seconds, for a condition that the host reads
    products: float  # share of its matrix products
    memory: float  # share of its memory's speed


ASSUMED = (Assumed(2e-6, 10e-6, 0.5, 0.8), Assumed(4e-6, 30e-6, 0.2, 0.5))
"""For the low and the high end."""


class Limits(NamedTuple):
    """A device, by its maker's data."""

    operations: float  # of matrix products a second, bfloat16, without sparsity
    bandwidth: float  # bytes a second of its memory
    link: float  # bytes a second to its neighbours, each way
    far_link: float  # beyond `near` devices
    near: int


LIMITS = {
    "h100": Limits(989e12, 3.35e12, 450e9, 50e9, 8),
    "h200": Limits(989e12, 4.8e12, 450e9, 50e9, 8),
    "v5e": Limits(197e12, 819e9, 50e9, 50e9, 256),
}
"""Sources: NVIDIA H100 and H200 Tensor Core GPU Datasheets (SXM); DGX H100 User Guide (400 Gbit/s a
GPU); Google Cloud Documentation, TPU v5e (1,600 Gbit/s a chip over four links)."""


class Work(NamedTuple):
    """Matrix products of a turn, a multiply-add counted as two operations, and bytes that they read
    and write."""

    operations: float
    bytes: float


class Ends(NamedTuple):
    """The ends of a range."""

    low: float
    high: float


class MillionGames(NamedTuple):
    """A million games, JSON-ready with `_asdict`."""

    plies_a_game: float
    evaluations_a_position: float
    operations_an_evaluation: int
    parameters: int
    selfplay_operations: float
    learner_operations: float
    simulation_ms: Ends  # of all boards
    step_ms: Ends  # of the learner
    hours: Ends
    sums: dict[int, Ends]
    """By the number of devices, each with this many boards and samples, the share of their time in
    which gradients are summed; empty where no data of their links are known."""


Figures = Mapping[str, float | None]
"""`turn_ms`, `turn_ms_low`, `turn_kernels` and `turn_reads` of a compiled program."""


def million_games(
    config: RunConfig, device: str, selfplay: Figures, learn: Figures, *, plies_a_game: float
) -> MillionGames | None:
    """Predict a million games, at the run's full number of simulations.

    Args:
      device: of LIMITS, or a TPU of another kind.
      selfplay: of a simulation of all boards.
      learn: of a step of the learner.
      plies_a_game: mean length of a game.

    Returns:
      None where a turn of self-play is no simulation of all boards (`search.rounds`, a frozen
      opponent), or nothing is known of the device.
    """
    own, limits = config.selfplay, LIMITS.get(device)
    has_times = selfplay["turn_ms"] is not None or limits is not None
    if config.search.rounds or own.opponent or not has_times:
        return None
    evaluations = evaluations_a_position(config)
    simulations = MILLION * plies_a_game / own.boards * evaluations
    steps = MILLION * plies_a_game / (own.boards * own.plies) * config.learner.steps
    evaluation, step, parameters = _work(config)
    simulation_times = _seconds(selfplay, evaluation, limits)
    step_times = _seconds(learn, step, limits)
    seconds = [
        simulations * of_simulation + steps * of_step
        for of_simulation, of_step in zip(simulation_times, step_times, strict=True)
    ]
    sums = {}
    if limits is not None:
        for count in DEVICES:
            summed = steps * sum_seconds(parameters, limits, count)
            sums[count] = Ends(*sorted(summed / (summed + each) for each in seconds))
    return MillionGames(
        plies_a_game=plies_a_game,
        evaluations_a_position=evaluations,
        operations_an_evaluation=peak.forward_operations(config),
        parameters=parameters,
        selfplay_operations=simulations * evaluation.operations,
        learner_operations=steps * step.operations,
        simulation_ms=Ends(*(each * 1e3 for each in simulation_times)),
        step_ms=Ends(*(each * 1e3 for each in step_times)),
        hours=Ends(*(each / 3600 for each in seconds)),
        sums=sums,
    )


def evaluations_a_position(config: RunConfig) -> float:
    """Evaluations of the network for a ply of self-play: its root's and one a simulation."""
    full, most = config.selfplay.full_search_prob, config.search.simulations
    cheap = min(config.selfplay.cheap_simulations, most)
    return 1 + full * most + (1 - full) * cheap


def _work(config: RunConfig) -> tuple[Work, Work, int]:
    """Work of an evaluation of all boards and of a step of the learner, and the parameters."""
    channels = channels_of(config.network, config.rules.players)
    parts = census(config.network, channels, size=config.rules.size)
    parameters = sum(part.parameters for part in parts)
    dtype = config.network.dtype
    number = jnp.dtype("bfloat16" if dtype == "auto" else compute_dtype(dtype)).itemsize
    activations = number * sum(part.numbers for part in parts)
    boards, batch = config.selfplay.boards, config.learner.batch
    evaluation = Work(
        boards * peak.forward_operations(config), boards * activations + number * parameters
    )
    step = Work(
        batch * peak.step_operations(config),
        BACKWARD * batch * activations + OPTIMIZER_WORDS * WORD * parameters,
    )
    return evaluation, step, parameters


def _seconds(figures: Figures, work: Work, limits: Limits | None) -> Ends:
    """The time of a turn."""
    low, high = figures["turn_ms_low"], figures["turn_ms"]
    if low is not None and high is not None:
        return Ends(low / 1e3, high / 1e3)
    kernels, reads = figures["turn_kernels"], figures["turn_reads"]
    assert limits is not None and kernels is not None and reads is not None
    ends = (
        kernels * each.launch
        + reads * each.read
        + max(
            work.operations / (each.products * limits.operations),
            work.bytes / (each.memory * limits.bandwidth),
        )
        for each in ASSUMED
    )
    return Ends(*ends)


def sum_seconds(parameters: int, limits: Limits, devices: int) -> float:
    """Seconds of a sum of gradients over several devices: 2 (n - 1) / n of the gradients over the
    slowest link, and its latency."""
    link = limits.link if devices <= limits.near else limits.far_link
    moved = 2 * (devices - 1) / devices * WORD * parameters / link
    return moved + LATENCY * 2 * (devices - 1).bit_length()


def lines(found: MillionGames) -> Iterator[str]:
    """The prediction for the console."""
    yield (
        f"a million games of {found.plies_a_game:g} plies: "
        f"{found.evaluations_a_position:.3g} evaluations a position of "
        f"{_short(found.operations_an_evaluation)} operations, {found.parameters:,} parameters; "
        f"operations of self-play {_short(found.selfplay_operations)}, "
        f"of the learner {_short(found.learner_operations)}"
    )
    yield (
        f"predicted, not measured: {_range(found.hours)} hours; a simulation of all boards "
        f"{_range(found.simulation_ms)} ms, a step of the learner {_range(found.step_ms)} ms"
    )
    if found.sums:
        shares = (
            f"{each.low:.1%} to {each.high:.1%} on {count}" for count, each in found.sums.items()
        )
        yield f"share of the time for sums of gradients: {', '.join(shares)} such devices"


def _range(ends: Ends) -> str:
    return f"{ends.low:.3g} to {ends.high:.3g}"


def _short(number: float) -> str:
    for size, letter in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:,.0f}"
