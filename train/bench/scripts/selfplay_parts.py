"""Says where the time of self-play goes, by parts that add up.

    python -m train.bench.scripts.selfplay_parts [--boards 256] [--repeats 5] [--some.key VALUE ...]

A part is what the next program takes less:

    self-play of an iteration       - keeps plies, draws openings, counts
    moves by search, with network   - evaluates leaves
    moves by search, planes alone   - works out the planes of each leaf
    moves by search, no planes      - grows and reads trees
    random play                     - steps and legal slots: the game itself

All evaluate the same number of positions and take turns. Every ply is searched in full. Without a
network values are 0 and priors equal, so trees have another shape: the parts of planes and trees
are those of such trees. Random play also draws its plies and restarts games, and scores none: what
scores cost is with the trees, and what the slots' logits cost is with the planes.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from train.bench.harness import play, timing
from train.bench.harness.script import (
    check_least,
    check_seconds,
    run_configured_script,
    usage_errors,
)
from train.bench.harness.timing import Bench, Row
from train.bench.parts import search, selfplay
from train.bench.parts.games import core_game
from train.bench.suite import check_rules, devices_for
from train.config import RunConfig, read_config
from train.network.build import observer_for
from train.runtime.devices import use_all_cores
from train.search.evaluator import Evaluator, make_evaluator
from train.search.search import make_search

PLANES = "search, planes alone"


@dataclasses.dataclass(frozen=True)
class Options:
    """Say where the time of self-play goes. Any key of the config can be changed: --some.key
    value."""

    boards: int = 256
    """Boards at once."""
    repeats: int = 5
    """Runs of each program; their median counts."""
    seconds: float = 1.0
    """Least length of a run, about."""


class _PlanesAlone:
    """Stands for a network that reads its planes and answers with zeros."""

    def __init__(self, players: int) -> None:
        self._players = players

    def evaluate(self, variables: Any, planes: Any) -> Any:
        """Zeros that depend on every plane."""
        del variables
        # Never true, but all planes are needed to know it.
        odd = jnp.where(planes.any(axis=3).sum(axis=(1, 2)) > 10**6, 1.0, 0.0)
        count, size = planes.shape[:2]
        policy = jnp.zeros((count, size, size, 53)) + odd[:, None, None, None]
        return _Answer(policy, jnp.zeros((count, self._players)) + odd[:, None])


@dataclasses.dataclass(frozen=True)
class _Answer:
    policy: Any
    value: Any


def planes_evaluator(config: RunConfig) -> Evaluator:
    """Works out the planes of states and the legal slots, and gives all of them logit and value
    0."""
    network: Any = _PlanesAlone(config.rules.players)
    return make_evaluator(network, observer_for(config.network))


def benches_of(config: RunConfig, boards: int) -> list[Bench]:
    """The programs, in the order of the module's head; the last plays at random."""
    config = dataclasses.replace(
        config, selfplay=dataclasses.replace(config.selfplay, full_search_prob=1.0)
    )
    devices, count = devices_for(boards), config.search.simulations
    options = dataclasses.replace(config.search, first_simulations=0)
    planes = search.Searcher(
        PLANES, make_search(planes_evaluator(config), options, explores=True), ()
    )
    searchers = [
        search.searcher(search.NETWORK, config, count),
        planes,
        search.searcher(search.UNIFORM, config, count),
    ]
    return [
        selfplay.make_selfplay_bench(config, boards, devices),
        *(search.make_bench(found, config.rules, boards, count, devices) for found in searchers),
        play.make_bench(core_game(config.rules, on_bits=False), boards, devices),
        selfplay.make_forward_bench(config, boards, devices),
    ]


def microseconds(row: Row, simulations: int) -> float:
    """Of an evaluation, the root's included; of a ply in random play."""
    for unit, evaluations in (
        ("evaluations", 1.0),
        ("moves", simulations + 1.0),
        ("plies", 1.0),
    ):
        if unit in row.rates:
            return 1e6 / (row.rates[unit] * evaluations)
    raise ValueError(f"{row.name} counts nothing that is evaluated")


def parts_of(times: Sequence[float]) -> list[tuple[str, float]]:
    """The parts in microseconds an evaluation, from the times of the programs in their order."""
    whole, network, planes, trees, game = times[:5]
    return [
        ("network", network - planes),
        ("planes", planes - trees),
        ("trees: ways down and up, choices, copies", trees - game),
        ("the game: steps, ends, legal slots", game),
        ("plies kept, openings, counts", whole - network),
    ]


def main(options: Options, overrides: Sequence[str] = ()) -> None:
    """Print the parts and their sum."""
    check_least(options, 1, "boards", "repeats")
    check_seconds(options.seconds)
    use_all_cores()
    config = read_config(None, list(overrides))
    check_rules(config, "selfplay_parts")
    with usage_errors():
        selfplay.steady(config, options.boards)
    rows = timing.take_turns(
        benches_of(config, options.boards), seconds=options.seconds, repeats=options.repeats
    )
    simulations = config.search.simulations
    times = [microseconds(row, simulations) for row in rows]
    table = Table("part", "µs an evaluation", "share")
    for name, part in parts_of(times):
        table.add_row(name, f"{part:.2f}", f"{part / times[0]:.1%}")
    table.add_row("self-play", f"{times[0]:.2f}", "100.0%")
    console = Console()
    console.print(table)
    alone = times[-1]
    spread = statistics.pstdev(rows[0].seconds) / statistics.fmean(rows[0].seconds)
    console.print(
        f"{options.boards} boards, {simulations} simulations; the network alone, from ready "
        f"planes: {alone:.2f} µs, self-play over it {times[0] / alone:.2f}; runs of self-play "
        f"differ by {spread:.1%}"
    )


if __name__ == "__main__":
    run_configured_script(main, Options, name="selfplay_parts")
