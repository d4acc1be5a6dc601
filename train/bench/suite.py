"""Measures the parts of a request, each at growing batches up to the end of memory."""

import dataclasses
import gc
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax

from train.bench import alphazero, games, search, table1, trainer
from train.bench.ratios import ONE_DEVICE, RANDOM_PLAY, SHARED, SHARED_KINDS, Ratio, ratios
from train.bench.timing import Benchmark, BenchRow, take_turns
from train.config import RunConfig
from train.runtime.devices import Devices, all_devices
from train.runtime.errors import UsageError
from train.runtime.memory import out_of_memory_message

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
        known = {"what": (self.parts, PARTS), "against": (self.against, AGAINST)}
        for option, (names, allowed) in known.items():
            if wrong := [name for name in names if name not in allowed]:
                raise UsageError(
                    f"bench: --{option} {wrong[0]!r} is unknown; allowed: {', '.join(allowed)}"
                )
        for name in self.against:
            if AGAINST[name] not in self.parts:
                raise UsageError(f"bench: --against {name!r} is for --what {AGAINST[name]}")
        if SHARES in self.against and self.config.selfplay.full_search_prob != 1:
            raise UsageError(f"bench: --against {SHARES} needs --selfplay.full_search_prob 1")

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
    "table1": lambda request, batch: table1.benches(request.config, batch, devices_for(batch)),
}
"""Compiles the benchmarks of a part at one batch, one after the other."""
