"""Compares a search in rounds with one visit after another, in turns.

    python -m train.bench.scripts.rounds [--boards 16 64 256 1024] [--simulations 64 256]
        [--repeats 5] [--some.key VALUE ...]

One move of one game at each number of simulations, and self-play at each number of boards, both
with and without `search.rounds`.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from train.bench.harness import timing
from train.bench.harness.script import (
    check_least,
    check_seconds,
    run_configured_script,
    usage_errors,
)
from train.bench.harness.timing import Bench, Row
from train.bench.parts import search, selfplay
from train.bench.suite import check_rules, devices_for
from train.config import RunConfig, read_config
from train.runtime.devices import use_all_cores
from train.runtime.errors import UsageError
from train.search.config import MAX_SIMULATIONS
from train.search.gumbel import round_schedule


@dataclasses.dataclass(frozen=True)
class Options:
    """Compare a search in rounds with one visit after another. Any key of the config can be
    changed: --some.key value."""

    boards: tuple[int, ...] = (16, 64, 256, 1024)
    """Boards of self-play."""
    simulations: tuple[int, ...] = (64, 256)
    """Simulations of one move of one game."""
    repeats: int = 5
    """Runs of each program; their median counts."""
    seconds: float = 1.0
    """Least length of a run, about."""


class Compared(NamedTuple):
    """Both searches of one kind of work."""

    what: str
    unit: str
    steps: tuple[int, int]  # of a search, its root included: one after another, in rounds
    rows: tuple[Row, Row]  # likewise

    @property
    def gain(self) -> float:
        """Speed in rounds over speed of one after another."""
        one, rounds = (row.rates[self.unit] for row in self.rows)
        return rounds / one


def steps_of(considered: int, simulations: int) -> tuple[int, int]:
    """Steps of a search among `considered` slots, its root included: one visit after another, and
    in rounds. On a CPU a step of many rows goes through the network in pieces."""
    schedule = round_schedule(considered, simulations)
    return simulations + 1, sum(number for _, number in schedule.rounds) + 1


def with_rounds(config: RunConfig, rounds: bool) -> RunConfig:
    """The config whose search goes in rounds or not; every ply of self-play is searched in full."""
    return dataclasses.replace(
        config,
        search=dataclasses.replace(config.search, rounds=rounds, first_simulations=0),
        selfplay=dataclasses.replace(config.selfplay, full_search_prob=1.0),
    )


def compare(config: RunConfig, options: Options) -> list[Compared]:
    """Measure all that the options ask for."""
    both = [with_rounds(config, rounds) for rounds in (False, True)]
    considered, found = config.search.max_considered_actions, []
    for count in options.simulations:
        benches = [_moves(each, count) for each in both]
        what = f"one move, {count} simulations"
        found.append(_compared(what, "moves", steps_of(considered, count), benches, options))
    for boards in options.boards:
        benches = [selfplay.make_selfplay_bench(each, boards, devices_for(boards)) for each in both]
        name, count = f"self-play, {boards} boards", config.search.simulations
        found.append(_compared(name, "evaluations", steps_of(considered, count), benches, options))
    return found


def _moves(config: RunConfig, simulations: int) -> Bench:
    """Moves of one game."""
    found = search.searcher(search.NETWORK, config, simulations)
    return search.make_bench(found, config.rules, 1, simulations, devices_for(1))


def _compared(
    what: str, unit: str, steps: tuple[int, int], benches: Sequence[Bench], options: Options
) -> Compared:
    one, rounds = timing.take_turns(benches, seconds=options.seconds, repeats=options.repeats)
    return Compared(what, unit, steps, (one, rounds))


def main(options: Options, overrides: Sequence[str] = ()) -> None:
    """Print a row for each kind of work."""
    check_least(options, 1, "boards", "simulations", "repeats")
    check_seconds(options.seconds)
    use_all_cores()
    config = read_config(None, list(overrides))
    check_rules(config, "rounds")
    if (config.search.kind, config.search.engine) != ("gumbel", "native"):
        raise UsageError("rounds: needs search.kind gumbel and search.engine native")
    with usage_errors():
        for boards in options.boards:
            selfplay.steady(config, boards)
    if max(options.simulations, default=0) > MAX_SIMULATIONS:
        raise UsageError(f"--simulations must be at most {MAX_SIMULATIONS}")
    title = "one visit after another → in rounds"
    table = Table("what", "steps", "a second", "gain", "MB", title=title)
    for found in compare(config, options):
        speeds = [row.rates[found.unit] for row in found.rows]
        sizes = [row.stats.peak_bytes / 1e6 if row.stats else 0.0 for row in found.rows]
        table.add_row(
            found.what,
            _pair(found.steps, "d"),
            _pair(speeds, ",.1f" if max(speeds) < 1000 else ",.0f"),
            f"{found.gain:.2f}",
            _pair(sizes, ".1f"),
        )
    Console().print(table)


def _pair(figures: Sequence[float], form: str) -> str:
    return " → ".join(format(figure, form) for figure in figures)


if __name__ == "__main__":
    run_configured_script(main, Options, name="rounds")
