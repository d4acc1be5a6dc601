"""Counts the visits that a search in rounds drops where few slots are legal.

    python -m train.bench.scripts.dropped_visits [--player pretrained:wallzero-4stone] [--seed 0]
        [--search.KEY VALUE ...] [--selfplay.KEY VALUE ...]

A round has room for as many visits as it takes where `max_considered_actions` slots are legal. A
board with fewer keeps its own schedule, and what finds no room is not made. The positions are those
of an iteration of self-play.
"""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from train.bench.harness.script import check_seed, run_configured_script
from train.bench.scripts.openings import played_plies
from train.registry import load_network
from train.runtime.host import fetch
from train.search.gumbel import RoundSchedule, round_schedule
from wallgo_jax.game import actions
from wallgo_jax.game.state import State, make_variant

SIMULATIONS = (16, 32, 64, 256)


@dataclasses.dataclass(frozen=True)
class Options:
    """Count the visits that a search in rounds drops. Any key of the player's config can be
    changed: --some.key value."""

    player: str = "pretrained:wallzero-4stone"
    """Trained player, named as in docs/players.md."""
    seed: int = 0
    """Random seed."""


def main(options: Options, overrides: Sequence[str] = ()) -> None:
    """Print a line for each number of simulations."""
    check_seed(options.seed)
    trained = load_network(options.player)
    config, plies = played_plies(
        trained.config, trained.variables, overrides=overrides, seed=options.seed
    )
    variant = make_variant(config.rules)
    count = jax.jit(
        jax.vmap(jax.vmap(lambda position: actions.legal_slots(State(variant, position)).sum()))
    )
    legal = np.asarray(fetch(count(plies.position))).reshape(-1)
    most = config.search.max_considered_actions
    print(f"{len(legal)} positions, {np.mean(legal < most):.2%} with fewer than {most} legal slots")
    for simulations in SIMULATIONS:
        schedule = round_schedule(most, simulations)
        made = np.array([visits_made(schedule, slots) for slots in range(most + 1)])
        dropped = 1 - made[np.minimum(legal, most)] / simulations
        rounds = sum(number for _, number in schedule.rounds)
        print(
            f"{simulations} simulations in {rounds} rounds: {dropped.mean():.2%} of the visits "
            f"dropped, at most {dropped.max():.1%} of a position's"
        )


def visits_made(schedule: RoundSchedule, slots: int) -> int:
    """The visits that a board makes of which `slots` are considered."""
    made = 0
    for room, number in schedule.rounds:
        for _ in range(number):
            made += min(int(schedule.left[slots, made]), room)
    return made


if __name__ == "__main__":
    run_configured_script(main, Options, name="dropped_visits")
