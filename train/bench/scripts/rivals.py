"""Compares two ways of the heuristics to score games of three and four.

    python -m train.bench.scripts.rivals [--games 402] [--seed 0]

One player of a kind meets others of the other kind at all other seats. `nearest` is what the
heuristics do: a cell counts for the side that is strictly nearer than every other. `together` takes
all others as one side, so a cell counts for a player or against it.
"""

import dataclasses

import jax

from train.arena.seats.match import SeatOptions, play_seats
from train.arena.seats.result import SeatedResult
from train.arena.seats.seating import fill_seats
from train.bench.harness.script import check_seed, run_script, usage_errors
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_player, score_against_all
from wallgo_jax.game.rules import PRESETS

RULES = ("playwallgo-3p", "playwallgo-4p")


@dataclasses.dataclass(frozen=True)
class Options:
    """Compare two ways of the heuristics to score games of three and four."""

    games: int = 402
    """Games of each match, at least."""
    seed: int = 0
    """Random seed."""


def main(options: Options) -> None:
    """Print a line for each match."""
    check_seed(options.seed)
    with usage_errors():
        how = SeatOptions(options.games, options.games)
    for name in RULES:
        rules = PRESETS[name]
        for heuristic in ("wjx", "ethen"):
            config = getattr(HeuristicsConfig(), heuristic)
            nearest = make_heuristic_player(f"{heuristic}, nearest", config)
            together = make_heuristic_player(
                f"{heuristic}, together", config, score_of=score_against_all
            )
            kinds = {player.name: player for player in (nearest, together)}
            for names in (list(kinds), list(kinds)[::-1]):
                seated = [kinds[each] for each in fill_seats(names, rules)]
                result = play_seats(
                    seated,
                    rules,
                    dataclasses.replace(how, opening_plies=rules.players),
                    key=jax.random.key(options.seed),
                )
                print(f"{name}: {line_of(result)}", flush=True)


def line_of(result: SeatedResult) -> str:
    """The first entrant's figures in one line."""
    low, high = result.interval(0)
    one, other = result.names
    return (
        f"one {one} against {other}: won, drawn, lost {result.wins(0)}, {result.draws}, "
        f"{result.losses(0)}; win rate {result.win_rate(0):.1%} ({low:.1%} to {high:.1%}; equal "
        f"players {1 / result.rules.players:.1%})"
    )


if __name__ == "__main__":
    run_script(main, Options, name="rivals")
