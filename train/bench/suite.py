"""Measures the parts of a request, each at growing batches up to the end of memory."""

import dataclasses
import gc
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax

import wallgo_jax
from train.bench import alphazero, games, memory, search, trainer
from train.bench.memory import TreeMemory
from train.bench.ratios import (
    ONE_DEVICE,
    RANDOM_PLAY,
    SHARED,
    SHARED_KINDS,
    Ratio,
    ratios,
)
from train.bench.timing import Benchmark, BenchRow, take_turns
from train.config import RunConfig
from train.runtime.devices import Devices, all_devices
from train.runtime.errors import UsageError
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    check_sizes,
    device_memory,
    out_of_memory_message,
    tree_bytes,
)
from wallgo_jax.game.sizes import num_actions

PARTS = ("env", "search", "selfplay", "learn")
PLOT = "plot"
"""The part that measures the core alone, from one board on."""
CPU_BATCHES = (256, 1024)
GAME_BATCHES = (1024, 4096, 16_384, 65_536, 262_144)
NETWORK_BATCHES = (512, 2048, 8192, 16_384)
"""Batches of an accelerator: of the game, and of all parts that evaluate a network."""
PLOT_BATCHES = tuple(4**power for power in range(9))  # 1 to 65,536
MCTX, MCTX_PUBLIC = "mctx", "mctx-public"
LOOP, LOOP_GAME = "pgx-alphazero", "othello"
SHARES = "parts"
AGAINST = {
    **dict.fromkeys(games.PGX_GAMES, "env"),
    LOOP: "selfplay",
    SHARES: "selfplay",
    MCTX: "search",
    MCTX_PUBLIC: "search",
}
"""The part in which each baseline is measured."""
ENV_PLANES = "BTRH"
MAX_TREE_BYTES = 8 * 10**9
"""Largest tree of a search over public actions; a larger one is not measured."""


def check_rules(config: RunConfig, what: str) -> None:
    """Refuse a config of several rule sets, or of a grid larger than the board: boards of one size
    are measured.

    Raises:
      UsageError: the message opens with `what`.
    """
    if config.mix or config.grid_side != config.rules.size:
        raise UsageError(f"{what}: rules must be one rule set, on a grid of its own")


@dataclasses.dataclass(frozen=True)
class Request:
    """Parts, batches and baselines to measure.

    Attributes:
      config: game, network, search and learner.
      parts: names of PARTS, or PLOT.
      batches: boards at once, or samples of a step of the learner; empty for those of the device
        (`default_batches`), up to the end of its memory.
      scaling: boards at once of PLOT; empty for those of the device.
      against: baselines, names of AGAINST of these parts.
      simulations: simulations of the searches outside self-play.
      repeats: runs of each benchmark; their median counts.
      seconds: least length of a run, about.
      fit: boards and simulations of the search whose memory is analysed.

    Raises:
      UsageError: an unknown name, a baseline of another part, or rules that `check_rules`
        refuses.
    """

    config: RunConfig
    parts: tuple[str, ...] = PARTS
    batches: tuple[int, ...] = ()
    scaling: tuple[int, ...] = ()
    against: tuple[str, ...] = ()
    simulations: int = 32
    repeats: int = 5
    seconds: float = 0.3
    fit: tuple[int, int] = (memory.BOARDS, memory.SIMULATIONS)

    def __post_init__(self) -> None:
        check_rules(self.config, "bench")
        for wrong in self._wrong():
            raise UsageError(f"bench: {wrong}")

    def _wrong(self) -> Iterator[str]:
        known = {"what": (self.parts, (*PARTS, PLOT)), "against": (self.against, AGAINST)}
        for option, (names, allowed) in known.items():
            for name in (name for name in names if name not in allowed):
                yield f"--{option} {name!r} is unknown; allowed: {', '.join(allowed)}"
        if not self.parts:
            yield f"--what names nothing; allowed: {', '.join(PARTS)}"
        for name in self.against:
            if AGAINST[name] not in self.parts:
                yield f"--against {name!r} is for --what {AGAINST[name]}"
        if SHARES in self.against and self.config.selfplay.full_search_prob != 1:
            yield f"--against {SHARES} needs --selfplay.full_search_prob 1"

    def batches_of(self, part: str) -> tuple[int, ...]:
        """The batches of a part, in rising order."""
        batches = self.scaling if part == PLOT else self.batches
        return tuple(sorted(set(batches or default_batches(part, jax.default_backend()))))


def default_batches(part: str, platform: str) -> tuple[int, ...]:
    """The batches at which a part is measured on a platform of JAX unless others are named."""
    if part == PLOT:
        return PLOT_BATCHES if platform == "cpu" else (*PLOT_BATCHES, 4 * PLOT_BATCHES[-1])
    if platform == "cpu":
        return CPU_BATCHES
    return GAME_BATCHES if part == "env" else NETWORK_BATCHES


class Figures(NamedTuple):
    """All measurements of a request."""

    rows: tuple[BenchRow, ...]
    ratios: tuple[Ratio, ...] = ()
    memory: TreeMemory | None = None
    notes: tuple[str, ...] = ()  # the engine of searches; benchmarks left out


def run_suite(
    request: Request,
    on_progress: Callable[[str], None] = lambda text: None,
    *,
    on_part: Callable[[Figures], None] = lambda figures: None,
) -> Figures:
    """Measure; `on_progress` gets a line before each step, `on_part` what there is after each part.

    Raises:
      UsageError: a benchmark needs a library that is not installed, or a batch more memory than a
        device has.
    """
    for batch in request.batches:
        _check_batch(request, batch)
    config, figures = request.config, Figures(())
    if {"search", "selfplay"} & set(request.parts):
        figures = Figures((), notes=(f"search engine: {config.search.engine}",))
    for part in request.parts:
        batches = request.batches_of(part)
        rows, note = sweep(
            part, batches, lambda batch, part=part: measure_part(request, part, batch, on_progress)
        )
        notes, tree = [note] if note else [], figures.memory
        if part == "env":
            on_progress("the env's steps: compiling")
            most = max(row.batch for row in rows)
            rows += games.compiled_steps(config.rules, most, planes=ENV_PLANES)
        elif part == "search":
            notes += [_left_out(request, x) for x in batches if not _fits_public(request, x)]
            boards, simulations = request.fit
            on_progress(f"memory of {boards} boards and {simulations} simulations: compiling")
            tree = memory.tree_memory(config, boards=boards, simulations=simulations)
        measured = (*figures.rows, *rows)
        figures = Figures(measured, tuple(ratios(measured)), tree, (*figures.notes, *notes))
        on_part(figures)
    return figures


def sweep(
    part: str, batches: Sequence[int], measure: Callable[[int], Sequence[BenchRow]]
) -> tuple[list[BenchRow], str]:
    """Measure a part at each batch, from the smallest on, until memory ends.

    Args:
      part: its name, for the note.
      batches: in any order.
      measure: batch -> its rows.

    Returns:
      Rows, and why the sweep stopped; empty where all batches fit.

    Raises:
      UsageError: as `measure` does at the smallest batch; at others it ends the sweep.
      MemoryError, RuntimeError: the same.
    """
    rows: list[BenchRow] = []
    for batch in sorted(set(batches)):
        try:
            rows.extend(measure(batch))
        except (UsageError, RuntimeError, MemoryError) as error:
            reason = str(error) if isinstance(error, UsageError) else out_of_memory_message(error)
            if not rows or reason is None:
                raise
            note = f"{part}: stopped before {batch:,} {unit_of(part)}: {reason.partition(';')[0]}"
        else:
            continue
        gc.collect()  # The error held the arrays of the batch that did not fit.
        return rows, note
    return rows, ""


def unit_of(part: str) -> str:
    """The unit of a part's batch."""
    return "samples" if part == "learn" else "boards"


def measure_part(
    request: Request, part: str, batch: int, on_progress: Callable[[str], None]
) -> list[BenchRow]:
    """The rows of a part at one batch."""
    benches = []
    for make in makers(request, part, batch):
        on_progress(f"{part}, batch {batch}: compiling {len(benches) + 1}")
        benches.append(make())
    on_progress(f"{part}, batch {batch}: measuring")
    return take_turns(benches, seconds=request.seconds, repeats=request.repeats, part=part)


_Make = Callable[[], Benchmark]


def makers(request: Request, part: str, batch: int) -> Iterator[_Make]:
    """Functions that compile the benchmarks of a part at one batch.

    Raises:
      UsageError: the batch surely needs more memory than a device has.
    """
    against = tuple(name for name in request.against if AGAINST[name] == part)
    _check_batch(dataclasses.replace(request, parts=(part,), against=against), batch)
    return _MAKERS[part](request, batch)


def _check_batch(request: Request, batch: int) -> None:
    """Refuse a batch that surely needs more memory than a device has."""
    check_sizes(batch=batch)
    needed = board_bytes(request) * batch // devices_for(batch).count
    check_fits([MemoryEstimate("boards", needed, ("--batch",))], device_memory())


def board_bytes(request: Request) -> int:
    """Bytes that a board surely takes: its state with planes, or, where it is searched, the tree of
    the most simulations."""
    config, parts = request.config, request.parts
    env = wallgo_jax.make(config.rules, planes=ENV_PLANES)
    state = tree_bytes(jax.eval_shape(env.init, jax.random.key(0)))
    searched = {"search": request.simulations, "selfplay": config.search.simulations}
    trees = [
        (count + 1) * memory.engine_node_bytes(config, count)
        for part, count in searched.items()
        if part in parts
    ]
    return max([state, *trees])


def devices_for(batch: int) -> Devices:
    """All devices, or those that can share a batch evenly."""
    return all_devices(math.gcd(jax.device_count(), batch))


def _env(request: Request, batch: int) -> Iterator[_Make]:
    rules, devices = request.config.rules, devices_for(batch)
    names = [games.PGX_GAMES[name] for name in request.against if name in games.PGX_GAMES]
    played = [games.core_game(rules, on_bits=on_bits) for on_bits in (False, True)]
    played += [games.env_game(rules, planes=ENV_PLANES), *games.peer_games(names)]
    for game in played:
        yield lambda game=game: games.make_bench(game, batch, devices)
    if names and devices.count > 1:
        for game in played:
            alone = game._replace(name=f"{game.name}{ONE_DEVICE}")
            yield lambda alone=alone: games.make_bench(alone, batch, all_devices(1))
    if names:
        for plain in games.plain_games(rules, names, planes=ENV_PLANES):
            yield lambda plain=plain: games.make_plain_bench(plain, batch)


def _plot(request: Request, batch: int) -> Iterator[_Make]:
    game = games.core_game(request.config.rules, on_bits=True)
    yield lambda: games.make_bench(game, batch, devices_for(batch))


def _search(request: Request, batch: int) -> Iterator[_Make]:
    kinds = [search.UNIFORM, search.NETWORK]
    if MCTX in request.against:
        kinds += [search.MCTX, search.MCTX_NETWORK]
    if MCTX_PUBLIC in request.against and _fits_public(request, batch):
        kinds += [search.PUBLIC, search.PUBLIC_NETWORK]
    for kind in kinds:
        yield lambda kind=kind: _moves(kind, request.config, request.simulations, batch)


def _moves(kind: str, config: RunConfig, simulations: int, batch: int, name: str = "") -> Benchmark:
    chosen = search.searcher(kind, config, simulations)
    chosen = chosen._replace(name=name or kind)
    return search.make_bench(chosen, config.rules, batch, simulations, devices_for(batch))


def _public_bytes(request: Request, batch: int) -> int:
    """Bytes of mctx's tree over public actions."""
    rules = request.config.rules
    actions = num_actions(rules.size)
    return batch * (request.simulations + 1) * memory.mctx_node_bytes(rules, actions)


def _fits_public(request: Request, batch: int) -> bool:
    return MCTX_PUBLIC not in request.against or _public_bytes(request, batch) <= MAX_TREE_BYTES


def _left_out(request: Request, batch: int) -> str:
    return (
        f"left out: mctx over public actions at batch {batch:,}, whose tree takes "
        f"{_public_bytes(request, batch) / 1e9:.1f} GB, beyond {MAX_TREE_BYTES / 1e9:g} GB"
    )


def _selfplay(request: Request, batch: int) -> Iterator[_Make]:
    config, devices = request.config, devices_for(batch)
    network, count = config.network, config.search.simulations
    yield lambda: trainer.make_selfplay_bench(config, batch, devices)
    yield lambda: trainer.make_forward_bench(config, batch, devices)
    yield lambda: trainer.make_product_bench(config, batch, devices)
    if LOOP in request.against:
        yield lambda: alphazero.make_bench(LOOP_GAME, network, count, batch)
    if SHARES in request.against:
        for kind, name in zip(SHARED_KINDS, SHARED[1:], strict=False):
            yield lambda kind=kind, name=name: _moves(kind, config, count, batch, name)
        game = games.core_game(config.rules, on_bits=False)._replace(name=RANDOM_PLAY)
        yield lambda: games.make_bench(game, batch, devices)


def _learn(request: Request, batch: int) -> Iterator[_Make]:
    config, devices = request.config, devices_for(batch)
    yield lambda: trainer.make_learner_bench(config, batch, devices)
    yield lambda: trainer.make_backward_bench(config, batch, devices)
    yield lambda: trainer.make_product_bench(config, batch, devices)


_MAKERS: dict[str, Callable[[Request, int], Iterator[_Make]]] = {
    "env": _env,
    "search": _search,
    "selfplay": _selfplay,
    "learn": _learn,
    PLOT: _plot,
}
