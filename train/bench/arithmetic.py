"""The arithmetic of a run: operations and bytes of each stage of an iteration, and the time that
devices of known limits need for them. Nothing is measured."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from rich.console import Group
from rich.table import Table
from rich.text import Text

from train.bench.harness import peak
from train.bench.parts import memory
from train.bench.report import short
from train.config import RunConfig, config_to_dict
from train.data import replay
from train.network import census, compute_dtype
from train.network.build import channels_of, observer_for
from train.network.parts import inner_programs, sum_equations
from train.programs.assembly import make_parts
from train.programs.replay import replay_rows
from train.runtime.devices import all_devices
from wallgo_jax import observation
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import State, initial_state, sizes_of

MATRIX_SHARE, MEMORY_SHARE, WORD_SHARE = 0.2, 0.5, 0.2
"""Shares of a device's limits that are assumed: of matrix products, of its memory, of words."""
WAY_DOWN = 2.2
"""Nodes below the root that a simulation reads, the mean of a search of 32 simulations."""
LATENCY = 1e-5
"""Seconds that a sum over two devices takes whatever its size; 2 log2 n times as much over n."""
OPTIMIZER_WORDS = 9
"""AdamW with averaged weights reads gradient, weights, average, both moments, and writes four."""
BACKWARD = 3
"""Numbers that a step of learning reads and writes, over those of an evaluation."""
MILLION = 1_000_000
DEVICES = (1, 8, 64)


class Limits(NamedTuple):
    """A device, by its maker's data."""

    name: str
    operations: float  # of matrix products a second, bfloat16, without sparsity
    bandwidth: float  # bytes a second of its memory
    words: float | None  # operations a second on 32-bit words; None where the maker tells none
    link: float  # bytes a second to its neighbours, each way
    far_link: float  # beyond `near` devices
    near: int
    source: str


_HOPPER_WORDS = 132 * 64 * 1.755e9
LIMITS = (
    Limits(
        *("H100", 989e12, 3.35e12, _HOPPER_WORDS, 450e9, 50e9, 8),
        source="NVIDIA H100 Tensor Core GPU Datasheet (SXM); CUDA C++ Programming Guide, "
        "Throughput of Native Arithmetic Instructions; DGX H100 User Guide (400 Gbit/s a GPU)",
    ),
    Limits(
        *("H200", 989e12, 4.8e12, _HOPPER_WORDS, 450e9, 50e9, 8),
        source="NVIDIA H200 Tensor Core GPU Datasheet (SXM); the rest as H100",
    ),
    Limits(
        *("v5e", 197e12, 819e9, None, 50e9, 50e9, 256),
        source="Google Cloud Documentation, TPU v5e (1,600 Gbit/s a chip over four links)",
    ),
)


class Stage(NamedTuple):
    """The work of one stage in an iteration, on all devices together."""

    name: str
    products: float  # operations of matrix products, a multiply-add counted as two
    words: float  # operations on 32-bit words
    bytes: float  # read and written in the devices' memory
    measured_by: str  # the figure of `bench` that the prediction is held against


class Arithmetic(NamedTuple):
    """A run's work."""

    config: RunConfig
    stages: tuple[Stage, ...]
    positions: int  # of an iteration
    evaluations: float  # of the network, in an iteration of self-play
    parameters: int
    plies_a_game: float

    @property
    def games(self) -> float:
        """Games of an iteration."""
        return self.positions / self.plies_a_game


def arithmetic_of(config: RunConfig, *, plies_a_game: float) -> Arithmetic:
    """Count the work of an iteration from the config alone, at its full number of simulations.

    Args:
      config: the run.
      plies_a_game: mean length of a game.
    """
    own, search = config.selfplay, config.search
    rules, learner = config.rules, config.learner
    positions = own.boards * own.plies
    full = own.full_search_prob
    cheap = min(own.cheap_simulations, search.simulations)
    simulations = positions * (full * search.simulations + (1 - full) * cheap)
    evaluations = positions + simulations
    parts = census(config.network, channels_of(config.network, rules.players), size=rules.size)
    parameters = sum(part.parameters for part in parts)
    number = jnp.dtype(_dtype_on_accelerators(config)).itemsize
    activations = number * sum(part.numbers for part in parts)
    batches = evaluations / own.boards
    samples = learner.steps * learner.batch
    ply = position_bytes(config)
    stages = (
        Stage(
            "network",
            products=evaluations * peak.forward_operations(config),
            words=0,
            bytes=evaluations * activations + batches * number * parameters,
            measured_by="network alone, evaluations",
        ),
        Stage(
            "game",
            products=0,
            words=evaluations * words_of_a_step(config),
            bytes=evaluations * 2 * memory.position_bytes(rules),
            measured_by="core, plies",
        ),
        Stage(
            "tree",
            products=0,
            words=0,
            bytes=simulations * bytes_of_a_simulation(config),
            measured_by="search without a network, simulations",
        ),
        Stage(
            "replay",
            products=0,
            words=0,
            bytes=2 * ply * (positions + samples),
            measured_by="learner over its network",
        ),
        Stage(
            "learner",
            products=samples * peak.step_operations(config),
            words=0,
            bytes=BACKWARD * samples * activations,
            measured_by="network forward and backward, positions",
        ),
        Stage(
            "optimizer",
            products=0,
            words=0,
            bytes=learner.steps * OPTIMIZER_WORDS * memory.WORD * parameters,
            measured_by="learner over its network",
        ),
    )
    return Arithmetic(config, stages, positions, evaluations, parameters, plies_a_game)


def _dtype_on_accelerators(config: RunConfig) -> Any:
    name = config.network.dtype
    return "bfloat16" if name == "auto" else compute_dtype(name)


def position_bytes(config: RunConfig) -> int:
    """Bytes of one ply in the replay."""
    plies = make_parts(config, all_devices(1)).plies
    like = jax.eval_shape(functools.partial(replay.init, replay_rows(config), plies))
    return replay.position_bytes(like)


def bytes_of_a_simulation(config: RunConfig) -> float:
    """Bytes that a simulation reads and writes in its board's tree: the nodes on the way down, with
    visits and Q-values of their children, a new node, and the way up."""
    slots = sizes_of(config.rules).num_slots
    child = memory.engine_node_bytes(config, config.search.simulations)
    root = slots * memory.WORD * (1 + memory.WORDS_BY_ROOT_SLOT)
    seen = slots * memory.WORD * 2
    way_up = 6 * memory.WORD * (WAY_DOWN + 1)
    return root + WAY_DOWN * (child + seen) + child + way_up


def words_of_a_step(config: RunConfig) -> int:
    """Operations on words of a ply by the rules, with legal slots and planes, as an accelerator
    takes it: every number that an equation makes counts as one."""
    fresh = jax.tree.map(jnp.asarray, initial_state(config.rules))
    observe = observer_for(config.network)

    def step(state: State, slot: jax.Array) -> Any:
        after, _, analysis = referee.play_with_analysis(state, slot)
        known = observation.Precomputed(before=None, analysis=analysis)
        legal = actions.legal_slots(after, terrain=analysis.terrain)
        return after, legal, observe(after, known)

    return count_numbers(jax.make_jaxpr(step)(fresh, jnp.int32(0)))


def count_numbers(program: Any, platform: str = "cuda") -> int:
    """Numbers that the equations of a program make on a platform, those of loops each turn."""
    inner = functools.partial(_inner, platform=platform)

    def own(equation: Any) -> int:
        if inner(equation):
            return 0
        return sum(x.aval.size for x in equation.outvars if hasattr(x.aval, "size"))

    def turns(equation: Any) -> int:
        return equation.params["length"] if equation.primitive.name == "scan" else 1

    return sum_equations(program, own, inner, turns)


def _inner(equation: Any, platform: str) -> list[Any]:
    """The programs inside an equation; of those for several platforms the one that is taken."""
    branches = equation.params.get("branches_platforms")
    if branches is None:
        return inner_programs(equation)
    taken = [platform in (names or (platform,)) for names in branches].index(True)
    return [equation.params["branches"][taken]]


class Time(NamedTuple):
    """The time of a stage on a device, and the limit that decides it."""

    seconds: float
    limit: str  # `products`, `words` or `memory`


def time_of(stage: Stage, limits: Limits) -> Time:
    """The time of a stage on one device at the shares that are assumed."""
    times = [
        Time(stage.products / (MATRIX_SHARE * limits.operations), "products"),
        Time(stage.bytes / (MEMORY_SHARE * limits.bandwidth), "memory"),
    ]
    if limits.words:
        times.append(Time(stage.words / (WORD_SHARE * limits.words), "words"))
    return max(times)


def collective_seconds(found: Arithmetic, limits: Limits, devices: int) -> float:
    """Seconds an iteration for the sums of gradients over several devices: each is 2 (n - 1) / n of
    the gradients over the slowest link, and its latency."""
    if devices == 1:
        return 0.0
    link = limits.link if devices <= limits.near else limits.far_link
    moved = 2 * (devices - 1) / devices * memory.WORD * found.parameters / link
    latency = LATENCY * 2 * (devices - 1).bit_length()
    return found.config.learner.steps * (moved + latency)


class Hours(NamedTuple):
    """Hours for a million games on a number of devices."""

    devices: int
    hours: float
    collectives: float  # their share of the time


def hours_for_a_million(found: Arithmetic, limits: Limits, devices: int) -> Hours:
    """Hours for a million games if boards and samples are shared by the devices."""
    work = sum(time_of(stage, limits).seconds for stage in found.stages) / devices
    sums = collective_seconds(found, limits, devices)
    iterations = MILLION / found.games
    return Hours(devices, iterations * (work + sums) / 3600, sums / (work + sums))


def table(found: Arithmetic) -> Group:
    """The arithmetic for the console."""
    shown = Table(title=f"An iteration of {found.config.name}", title_justify="left")
    for index, head in enumerate(("", "products", "words", "bytes", *(x.name for x in LIMITS))):
        shown.add_column(head, justify="right" if index else "left", no_wrap=True)
    for stage in found.stages:
        times = (time_of(stage, limits) for limits in LIMITS)
        shown.add_row(
            stage.name,
            *(short(work) if work else "-" for work in (stage.products, stage.words, stage.bytes)),
            *(f"{_in_time(time.seconds)} {time.limit[0]}" for time in times),
        )
    return Group(shown, *(Text(line) for line in lines(found)))


def _in_time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def lines(found: Arithmetic) -> Iterator[str]:
    """What the table counts on, and the hours for a million games."""
    yield "p, w, m: the time is that of products, words or memory"
    yield (
        f"{found.positions:,} positions, {found.games:,.0f} games of {found.plies_a_game:g} plies, "
        f"{found.evaluations / found.positions:.3g} evaluations a position, "
        f"{found.parameters:,} parameters"
    )
    yield (
        f"assumed: {MATRIX_SHARE:.0%} of the device's matrix products, {MEMORY_SHARE:.0%} of its "
        f"memory's speed, {WORD_SHARE:.0%} of its words"
    )
    for limits in LIMITS:
        told = [hours_for_a_million(found, limits, count) for count in DEVICES]
        one, *more = (f"{x.hours:.3g} h on {x.devices}" for x in told)
        sums = (
            f"{text} ({x.collectives:.0%} sums)" for text, x in zip(more, told[1:], strict=True)
        )
        yield f"a million games, {limits.name}: " + ", ".join((one, *sums))


def record(found: Arithmetic) -> dict[str, Any]:
    """The arithmetic, JSON-ready."""
    return {
        "config": config_to_dict(found.config),
        "plies_a_game": found.plies_a_game,
        "positions": found.positions,
        "evaluations": found.evaluations,
        "parameters": found.parameters,
        "shares": {"products": MATRIX_SHARE, "memory": MEMORY_SHARE, "words": WORD_SHARE},
        "stages": [
            stage._asdict() | {"times": {x.name: time_of(stage, x)._asdict() for x in LIMITS}}
            for stage in found.stages
        ],
        "limits": [limits._asdict() for limits in LIMITS],
        "hours_for_a_million_games": {
            limits.name: [hours_for_a_million(found, limits, count)._asdict() for count in DEVICES]
            for limits in LIMITS
        },
    }
