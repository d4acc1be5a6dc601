"""Compares targets, symmetry and self-play options at equal wall time on a small board.

    python -m train.bench.ablation [--seconds 25] [--seeds 0 1 2] [--games 400]
        [--json OUT]

Every variant changes one thing of the base and learns for the same number of seconds; the clock
starts after the first iteration, when everything is compiled. Then it plays the base of the same
seed. The table gives (W + D / 2) / N of each variant against the base, seed by seed and pooled,
with Wilson's 95 % interval of the pooled games.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from train.arena.match import MatchOptions, play_match
from train.arena.result import wilson_interval
from train.bench.script import run_script
from train.config import EvaluationConfig, RunConfig
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.loop.training import run_iteration
from train.network import NetworkConfig, Variables
from train.players.basic import Player
from train.players.learned import search_player
from train.programs.assembly import make_programs
from train.search.config import SearchConfig
from wallgo_jax.game.rules import Rules

RULES = Rules(size=5, stones=2, order=(0, 1, 1, 0))
SIMULATIONS = 16
OPENING = 4
"""Random plies at the start of a match's games."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Compare variants of one run at equal wall time."""

    seconds: float = 25
    """Seconds that each variant learns."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Random seeds; each variant learns once with each."""
    games: int = 400
    """Games of each variant against the base, for each seed."""
    json: Path | None = None
    """File to write the figures to as well."""


class Trained(NamedTuple):
    """A variant after learning with one seed."""

    variables: Variables
    config: RunConfig
    iterations: int
    games: float  # of self-play


class Score(NamedTuple):
    """A variant's match against the base of the same seed."""

    win_rate: float
    iterations: int
    games: float  # of self-play


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
    """The base, and variants that each change one thing of it."""
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


def player_of(name: str, trained: Trained) -> Player:
    """The player that searches, without noise, with what was trained."""
    config = trained.config
    return search_player(
        name, trained.variables, config.network, config.search, RULES, simulations=SIMULATIONS
    )


def main(options: Options) -> None:
    """Measure and print."""
    scores: dict[str, list[Score]] = {name: [] for name in variants()}
    for seed in options.seeds:
        for name, score in _scores(seed, options):
            print(f"seed {seed}: {name}: {score._asdict()}", file=sys.stderr)
            scores[name].append(score)
    where = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    Console().print(_table(scores, options, where))
    if options.json is not None:
        rows = {name: [score._asdict() for score in found] for name, found in scores.items()}
        record = {"where": where, "seconds": options.seconds, "games": options.games, "rows": rows}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _scores(seed: int, options: Options) -> Iterator[tuple[str, Score]]:
    """Train every variant with a seed and match it against the base, which comes first."""
    players: dict[str, Player] = {}
    for name, config in variants().items():
        trained = learn(dataclasses.replace(config, seed=seed), seconds=options.seconds)
        players[name] = player_of(name, trained)
        result = play_match(
            players[name],
            players["base"],
            RULES,
            MatchOptions(games=options.games, opening_plies=OPENING),
            key=jax.random.key(seed),
        )
        yield name, Score(result.win_rate, trained.iterations, trained.games)


def _table(scores: dict[str, list[Score]], options: Options, where: str) -> Table:
    seeds = ", ".join(map(str, options.seeds))
    table = Table(
        caption=f"{options.seconds:g} s each · seeds {seeds} · {options.games} games a seed · "
        f"{SIMULATIONS} simulations · {OPENING} random opening plies · {where}",
        caption_justify="left",
    )
    for head in ("against base", "by seed", "pooled", "95 % interval", "iterations"):
        table.add_column(head)
    for name, found in scores.items():
        rates = [score.win_rate for score in found]
        low, high = wilson_interval(float(np.mean(rates)), options.games * len(rates))
        table.add_row(
            name,
            " ".join(f"{rate:.1%}" for rate in rates),
            f"{np.mean(rates):.1%}",
            f"{low:.1%} to {high:.1%}",
            " ".join(str(score.iterations) for score in found),
        )
    return table


if __name__ == "__main__":
    run_script(main, Options, name="ablation")
