"""Measures the parts of a request, batch by batch, and takes the ratios of their figures."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax

import wallgo_jax
from train.bench import sweep
from train.bench.harness import peak, play, timing
from train.bench.harness.program import ProgramStats
from train.bench.harness.timing import Bench, Row
from train.bench.parts import (
    alphazero,
    games,
    learn,
    memory,
    peers,
    plain,
    search,
    selfplay,
    shares,
)
from train.bench.parts.memory import TreeMemory
from train.config import RunConfig
from train.runtime.devices import Devices, all_devices
from train.runtime.errors import UsageError
from train.runtime.memory import MemoryEstimate, check_fits, check_sizes, device_memory, tree_bytes
from wallgo_jax.game.sizes import num_actions

PARTS = ("env", "search", "selfplay", "learn")
MCTX, MCTX_PUBLIC = "mctx", "mctx-public"
LOOP = "pgx-alphazero"
LOOP_GAME = "othello"
SHARES = "parts"
AGAINST = {
    **dict.fromkeys(peers.GAMES, "env"),
    LOOP: "selfplay",
    SHARES: "selfplay",
    MCTX: "search",
    MCTX_PUBLIC: "search",
}
"""The part in which each baseline is measured."""
ENV_PLANES = "BTRH"
ONE_DEVICE = ", one device"
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
    """What to measure.

    Attributes:
      config: game, network, search and learner.
      parts: names of PARTS.
      batches: boards at once, or samples of a step of the learner; empty for those of the device
        (`sweep.default_batches`), up to the end of its memory.
      against: baselines, names of AGAINST of these parts.
      simulations: simulations of the searches outside self-play.
      repeats: runs of each benchmark; their median counts.
      seconds: least length of a run, about.
      fit: boards and simulations of the search whose memory is analysed.

    Raises:
      UsageError: an unknown name, a baseline of another part, a number below 1, or rules that
        `check_rules` refuses.
    """

    config: RunConfig
    parts: tuple[str, ...] = PARTS
    batches: tuple[int, ...] = ()
    against: tuple[str, ...] = ()
    simulations: int = 32
    repeats: int = 5
    seconds: float = 0.3
    fit: tuple[int, int] = (memory.BOARDS, memory.SIMULATIONS)

    def __post_init__(self) -> None:
        check_rules(self.config, "bench")
        for option, given, known in (
            ("what", self.parts, PARTS),
            ("against", self.against, AGAINST),
        ):
            for name in given:
                if name not in known:
                    raise UsageError(
                        f"bench: --{option} {name!r} is unknown; allowed: {', '.join(known)}"
                    )
        if not self.parts:
            raise UsageError(f"bench: --what names nothing; allowed: {', '.join(PARTS)}")
        for name in self.against:
            if AGAINST[name] not in self.parts:
                raise UsageError(f"bench: --against {name!r} is for --what {AGAINST[name]}")
        if SHARES in self.against and self.config.selfplay.full_search_prob != 1:
            raise UsageError(f"bench: --against {SHARES} needs --selfplay.full_search_prob 1")
        if min(self.batches, default=1) < 1:
            raise UsageError("bench: --batch must be numbers from 1 on")
        for option, least in (("simulations", self.simulations), ("repeats", self.repeats)):
            if least < 1:
                raise UsageError(f"bench: --{option} ({least}) must be at least 1")
        if not 0 < self.seconds < math.inf:
            raise UsageError(f"bench: --seconds ({self.seconds}) must be above 0")

    def batches_of(self, part: str) -> tuple[int, ...]:
        """The batches of a part, in rising order."""
        batches = self.batches or sweep.default_batches(part, jax.default_backend())
        return tuple(sorted(set(batches)))


class Ratio(NamedTuple):
    """A rate divided by another of the same batch; batch 0 stands for the better batch of each."""

    name: str
    batch: int
    value: float


class Figures(NamedTuple):
    """All measurements of a request."""

    rows: tuple[tuple[str, Row], ...]  # each with its part
    ratios: tuple[Ratio, ...]
    memory: TreeMemory | None
    compiled: tuple[tuple[str, ProgramStats], ...] = ()  # by name, programs compiled but not run
    notes: tuple[str, ...] = ()  # benchmarks left out
    engine: str = "native"  # of the search and of self-play


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
    rows: list[tuple[str, Row]] = []
    notes: list[str] = []
    for part in request.parts:

        def measure(batch: int, part: str = part) -> list[Row]:
            return measure_part(request, part, batch, on_progress)

        swept = sweep.sweep(part, request.batches_of(part), measure, unit=sweep.unit_of(part))
        rows.extend((part, row) for row in swept.rows)
        notes.extend([swept.note] if swept.note else [])
        so_far = tuple(ratios(rows))
        on_part(Figures(tuple(rows), so_far, None, (), tuple(notes), request.config.search.engine))
    tree, compiled = None, []
    if "env" in request.parts:
        on_progress("the env's steps: compiling")
        compiled = games.compiled_steps(
            request.config.rules,
            max(row.batch for part, row in rows if part == "env"),
            planes=ENV_PLANES,
        )
    if "search" in request.parts:
        batches = request.batches_of("search")
        notes += [_left_out(request, x) for x in batches if not _fits_public(request, x)]
        boards, simulations = request.fit
        on_progress(f"memory of {boards} boards and {simulations} simulations: compiling")
        tree = memory.tree_memory(request.config, boards=boards, simulations=simulations)
    return Figures(
        rows=tuple(rows),
        ratios=tuple(ratios(rows)),
        memory=tree,
        compiled=tuple(compiled),
        notes=tuple(notes),
        engine=request.config.search.engine,
    )


def measure_part(
    request: Request, part: str, batch: int, on_progress: Callable[[str], None]
) -> list[Row]:
    """The rows of a part at one batch."""
    own = tuple(name for name in request.against if AGAINST[name] == part)
    _check_batch(dataclasses.replace(request, parts=(part,), against=own), batch)
    benches = []
    for make in _MAKERS[part](request, batch):
        on_progress(f"{part}, batch {batch}: compiling {len(benches) + 1}")
        benches.append(make())
    on_progress(f"{part}, batch {batch}: measuring")
    return timing.take_turns(benches, seconds=request.seconds, repeats=request.repeats)


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


_Make = Callable[[], Bench]


def _env(request: Request, batch: int) -> Iterator[_Make]:
    config, devices = request.config, devices_for(batch)
    played = [games.core_game(config.rules, on_bits=on_bits) for on_bits in (False, True)]
    played.append(games.env_game(config.rules, planes=ENV_PLANES))
    names = [peers.GAMES[name] for name in request.against if name in peers.GAMES]
    if names:
        played.extend(peers.peer_games(names))
    for game in played:
        yield lambda game=game: play.make_bench(game, batch, devices)
    if names and devices.count > 1:
        for game in played:
            alone = game._replace(name=f"{game.name}{ONE_DEVICE}")
            yield lambda alone=alone: play.make_bench(alone, batch, all_devices(1))
    if names:
        own = games.plain_envs(config.rules, planes=ENV_PLANES)
        for game in [*own, *peers.plain_games(names)]:
            yield lambda game=game: plain.make_bench(game, batch)


def _search(request: Request, batch: int) -> Iterator[_Make]:
    config, count = request.config, request.simulations
    kinds = [search.UNIFORM, search.NETWORK]
    if MCTX in request.against:
        kinds += [search.MCTX, search.MCTX_NETWORK]
    if MCTX_PUBLIC in request.against and _fits_public(request, batch):
        kinds += [search.PUBLIC, search.PUBLIC_NETWORK]
    for kind in kinds:
        found = search.searcher(kind, config, count)
        yield lambda found=found: search.make_bench(
            found, config.rules, batch, count, devices_for(batch)
        )


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
    for make in (
        selfplay.make_selfplay_bench,
        selfplay.make_forward_bench,
        peak.make_product_bench,
    ):
        yield lambda make=make: make(request.config, batch, devices_for(batch))
    if LOOP in request.against:
        network, count = request.config.network, request.config.search.simulations
        yield lambda: alphazero.make_bench(LOOP_GAME, network, count, batch)
    if SHARES in request.against:
        yield from shares.makers(request.config, batch, devices_for(batch))


def _learn(request: Request, batch: int) -> Iterator[_Make]:
    for make in (learn.make_learner_bench, learn.make_backward_bench, peak.make_product_bench):
        yield lambda make=make: make(request.config, batch, devices_for(batch))


_MAKERS: dict[str, Callable[[Request, int], Iterator[_Make]]] = {
    "env": _env,
    "search": _search,
    "selfplay": _selfplay,
    "learn": _learn,
}


def ratios(measured: Sequence[tuple[str, Row]]) -> Iterator[Ratio]:
    """Ratios of the figures of rows, each with its part.

    Batch by batch: the time of self-play over that of its network, the time of the learner over
    that of its network, and the share of the device's peak that each network reaches, as the peak
    was measured in turns with it, and the parts of self-play in percent of its time. Then speeds of
    WallGo over those of the baselines, at the better batch and the better way of each (batch 0).
    """
    rows = [row for _, row in measured]
    rate = {(part, row.name, row.batch): row.rates for part, row in measured}
    for batch in dict.fromkeys(row.batch for row in rows):
        for part, name, pure, unit in (
            ("selfplay", selfplay.SELFPLAY, selfplay.FORWARD, "evaluations"),
            ("learn", learn.LEARNER, learn.BACKWARD, "steps"),
        ):
            whole, network, product = (
                rate.get((part, each, batch)) for each in (name, pure, peak.PRODUCT)
            )
            if network and whole:
                yield Ratio(f"time of {name} over {pure}", batch, network[unit] / whole[unit])
            if network and product:
                share = network[peak.OPERATIONS] / product[peak.OPERATIONS]
                yield Ratio(f"{peak.OPERATIONS} of {pure} over {peak.PRODUCT}", batch, share)
        names = (("selfplay", name, batch) for name in shares.PROGRAMS)
        programs = [rate[name] for name in names if name in rate]
        if len(programs) == len(shares.PROGRAMS):
            for name, percent in shares.percents(programs):
                yield Ratio(f"percent of {selfplay.SELFPLAY}: {name}", batch, percent)
    for part, unit, mark in (("env", "plies", "pgx"), ("search", "simulations", "mctx")):
        best: dict[str, float] = {}
        for row in (row for own, row in measured if own == part):
            for name in _counts_for(row.name) if unit in row.rates else ():
                best[name] = max(best.get(name, 0.0), row.rates[unit])
        for peer in (name for name in best if name.startswith(mark)):
            for own in (name for name in best if not name.startswith(mark)):
                if _are_alike(own, peer):
                    yield Ratio(f"{unit} of {own} over {peer}", 0, best[own] / best[peer])
    for unit in ("positions", "evaluations"):
        own, peer = (
            max((row.rates[unit] for row in rows if row.name.startswith(name)), default=0.0)
            for name in (selfplay.SELFPLAY, alphazero.LOOP)
        )
        if own and peer:
            yield Ratio(f"{unit} of {selfplay.SELFPLAY} over {alphazero.LOOP}", 0, own / peer)


def _counts_for(name: str) -> list[str]:
    """The names whose best speed a row counts for, so that ratios are to the better way: a game on
    one device for the game, a peer played the plain way for the peer with planes and without."""
    base = name.removesuffix(ONE_DEVICE)
    if not base.endswith(plain.SUFFIX):
        return [base]
    base = base.removesuffix(plain.SUFFIX)
    if base.startswith("pgx"):
        return [base, f"{base}, planes"]
    return [base.removesuffix(f", {games.OWN_DRAW}")]


def _are_alike(own: str, peer: str) -> bool:
    """Whether both read planes or neither does, and both evaluate a network or neither does."""
    reads = own.startswith(games.ENV) == peer.endswith("planes")
    return reads and own.endswith(search.WITHOUT) == peer.endswith(search.WITHOUT)
