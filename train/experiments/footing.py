"""Worth of a search budget: matches of a player with itself, with fewer simulations or with fewer
considered actions.

Each opening is played with both colours; intervals are Wilson's over games, of one training.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from train.arena.match_programs import check_opening
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.stats import Estimate, MatchCounts
from train.experiments.lib.work import Work, check_network, play_games
from train.metrics.intervals import Curve, curves_figure
from train.players.names import read_name, read_network_name
from train.players.networks import network_config
from train.players.registry import make_player
from train.ratings.pool import identity
from train.runtime.display import Table
from wallgo_jax.game.rules import Rules


def report(work: Work) -> Report:
    """Play the matches."""
    scale, player = work.scale.footing, work.scale.footing.player
    for name in (player, *scale.considering):
        # Refused here rather than after the matches before them.
        check_network(name)
        check_opening(_rules_of(name), scale.opening_plies)
    doublings = [
        _match(work, f"{player}@{more}", f"{player}@{less}", scale.doubling_games)
        for less, more in itertools.pairwise(scale.doublings)
    ]
    sides = itertools.product(scale.considering, scale.considered_simulations, scale.considered)
    narrowed = [
        _match(
            work,
            f"{name}@{simulations}" + (f"?considered={actions}" if actions else ""),
            f"{name}@{simulations}?considered={scale.most_considered}",
            scale.considered_games,
        )
        for name, simulations, actions in sides
        if actions <= simulations
    ]
    tables = [_elo_table("What more simulations are worth", doublings)]
    pictures = [_doubling_picture(doublings, player)]
    if narrowed:
        tables.append(_elo_table("What considering fewer actions is worth", narrowed))
        pictures.append(_narrowed_picture(narrowed, scale.most_considered))
    kinds = {"doublings": doublings, "considered": narrowed}
    data = {kind: [_record(met) for met in matches] for kind, matches in kinds.items()}
    return Report("Worth of a budget", tables, data, pictures=pictures)


def _rules_of(name: str) -> Rules:
    return network_config(read_network_name(name)).rules


def _match(work: Work, first: str, second: str, games: int) -> MatchCounts:
    rules, plies = _rules_of(first), work.scale.footing.opening_plies
    players = [make_player(name, rules) for name in (first, second)]
    settings = {
        "players": [identity(*each) for each in zip((first, second), players, strict=True)],
        "rules": rules.to_dict(),
        "games": games,
        "opening_plies": plies,
        "seed": work.seed,
    }

    def play() -> list[Any]:
        result = play_games(work, players, rules, games=games, opening_plies=plies)
        # Each match has programs of its own, which would fill the process's memory maps.
        jax.clear_caches()
        return [result.wins, result.draws, result.losses]

    return MatchCounts(first, second, work.seed, *work.cached("match", settings, play))


def elo(rate: float) -> float:
    """The difference in Elo points that a win rate stands for; infinite at 0 and 1."""
    if not 0 < rate < 1:
        return math.copysign(math.inf, rate - 0.5)
    return 400 * math.log10(rate / (1 - rate))


def _elo_table(title: str, matches: Sequence[MatchCounts]) -> Table:
    """Matches of a player with itself, in points of Elo."""
    rows = []
    for met in matches:
        name = f"{met.first} against @{met.second.rpartition('@')[2]}"
        points = "{:+.0f} ({:+.0f} to {:+.0f})".format(*map(elo, met.estimate[:3]))
        points = points.replace("+inf", "∞").replace("-inf", "−∞")
        rows.append([name, f"{met.games:,}", *met.estimate.cells(), points])
    return Table(title, ("match", "games", "win rate", "95 %", "Elo"), rows)


def _doubling_picture(matches: Sequence[MatchCounts], player: str) -> Picture:
    rates = {int(met.first.rpartition("@")[2]): met.estimate for met in matches}
    in_elo = {
        more: rate._replace(mean=elo(rate.mean), low=elo(rate.low), high=elo(rate.high))
        for more, rate in rates.items()
        if 0 < rate.mean < 1
    }
    figure = curves_figure(
        [Curve("", in_elo)] if in_elo else [],
        title=f"{player} against itself with fewer simulations",
        x_label="simulations of the stronger side",
        y_label="Elo above the weaker side",
        level=0,
        is_log=True,
    )
    return Picture("doublings", "band: 95 % intervals over games", figure)


def _narrowed_picture(matches: Sequence[MatchCounts], most: int) -> Picture:
    """Win rates over simulations, a line for each player and number of considered actions."""
    lines: dict[str, dict[float, Estimate]] = {}
    for met in matches:
        name = read_name(met.first)
        label = f"{name.considered} actions" if name.considered else "own choice"
        label = f"{label}, {Path(name.target).name or name.kind}"
        lines.setdefault(label, {})[name.budget] = met.estimate
    figure = curves_figure(
        [Curve(label, points) for label, points in lines.items()],
        title=f"Fewer considered actions against {most}",
        x_label="simulations of both sides",
        y_label="win rate",
        level=0.5,
        is_log=True,
    )
    return Picture("considered", "bands: 95 % intervals over games", figure)


def _record(met: MatchCounts) -> dict[str, Any]:
    rate, low, high, _ = met.estimate
    return met._asdict() | {"win_rate": rate, "low": low, "high": high}
