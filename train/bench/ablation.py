"""What targets, symmetry and ways of self-play each give, at equal wall time on a small board.

    python -m train.bench.ablation [--seconds 25] [--seeds 0 1 2] [--games 400]
        [--json OUT]

Every variant changes one thing of the base, learns for the same number of seconds (compilation
aside: the clock starts after the first iteration), and then plays the base of the same seed. The
table gives (W + D / 2) / N of each against the base, seed by seed and pooled, with Wilson's 95 %
interval of the pooled games. Run it with nothing else on the machine.
"""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from train.arena.match import MatchOptions, play_match
from train.arena.result import wilson_interval
from train.config import EvaluationConfig, RunConfig
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.loop.programs import make_programs
from train.loop.training import run_iteration
from train.network import NetworkConfig, Variables
from train.players.learned import search_player
from train.search.config import SearchConfig
from wallgo_jax.game.rules import Rules

RULES = Rules(size=5, stones=2, order=(0, 1, 1, 0))
SIMULATIONS = 16


class Trained(NamedTuple):
    """What a variant came to with one seed."""

    variables: Variables
    config: RunConfig
    iterations: int
    games: float


def base() -> RunConfig:
    """The run that all variants are compared with: no auxiliary target."""
    return RunConfig(
        name="ablation",
        iterations=10_000,
        rules=RULES,
        network=NetworkConfig(width=32, ownership=False),
        search=SearchConfig(simulations=SIMULATIONS),
        selfplay=SelfPlayConfig(boards=256, plies=16),
        replay=ReplayConfig(positions=100_000),
        learner=LearnerConfig(
            batch=256, steps=16, learning_rate=3e-3, schedule="steps", lr_drops=(), warmup=50
        ),
        evaluation=EvaluationConfig(every=0),
    )


def variants() -> dict[str, RunConfig]:
    """The base, and what differs from it in one thing."""
    plain = base()

    def changed(table: str, **fields: Any) -> RunConfig:
        return dataclasses.replace(
            plain, **{table: dataclasses.replace(getattr(plain, table), **fields)}
        )

    return {
        "base": plain,
        "ownership": changed("network", ownership=True),
        "ownership and margin": changed("network", ownership=True, margin=True),
        "no symmetry": changed("learner", symmetry=False),
        "playout cap": changed("selfplay", full_search_prob=0.25, cheap_simulations=4),
        "bootstrap": changed("selfplay", bootstrap_iterations=3),
    }


def learn(config: RunConfig, *, seconds: float) -> Trained:
    """Train until the time is over."""
    programs = make_programs(config)
    state, games, started, iteration = programs.init(), 0.0, None, 0
    while started is None or time.perf_counter() - started < seconds:
        state, row = run_iteration(config, programs, state, iteration)
        games += row["games"]
        iteration += 1
        if started is None:  # everything is compiled
            started = time.perf_counter()
    return Trained(jax.tree.map(np.asarray, state.learner.player), config, iteration, games)


def player_of(name: str, trained: Trained) -> Any:
    """A search without noise."""
    config = trained.config
    return search_player(
        name, trained.variables, config.network, config.search, RULES, simulations=SIMULATIONS
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Variants of one run at equal wall time.")
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in options.seeds:
        players = {}
        for name, config in variants().items():
            config = dataclasses.replace(config, seed=seed)
            trained = learn(config, seconds=options.seconds)
            players[name] = player_of(name, trained)
            result = play_match(
                players[name],
                players["base"],
                RULES,
                MatchOptions(games=options.games, opening_plies=4),
                key=jax.random.key(seed),
            )
            row = {
                "win_rate": result.win_rate,
                "iterations": trained.iterations,
                "games": trained.games,
            }
            print(f"seed {seed}: {name}: {row}", file=sys.stderr)
            rows.setdefault(name, []).append(row)
    where = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    Console().print(_table(rows, options, where))
    if options.json is not None:
        record = {"where": where, "seconds": options.seconds, "games": options.games, "rows": rows}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _table(
    rows: dict[str, list[dict[str, float]]], options: argparse.Namespace, where: str
) -> Table:
    seeds = ", ".join(map(str, options.seeds))
    table = Table(
        caption=f"{options.seconds:g} s each · seeds {seeds} · {options.games} games a seed · "
        f"{SIMULATIONS} simulations · 4 random opening plies · {where}",
        caption_justify="left",
    )
    for head in ("against base", "by seed", "pooled", "95 % interval", "iterations"):
        table.add_column(head)
    for name, found in rows.items():
        rates = [row["win_rate"] for row in found]
        low, high = wilson_interval(float(np.mean(rates)), options.games * len(rates))
        table.add_row(
            name,
            " ".join(f"{rate:.1%}" for rate in rates),
            f"{np.mean(rates):.1%}",
            f"{low:.1%} to {high:.1%}",
            " ".join(f"{row['iterations']:.0f}" for row in found),
        )
    return table


if __name__ == "__main__":
    main()
