"""Measures the parts of a request, each at growing batches up to the end of memory.

`table1` measures inference times of the ResTNet paper's networks relative to 6R, next to the
paper's. The eleven networks are those of Table 1 of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against
Adversarial Policies via Transformer in Computer Go": 9x9, 256 channels, 4 heads, MLP ratio 2.
"""

import dataclasses
import gc
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import jax

from train.bench import alphazero, games, search, trainer
from train.bench.timing import Benchmark, BenchRow, take_turns
from train.bench.trainer import census_of, make_forward_bench
from train.config import RunConfig
from train.runtime.devices import Devices, all_devices
from train.runtime.errors import UsageError, usage_errors
from train.runtime.memory import out_of_memory_message
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import Rules


class PaperRow(NamedTuple):
    """A network in the paper's table; its name is a block string."""

    name: str
    millions: float  # parameters
    milliseconds: float  # inference


TABLE_1 = (
    PaperRow("6R", 7.146, 3.067),
    PaperRow("6T", 3.358, 8.130),
    PaperRow("5R1T", 6.619, 3.650),
    PaperRow("4R2T", 5.967, 4.237),
    PaperRow("3R3T", 5.314, 5.000),
    PaperRow("2R4T", 4.662, 5.882),
    PaperRow("1R5T", 4.001, 6.329),
    PaperRow("TRRRRT", 5.967, 4.566),
    PaperRow("RTRRRT", 5.967, 4.566),
    PaperRow("RRTRRT", 5.967, 4.566),
    PaperRow("RRRTRT", 5.967, 4.566),
)


def table1_benches(config: RunConfig, batch: int, devices: Devices) -> Iterator[Benchmark]:
    """Compile the forward pass of each network, in the config's type of numbers."""
    for row in TABLE_1:
        network = dataclasses.replace(
            config.network, blocks=row.name, width=256, heads=4, mlp_ratio=2.0, planes="BTR"
        )
        paper = dataclasses.replace(config, rules=Rules(size=9), network=network)
        millions = sum(part.parameters for part in census_of(paper)) / 1e6
        name = f"{row.name}, {millions:.3f} M parameters (paper {row.millions:.3f})"
        yield make_forward_bench(paper, batch, devices, name)


def table1_times(rows: Sequence[BenchRow]) -> Iterator[tuple[str, float]]:
    """Each network's time over 6R's at one batch, with the paper's in its name."""
    speeds = [row.rates["evaluations"] for row in rows]
    for paper, speed in zip(TABLE_1, speeds, strict=False):
        theirs = paper.milliseconds / TABLE_1[0].milliseconds
        yield f"time of {paper.name} over 6R (paper {theirs:.2f})", speeds[0] / speed


DEFAULT_PARTS = ("env", "search", "selfplay", "learn")
PLOT = "plot"
"""The part that measures the core alone, from one board on."""
CPU_BATCHES = (256, 1024)
GAME_BATCHES = (1024, 4096, 16_384, 65_536, 262_144)
NETWORK_BATCHES = (512, 2048, 8192, 16_384)
"""Batches of an accelerator: of the game, and of all parts that evaluate a network."""
PLOT_BATCHES = tuple(4**power for power in range(9))  # 1 to 65,536
MCTX, MCTX_PUBLIC, LOOP, SHARES = "mctx", "mctx-public", "pgx-alphazero", "parts"
AGAINST = {
    **dict.fromkeys(games.PGX_GAMES, "env"),
    **dict.fromkeys((LOOP, SHARES), "selfplay"),
    **dict.fromkeys((MCTX, MCTX_PUBLIC), "search"),
}
"""The part in which each baseline is measured."""


def check_rules(config: RunConfig) -> None:
    """Refuse a config of several rule sets, or of a grid larger than the board: boards of one size
    are measured."""
    if config.mix or config.grid_side != config.rules.size:
        raise UsageError("bench: rules must be one rule set, on a grid of its own")


def check_names(option: str, names: Sequence[str], allowed: Collection[str]) -> None:
    """Refuse unknown names of an option with a UsageError."""
    for name in names:
        if name not in allowed:
            raise UsageError(
                f"bench: --{option} {name!r} is unknown; allowed: {', '.join(allowed)}"
            )


@dataclasses.dataclass(frozen=True)
class Request:
    """Parts, batches and baselines to measure.

    Attributes:
      config: game, network, search and learner.
      parts: names of PARTS.
      batches: boards at once, or samples of a step of the learner; empty for those of the device
        (`default_batches`), up to the end of its memory.
      scaling: boards at once of PLOT; empty for those of the device.
      against: baselines, names of AGAINST of these parts.
      simulations: simulations of the searches outside self-play.
      repeats: runs of each benchmark; their median counts.
      seconds: least length of a run, about.

    Raises:
      UsageError: an unknown name, a baseline of another part, or rules that `check_rules`
        refuses.
    """

    config: RunConfig
    parts: tuple[str, ...] = DEFAULT_PARTS
    batches: tuple[int, ...] = ()
    scaling: tuple[int, ...] = ()
    against: tuple[str, ...] = ()
    simulations: int = 32
    repeats: int = 5
    seconds: float = 0.3

    def __post_init__(self) -> None:
        check_rules(self.config)
        check_names("what", self.parts, PARTS)
        check_names("against", self.against, AGAINST)
        with usage_errors("bench"):
            for name, part in ((name, AGAINST[name]) for name in self.against):
                if part not in self.parts:
                    raise ValueError(f"{argument('against', name)} is for the part {part}")
            is_capped = self.config.selfplay.full_search_prob is not None
            if SHARES in self.against and is_capped:
                raise ValueError(
                    f"{argument('against', SHARES)} needs selfplay.full_search_prob at 1"
                )

    def batches_of(self, part: str) -> tuple[int, ...]:
        """The batches of a part, in rising order."""
        batches = self.scaling if part == PLOT else self.batches
        return tuple(sorted(set(batches or default_batches(part, jax.default_backend()))))


def default_batches(part: str, platform: str) -> tuple[int, ...]:
    """The batches at which a part is measured on a platform of JAX unless others are named."""
    if part == PLOT:
        return PLOT_BATCHES if platform == "cpu" else (*PLOT_BATCHES, 4 * PLOT_BATCHES[-1])
    if platform == "cpu":
        return (16,) if part == "table1" else CPU_BATCHES
    return GAME_BATCHES if part == "env" else NETWORK_BATCHES


class Ratio(NamedTuple):
    """A rate divided by another of the same batch; batch 0 stands for the better batch of each."""

    name: str
    batch: int
    value: float


class Figures(NamedTuple):
    """All measurements of a request."""

    rows: tuple[BenchRow, ...]
    ratios: tuple[Ratio, ...] = ()
    notes: tuple[str, ...] = ()  # a search's memory, where memory ended


def run_suite(
    request: Request,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    on_part: Callable[[Figures], None] = lambda figures: None,
) -> Figures:
    """Measure; `on_progress` gets a line before each step, `on_part` what there is after each part.

    Raises:
      UsageError: a benchmark needs a library that is not installed.
    """
    config, figures = request.config, Figures(())
    for part in request.parts:
        batches = request.batches_of(part)
        rows, notes = sweep(
            part, batches, lambda batch, part=part: measure_part(request, part, batch, on_progress)
        )
        if part == "search" and request.simulations > 1:
            on_progress(f"{part}: compiling")
            notes.append(search.tree_line(config, rows[-1].batch, request.simulations))
        measured = (*figures.rows, *rows)
        figures = Figures(measured, tuple(ratios(measured)), (*figures.notes, *notes))
        on_part(figures)
    return figures


def sweep(
    part: str, batches: Sequence[int], measure: Callable[[int], Sequence[BenchRow]]
) -> tuple[list[BenchRow], list[str]]:
    """Measure a part at each batch, from the smallest on, until memory ends.

    Args:
      part: its name, for the note.
      batches: in rising order.
      measure: batch -> its rows.

    Returns:
      Rows, and a note where memory ended; it must hold the smallest batch.
    """
    rows: list[BenchRow] = []
    for batch in batches:
        try:
            rows.extend(measure(batch))
        except (RuntimeError, MemoryError) as error:
            reason = out_of_memory_message(error)
            if not rows or reason is None:
                raise
            note = f"{part}: stopped before {batch:,} {unit_of(part)}: {reason.partition(';')[0]}"
        else:
            continue
        gc.collect()  # The error held the arrays of the batch that did not fit.
        return rows, [note]
    return rows, []


def unit_of(part: str) -> str:
    """The unit of a part's batch."""
    return "samples" if part == "learn" else "boards"


def measure_part(
    request: Request, part: str, batch: int, on_progress: Callable[[str], None]
) -> list[BenchRow]:
    """The rows of a part at one batch."""
    on_progress(f"{part}, batch {batch}: compiling")
    benches = []
    for bench in PARTS[part](request, batch):
        benches.append(bench)
        on_progress(f"{part}, batch {batch}: {bench.name} compiled")
    return take_turns(benches, seconds=request.seconds, repeats=request.repeats, part=part)


def devices_for(batch: int) -> Devices:
    """All devices, or those that can share a batch evenly."""
    return all_devices(math.gcd(jax.device_count(), batch))


def _env(request: Request, batch: int) -> Iterator[Benchmark]:
    rules, devices = request.config.rules, devices_for(batch)
    names = [games.PGX_GAMES[name] for name in request.against if name in games.PGX_GAMES]
    played = [games.core_game(rules, on_bits=on_bits) for on_bits in (False, True)]
    played += [games.env_game(rules), *(game for name in names for game in games.peer_games(name))]
    for game in played:
        yield games.make_bench(game, batch, devices)
    if names and devices.count > 1:
        for game in played:
            alone = game._replace(name=f"{game.name}{ONE_DEVICE}")
            yield games.make_bench(alone, batch, all_devices(1))
    if names:
        yield from games.plain_benches(rules, names, batch)


def _search(request: Request, batch: int) -> Iterator[Benchmark]:
    kinds = [search.UNIFORM, search.NETWORK]
    kinds += [search.MCTX, search.MCTX_NETWORK] if MCTX in request.against else []
    kinds += [search.PUBLIC, search.PUBLIC_NETWORK] if MCTX_PUBLIC in request.against else []
    config, count, devices = request.config, request.simulations, devices_for(batch)
    for kind in kinds:
        yield search.make_bench(kind, config, batch, count, devices)


def _selfplay(request: Request, batch: int) -> Iterator[Benchmark]:
    config, devices = request.config, devices_for(batch)
    count = config.search.simulations
    yield trainer.make_selfplay_bench(config, batch, devices)
    yield trainer.make_forward_bench(config, batch, devices)
    if LOOP in request.against:
        yield alphazero.make_bench(config.network, count, batch)
    if SHARES in request.against:
        for kind, name in zip(SHARED_KINDS, SHARED[1:], strict=False):
            yield search.make_bench(kind, config, batch, count, devices)._replace(name=name)
        game = games.core_game(config.rules, on_bits=False)._replace(name=RANDOM_PLAY)
        yield games.make_bench(game, batch, devices)


def _learn(request: Request, batch: int) -> Iterator[Benchmark]:
    config, devices = request.config, devices_for(batch)
    yield trainer.make_learner_bench(config, batch, devices)
    yield trainer.make_backward_bench(config, batch, devices)


def _plot(request: Request, batch: int) -> Iterator[Benchmark]:
    game = games.core_game(request.config.rules, on_bits=True)
    yield games.make_bench(game, batch, devices_for(batch))


PARTS: dict[str, Callable[[Request, int], Iterator[Benchmark]]] = {
    "env": _env,
    "search": _search,
    "selfplay": _selfplay,
    "learn": _learn,
    PLOT: _plot,
    "table1": lambda request, batch: table1_benches(request.config, batch, devices_for(batch)),
}
"""Compiles the benchmarks of a part at one batch, one after the other."""


ONE_DEVICE = ", one device"
SHARED_KINDS = (search.NETWORK, search.PLANES, search.UNIFORM)
RANDOM_PLAY = "random play"
SHARED = (trainer.SELFPLAY, *(f"moves by {kind}" for kind in SHARED_KINDS), RANDOM_PLAY)
"""Programs of which each does less than the one before.

Every ply is searched in full. Without a network values are 0 and priors equal, so trees have
another shape. Random play also draws its plies and restarts games, and scores none: what scores
cost is with the trees, and what the slots' logits cost is with the planes.
"""
SHARE_NAMES = ("plies kept, openings, counts", "network", "planes", "trees", "the game")
"""The parts of self-play, each what the program of its place takes more than the next."""


def ratios(rows: Sequence[BenchRow]) -> Iterator[Ratio]:
    """Ratios of the figures of rows.

    Batch by batch: the time of self-play over that of its network, the time of the learner over
    that of its network, the parts of self-play in percent of its time, and the paper's networks.
    Then speeds of WallGo over those of the baselines, at the better batch and the better way of
    each (batch 0).
    """
    for batch in dict.fromkeys(row.batch for row in rows):
        for name, value in _of_a_batch([row for row in rows if row.batch == batch]):
            yield Ratio(name, batch, value)
    for part, unit, mark in (("env", "plies", "pgx"), ("search", "simulations", "mctx")):
        best: dict[str, float] = {}
        for row in (row for row in rows if row.part == part and unit in row.rates):
            for name in _counts_for(row.name):
                best[name] = max(best.get(name, 0.0), row.rates[unit])
        for peer in (name for name in best if name.startswith(mark)):
            for ours in (name for name in best if not name.startswith(mark)):
                # Both read planes or neither does; both evaluate a network or neither does.
                reads = ours.startswith(games.ENV) == peer.endswith("planes")
                if reads and ours.endswith(search.WITHOUT) == peer.endswith(search.WITHOUT):
                    yield Ratio(f"{unit} of {ours} over {peer}", 0, best[ours] / best[peer])
    for unit in ("positions", "evaluations"):
        ours, peer = (
            max((row.rates[unit] for row in rows if row.name.startswith(name)), default=0.0)
            for name in (trainer.SELFPLAY, alphazero.LOOP)
        )
        if ours and peer:
            yield Ratio(f"{unit} of {trainer.SELFPLAY} over {alphazero.LOOP}", 0, ours / peer)


def _of_a_batch(rows: Sequence[BenchRow]) -> Iterator[tuple[str, float]]:
    rate = {(row.part, row.name): row.rates for row in rows}
    for part, name, pure, unit in (
        ("selfplay", trainer.SELFPLAY, trainer.FORWARD, "evaluations"),
        ("learn", trainer.LEARNER, trainer.BACKWARD, "steps"),
    ):
        whole, network = rate.get((part, name)), rate.get((part, pure))
        if network and whole:
            yield f"time of {name} over {pure}", network[unit] / whole[unit]
    shared = [rate.get(("selfplay", name)) for name in SHARED]
    if all(shared):
        times = [1 / _evaluations(each) for each in shared if each]
        for name, time, less in zip(SHARE_NAMES, times, [*times[1:], 0.0], strict=True):
            yield f"percent of {trainer.SELFPLAY}: {name}", 100 * (time - less) / times[0]
    yield from table1_times([row for row in rows if row.part == "table1"])


def _evaluations(rates: dict[str, float]) -> float:
    """Evaluations a second: a move's are its root's and one a simulation, random play has one a
    ply."""
    if "moves" in rates:
        return rates["moves"] + rates["simulations"]
    return rates["plies"] if "plies" in rates else rates["evaluations"]


def _counts_for(name: str) -> list[str]:
    """The names whose best speed a row counts for, so that ratios are to the better way: a game on
    one device for the game, a peer played the plain way for the peer with planes and without."""
    base = name.removesuffix(ONE_DEVICE)
    if not base.endswith(games.PLAIN):
        return [base]
    base = base.removesuffix(games.PLAIN)
    if base.startswith("pgx"):
        return [base, f"{base}, planes"]
    return [base.removesuffix(f", {games.OWN_DRAW}")]
