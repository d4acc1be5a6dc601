"""Counts how many games of a trained player's self-play open differently.

    python -m train.bench.scripts.openings [--player pretrained:wallzero-4stone] [--seed 0]
        [--selfplay.KEY VALUE ...] [--search.KEY VALUE ...]

Games that have reached a depth count there, finished or not. Two games open alike where their first
plies are the same, in the same order; two setups are the same where the same cells hold stones of
the same players. `DEFAULTS` and the keys that are given stand for those of the player's run.
"""

import collections
import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from train.bench.harness.script import check_seed, run_configured_script
from train.bench.suite import check_rules
from train.config import RunConfig, change_config
from train.data.diversity import OPENING_PLIES
from train.data.selfplay import first_boards
from train.programs.selfplay import boosted, selfplay_of, stage_at
from train.registry import load_network
from train.runtime.host import fetch
from wallgo_jax.game.state import make_variant

DEFAULTS = (
    *("--selfplay.boards", "128", "--selfplay.plies", "96"),
    *("--selfplay.full_search_prob", "0.25", "--search.simulations", "16"),
    *("--search.first_simulations", "0", "--selfplay.bootstrap_iterations", "0"),
    *("--selfplay.opponent", "", "--selfplay.cheap_noise", "false"),
    *("--selfplay.setup_prob", "0", "--selfplay.opening_plies", "0"),
    *("--selfplay.random_opening_prob", "0"),
    *("--selfplay.temperature", "0", "--search.prior_boost", "[]"),
)
"""The self-play that is counted, where the command line does not say: none of its openings vary."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Count how many games of self-play open differently. Any key of the player's config can be
    changed: --some.key value."""

    player: str = "pretrained:wallzero-4stone"
    """Trained player, named as in docs/players.md."""
    seed: int = 0
    """Random seed."""


def main(options: Options, overrides: Sequence[str] = ()) -> None:
    """Print the figures of one setting, a line each."""
    check_seed(options.seed)
    trained = load_network(options.player)
    config, plies = played_plies(
        trained.config, trained.variables, overrides=overrides, seed=options.seed
    )
    games = games_of(plies)
    setup = len(config.rules.order)
    if setup:
        print(describe("setups", [setup_of(game, setup) for game in games if len(game) >= setup]))
    openings = [game[:OPENING_PLIES] for game in games if len(game) >= OPENING_PLIES]
    print(describe(f"first {OPENING_PLIES} plies", [tuple(game) for game in openings]))


def configure(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The config of a player's run with the defaults of this script, changed by the overrides.

    Raises:
      UsageError: a key or a value that is not allowed.
    """
    return change_config(config, [*DEFAULTS, *overrides, "--iterations", "1"])


Ply = tuple[int, int]
"""Player and public place of a ply: its cell in setup, else its slot."""


def played_plies(
    config: RunConfig, variables: Any, *, overrides: Sequence[str], seed: int
) -> tuple[RunConfig, Any]:
    """The config with its changes, and the plies [T, B] of an iteration of self-play on one device.

    Raises:
      UsageError: a key or a value that is not allowed, or the player has learned several rule sets.
    """
    config = configure(config, overrides)
    check_rules(config, "self-play")
    boards = config.selfplay.boards
    variant = jax.tree.map(
        lambda x: np.broadcast_to(np.asarray(x), (boards, *np.shape(x))), make_variant(config.rules)
    )
    selfplay = jax.jit(selfplay_of(config, stage_at(config, 0)))
    first = jax.jit(first_boards)(variant)
    own = boosted(config, variables, 0)
    _, plies, _ = selfplay(own, variant, first, jax.random.key(seed))
    return config, plies


def games_of(plies: Any) -> list[list[Ply]]:
    """Plies [T, B] game by game, as players and slots."""
    slots, players, ended = fetch((plies.slot, plies.position.player, plies.terminated))
    games = []
    for board in range(slots.shape[1]):
        game: list[Ply] = []
        for row in range(len(slots)):
            game.append((int(players[row, board]), int(slots[row, board])))
            if ended[row, board]:
                games.append(game)
                game = []
        games.append(game)
    return games


def setup_of(game: list[Ply], length: int) -> frozenset[Ply]:
    """The placements of a game, in any order."""
    return frozenset(game[:length])


def describe(what: str, found: list[Hashable]) -> str:
    """How many of some games differ, in a line."""
    counts = collections.Counter(found)
    distinct, commonest = len(counts), max(counts.values(), default=0)
    total = max(len(found), 1)
    return (
        f"{what}: {len(found)} games, {distinct} distinct ({distinct / total:.1%}), "
        f"the commonest in {commonest / total:.1%}"
    )


if __name__ == "__main__":
    run_configured_script(main, Options, name="openings")
