"""All that is asked for, batch by batch, with the ratios that come of it."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax

from train.bench import games, learn, memory, play, rivals, search, selfplay, timing
from train.bench.memory import TreeMemory
from train.bench.timing import Bench, Row
from train.config import RunConfig
from train.devices import Devices, all_devices
from train.errors import UsageError

PARTS = ("env", "search", "selfplay", "learn")
PGX, MCTX_PUBLIC = "pgx", "mctx-public"
AGAINST = (PGX, MCTX_PUBLIC)
MOST_TREE_BYTES = 8 * 10**9
"""Of a search over public actions, beyond which it is left out."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be measured.

    Attributes:
      config: game, network, search and learner.
      parts: of PARTS.
      batches: boards at once, or samples of a step of the learner.
      against: of AGAINST.
      simulations: of the searches that are measured apart from self-play.
      repeats: runs of each, of which the median is taken.
      seconds: that a run lasts at least about.
      fit: boards and simulations that a search's memory is analysed for.

    Raises:
      UsageError: an unknown name, or a number below 1.
    """

    config: RunConfig
    parts: tuple[str, ...] = PARTS
    batches: tuple[int, ...] = (256, 1024)
    against: tuple[str, ...] = ()
    simulations: int = 32
    repeats: int = 5
    seconds: float = 0.3
    fit: tuple[int, int] = (memory.BOARDS, memory.SIMULATIONS)

    def __post_init__(self) -> None:
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
        if not self.batches or min(self.batches) < 1:
            raise UsageError("bench: --batch must be numbers from 1 on")
        for option, least in (("simulations", self.simulations), ("repeats", self.repeats)):
            if least < 1:
                raise UsageError(f"bench: --{option} ({least}) must be at least 1")
        if not 0 < self.seconds < math.inf:
            raise UsageError(f"bench: --seconds ({self.seconds}) must be above 0")


class Ratio(NamedTuple):
    """A rate over another of the same batch."""

    name: str
    batch: int
    value: float


class Figures(NamedTuple):
    """All that was measured."""

    rows: tuple[tuple[str, Row], ...]  # each with its part
    ratios: tuple[Ratio, ...]
    memory: TreeMemory | None


def run_suite(request: Request, on_progress: Callable[[str], None] = lambda text: None) -> Figures:
    """Measure, telling each step before it begins.

    Raises:
      UsageError: what is asked for needs a library that is not installed.
    """
    rows: list[tuple[str, Row]] = []
    for part in request.parts:
        for batch in request.batches:
            benches = []
            for make in _MAKERS[part](request, batch):
                on_progress(f"{part}, batch {batch}: compiling {len(benches) + 1}")
                benches.append(make())
            on_progress(f"{part}, batch {batch}: measuring")
            found = timing.take_turns(benches, seconds=request.seconds, repeats=request.repeats)
            rows.extend((part, row) for row in found)
    tree = None
    if "search" in request.parts:
        boards, simulations = request.fit
        on_progress(f"memory of {boards} boards and {simulations} simulations: compiling")
        tree = memory.tree_memory(request.config, boards=boards, simulations=simulations)
    return Figures(tuple(rows), tuple(ratios([row for _, row in rows])), tree)


def devices_for(batch: int) -> Devices:
    """All devices, or those that can share a batch evenly."""
    return all_devices(math.gcd(jax.device_count(), batch))


_Make = Callable[[], Bench]


def _env(request: Request, batch: int) -> Iterator[_Make]:
    config, devices = request.config, devices_for(batch)
    played = [games.core_game(config.game, on_bits=on_bits) for on_bits in (False, True)]
    played.append(games.env_game(config.game, planes="BTRH"))
    if PGX in request.against:
        played.extend(rivals.rival_games())
    for game in played:
        yield lambda game=game: play.make_bench(game, batch, devices)


def _search(request: Request, batch: int) -> Iterator[_Make]:
    config, count = request.config, request.simulations
    kinds = [search.UNIFORM, search.NETWORK]
    if MCTX_PUBLIC in request.against:
        actions = config.game.size**2 * 53
        needed = batch * (count + 1) * memory.mctx_node_bytes(config.game, actions)
        if needed <= MOST_TREE_BYTES:
            kinds.append(search.PUBLIC)
    for kind in kinds:
        found = search.searcher(kind, config, count)
        yield lambda found=found: search.make_bench(
            found, config.game, batch, count, devices_for(batch)
        )


def _selfplay(request: Request, batch: int) -> Iterator[_Make]:
    for make in (selfplay.make_selfplay_bench, selfplay.make_forward_bench):
        yield lambda make=make: make(request.config, batch, devices_for(batch))


def _learn(request: Request, batch: int) -> Iterator[_Make]:
    for make in (learn.make_learner_bench, learn.make_backward_bench):
        yield lambda make=make: make(request.config, batch, devices_for(batch))


_MAKERS: dict[str, Callable[[Request, int], Iterator[_Make]]] = {
    "env": _env,
    "search": _search,
    "selfplay": _selfplay,
    "learn": _learn,
}


def ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    """Time of self-play over its network's and of the learner over its own, batch by batch; then
    speeds of WallGo over others', at the better batch of each (batch 0)."""
    rate = {(row.name, row.batch): row.rates for row in rows}
    for batch in dict.fromkeys(row.batch for row in rows):
        for name, pure, unit in (
            (selfplay.SELFPLAY, selfplay.FORWARD, "evaluations"),
            (learn.LEARNER, learn.BACKWARD, "steps"),
        ):
            if (name, batch) in rate:
                value = rate[pure, batch][unit] / rate[name, batch][unit]
                yield Ratio(f"time of {name} over {pure}", batch, value)
    for unit, mark in (("plies", "pgx"), ("simulations", "mctx")):
        best: dict[str, float] = {}
        for row in rows:
            if unit in row.rates:
                best[row.name] = max(best.get(row.name, 0.0), row.rates[unit])
        for rival in (name for name in best if name.startswith(mark)):
            for own in (name for name in best if not name.startswith(mark)):
                if own != search.NETWORK and own.startswith(games.ENV) == rival.endswith("planes"):
                    yield Ratio(f"{unit} of {own} over {rival}", 0, best[own] / best[rival])
