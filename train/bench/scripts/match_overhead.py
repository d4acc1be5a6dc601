"""Compares a match of two search players with self-play, in useful evaluations a second.

    python -m train.bench.scripts.match_overhead [--boards 256] [--simulations 16] [--games 1024]
        [--repeats 3]

An evaluation is useful where the board is live and the evaluating player is to move: in self-play
all evaluations are, in a match those of the plies after the opening. Both use all devices, the same
network and the same number of boards at once; runs alternate, medians are compared.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable

import jax

from train.arena.match import MatchOptions, play_match
from train.bench.harness.script import check_least, run_script, usage_errors
from train.config import RunConfig, read_config
from train.network.build import network_for
from train.players.learned import search_player
from train.programs.assembly import make_programs
from train.runtime.devices import use_all_cores

OPENING = 2
"""Random plies at the start of a match's games."""
ITERATIONS = 4
"""Iterations of self-play in a run."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Compare the speed of a match with that of self-play."""

    boards: int = 256
    """Boards at once."""
    simulations: int = 16
    """Simulations of a search."""
    games: int = 1024
    """Games of a match."""
    repeats: int = 3
    """Runs of each; their median counts."""


def main(options: Options) -> None:
    """Print both rates of each run and the ratio of the medians."""
    check_least(options, 1, "repeats")
    with usage_errors():
        how = MatchOptions(games=options.games, batch=options.boards, opening_plies=OPENING)
    use_all_cores()
    overrides = (
        f"--selfplay.boards {options.boards} --selfplay.full_search_prob 1 "
        f"--search.simulations {options.simulations}"
    )
    config = read_config(None, overrides.split())
    selfplay_rate, match_rate = _make_selfplay(config), _make_match(config, how)
    for warm_up in (selfplay_rate, match_rate):
        warm_up(0)
    rates = [(selfplay_rate(run), match_rate(run)) for run in range(1, options.repeats + 1)]
    for selfplay, match in rates:
        print(f"self-play {selfplay:,.0f}  match {match:,.0f} useful evaluations/s", flush=True)
    selfplay, match = (statistics.median(column) for column in zip(*rates, strict=True))
    print(
        f"{jax.device_count()} devices, {options.boards} boards, {options.simulations} "
        f"simulations, {options.games} games: match / self-play {match / selfplay:.3f}"
    )


def _make_selfplay(config: RunConfig) -> Callable[[int], float]:
    """A function from the number of a run to useful evaluations a second of self-play."""
    programs = make_programs(config)
    state = programs.init()
    boards, player = state.boards, state.learner.player
    selfplay = programs.selfplay_at(0)

    def rate(run: int) -> float:
        nonlocal boards
        started = time.perf_counter()
        for index in range(ITERATIONS):
            key = programs.keys(run * ITERATIONS + index).play
            boards, *_ = selfplay(player, programs.variant, boards, key)
        jax.block_until_ready(boards)
        seconds = time.perf_counter() - started
        plies = ITERATIONS * config.selfplay.boards * config.selfplay.plies
        return plies * (config.search.simulations + 1) / seconds

    return rate


def _make_match(config: RunConfig, options: MatchOptions) -> Callable[[int], float]:
    """A function from the number of a run to useful evaluations a second of a match."""
    network = network_for(config.network, config.rules.players)
    simulations = config.search.simulations
    first, second = (
        search_player(
            name,
            network.init(jax.random.key(seed)),
            config.network,
            config.search,
            config.rules,
            simulations=simulations,
        )
        for seed, name in enumerate("ab")
    )

    def rate(run: int) -> float:
        started = time.perf_counter()
        result = play_match(
            first,
            second,
            config.rules,
            options,
            key=jax.random.key(run),
        )
        seconds = time.perf_counter() - started
        plies = sum(max(0, len(game) - OPENING) for game in result.games)
        return plies * (simulations + 1) / seconds

    return rate


if __name__ == "__main__":
    run_script(main, Options, name="match_overhead")
