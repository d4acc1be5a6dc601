"""Worth of a search budget: matches at equal time and at equal simulations, of a player with fewer
simulations, and of a player that considers fewer actions.

Each opening is played with both colours; intervals are Wilson's over games, of one training. A
budget of time is turned into simulations once, for a batch of one on the machine of the table.
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
from train.experiments.lib.work import Work, play_games
from train.metrics.intervals import Curve, curves_figure
from train.players.names import check_without_budget, read_name
from train.players.networks import common_rules
from train.players.registry import make_player
from train.ratings.pool import identity
from train.runtime.display import Table
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules

BudgetMatch = tuple[MatchCounts, str]
"""A match, and the names of both players, where time was turned into simulations."""


def report(work: Work) -> Report:
    """Play the matches."""
    scale, player = work.scale.footing, work.scale.footing.player
    check_without_budget(read_name(player))
    # Refused here rather than after the matches before them.
    for name, budget in itertools.product((player, *scale.opponents), scale.budgets):
        check_opening(_rules_of(name, player), scale.opening_plies)
        read_name(f"{name}@{budget}")
    doublings = [
        _match(work, f"{player}@{more}", f"{player}@{less}", scale.doubling_games)
        for less, more in itertools.pairwise(scale.doublings)
    ]
    equal = [
        _match(work, f"{player}@{budget}", f"{opponent}@{budget}", scale.games)
        for opponent, budget in itertools.product(scale.opponents, scale.budgets)
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
    tables = [_elo_table("What more simulations are worth", doublings), _equal_table(equal)]
    pictures = [_doubling_picture(doublings, player)]
    if narrowed:
        tables.append(_elo_table("What considering fewer actions is worth", narrowed))
        pictures.append(_narrowed_picture(narrowed, scale.most_considered))
    kinds = {"doublings": doublings, "meetings": equal, "considered": narrowed}
    data = {kind: [_record(*match) for match in matches] for kind, matches in kinds.items()}
    return Report("Equal budgets", tables, data, pictures=pictures)


def _match(work: Work, first: str, second: str, games: int) -> BudgetMatch:
    rules, plies = _rules_of(first, second), work.scale.footing.opening_plies
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
        counts = [result.wins, result.draws, result.losses]
        return [*counts, " / ".join(player.name for player in players)]

    *counts, names = work.cached("match", settings, play)
    return MatchCounts(first, second, work.seed, *counts), names


def _rules_of(first: str, second: str) -> Rules:
    """The rules that players have learned."""
    rules = common_rules([first, second])
    if rules is None or rules.players != 2:
        learned = "no rules" if rules is None else f"rules for {rules.players} players"
        raise UsageError(f"experiment: {first} and {second} have learned {learned}")
    return rules


def elo(rate: float) -> float:
    """The difference in Elo points that a win rate stands for; infinite at 0 and 1."""
    if not 0 < rate < 1:
        return math.copysign(math.inf, rate - 0.5)
    return 400 * math.log10(rate / (1 - rate))


def _elo_table(title: str, matches: Sequence[BudgetMatch]) -> Table:
    """Matches of a player with itself, in points of Elo."""
    rows = []
    for met, _ in matches:
        name = f"{met.first} against @{met.second.rpartition('@')[2]}"
        points = "{:+.0f} ({:+.0f} to {:+.0f})".format(*map(elo, met.estimate[:3]))
        points = points.replace("+inf", "∞").replace("-inf", "−∞")
        rows.append([name, f"{met.games:,}", *met.estimate.cells(), points])
    return Table(title, ("match", "games", "win rate", "95 %", "Elo"), rows)


def _equal_table(matches: Sequence[BudgetMatch]) -> Table:
    rows = []
    for met, names in matches:
        counts = ", ".join(map(str, met[3:]))
        row = [f"`{met.first}`", f"`{met.second}`", counts, *met.estimate.cells(), names]
        rows.append(row)
    heads = ("player", "opponent", "won, drawn, lost", "win rate", "95 %", "as played")
    return Table("Equal budgets", heads, rows)


def _doubling_picture(matches: Sequence[BudgetMatch], player: str) -> Picture:
    rates = {int(met.first.rpartition("@")[2]): met.estimate for met, _ in matches}
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


def _narrowed_picture(matches: Sequence[BudgetMatch], most: int) -> Picture:
    """Win rates over simulations, a line for each player and number of considered actions."""
    lines: dict[str, dict[float, Estimate]] = {}
    for met, _ in matches:
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


def _record(met: MatchCounts, names: str) -> dict[str, Any]:
    rate, low, high, _ = met.estimate
    return met._asdict() | {"simulations": names, "win_rate": rate, "low": low, "high": high}
