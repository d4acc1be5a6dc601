"""A match of two search players beside self-play, in useful evaluations a second.

    python -m train.bench.match [--boards 256] [--simulations 16] [--games 1024]

An evaluation is useful where the board is live and the player that looks is to move: in self-play
all are, in a match those of the plies that were played after the opening. Both use all devices,
the same network and the same number of boards at once; runs alternate, medians are compared.
"""

import argparse
import statistics
import time

import jax
import numpy as np

from train.runtime.devices import use_all_cores

use_all_cores()

from train.arena.match import MatchOptions, play_match  # noqa: E402
from train.config import read_config  # noqa: E402
from train.loop.programs import make_programs  # noqa: E402
from train.network.build import network_for  # noqa: E402
from train.players.learned import search_player  # noqa: E402

OPENING = 2


def main() -> None:
    """Print both rates of each run and the ratio of the medians."""
    parser = argparse.ArgumentParser(description="Match speed beside self-play speed.")
    parser.add_argument("--boards", type=int, default=256)
    parser.add_argument("--simulations", type=int, default=16)
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    words = f"--selfplay.boards {options.boards} --selfplay.full_search_prob 1 --search.simulations"
    config = read_config(None, [*words.split(), f"{options.simulations}"])
    play, match = _selfplay(config), _match(config, options.games)
    for function in (play, match):
        function(0)
    rates = [(play(i), match(i)) for i in range(1, options.repeats + 1)]
    for own, other in rates:
        print(f"self-play {own:,.0f}  match {other:,.0f} useful evaluations/s", flush=True)
    own, other = (statistics.median(column) for column in zip(*rates, strict=True))
    print(
        f"{jax.device_count()} devices, {options.boards} boards, {options.simulations} "
        f"simulations, {options.games} games: match / self-play {other / own:.3f}"
    )


def _selfplay(config):
    programs = make_programs(config)
    state = programs.init()
    boards = [state.boards]
    learner = state.learner

    def run(number: int) -> float:
        started, iterations = time.perf_counter(), 4
        for index in range(iterations):
            keys = programs.keys(number * iterations + index)
            program = programs.selfplay_at(0)
            boards[0], *_ = program(learner.player, programs.variant, boards[0], keys.play)
        jax.block_until_ready(boards[0])
        seconds = time.perf_counter() - started
        plies = iterations * config.selfplay.boards * config.selfplay.plies
        return plies * (config.search.simulations + 1) / seconds

    return run


def _match(config, games: int):
    network = network_for(config.network, 2)
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

    def run(number: int) -> float:
        started = time.perf_counter()
        result = play_match(
            first,
            second,
            config.rules,
            MatchOptions(games=games, batch=config.selfplay.boards, opening_plies=OPENING),
            key=jax.random.key(number),
        )
        seconds = time.perf_counter() - started
        plies = np.sum([max(0, len(game) - OPENING) for game in result.games])
        return float(plies) * (simulations + 1) / seconds

    return run


if __name__ == "__main__":
    main()
