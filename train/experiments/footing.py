"""Worth of a search budget: matches at equal time and at equal simulations, of a player with fewer
simulations, and of a player that considers fewer actions."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.arena.match_programs import check_opening
from train.experiments.lib import pages
from train.experiments.lib.pages import Picture, Report, Table
from train.experiments.lib.stats import Estimate, MatchCounts
from train.experiments.lib.work import Work, check_without_budget, counts_of, play_games
from train.metrics.intervals import Curve, curves_figure
from train.players.registry import common_rules, make_player, read_name
from train.ratings.pool import identity
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules


class BudgetMatch(NamedTuple):
    """A match for the first player."""

    meeting: MatchCounts
    simulations: str  # names of both players, where time was turned into simulations

    @property
    def players(self) -> tuple[str, str]:
        """The names without simulations and options."""
        first, second = self.meeting[:2]
        return first.rpartition("@")[0], second.rpartition("@")[0]

    @property
    def budgets(self) -> tuple[str, str]:
        """The part behind `@` of both names."""
        first, second = self.meeting[:2]
        return first.rpartition("@")[2], second.rpartition("@")[2]


def report(work: Work) -> Report:
    """Play the matches."""
    scale, player = work.scale.footing, work.scale.footing.player
    check_without_budget(player)
    # Refused here rather than after the matches before them.
    for name in (player, *scale.opponents):
        for budget in scale.budgets:
            check_opening(_rules_of(name, player), scale.opening_plies)
            read_name(f"{name}@{budget}")
    doublings = [
        _score(work, f"{player}@{more}", f"{player}@{less}", scale.doubling_games)
        for less, more in zip(scale.doublings, scale.doublings[1:], strict=False)
    ]
    equal = [
        _score(work, f"{player}@{budget}", f"{opponent}@{budget}", scale.games)
        for opponent in scale.opponents
        for budget in scale.budgets
    ]
    narrowed = [
        _score(work, _named(name, simulations, actions), other, scale.considered_games)
        for name in scale.considering
        for simulations in scale.considered_simulations
        for other in [_named(name, simulations, scale.most_considered)]
        for actions in scale.considered
        if actions <= simulations
    ]
    tables = [_match_table("What more simulations are worth", doublings), _equal_table(equal)]
    pictures = [_doubling_picture(doublings, player), _equal_picture(equal, player)]
    if narrowed:
        tables.append(_match_table("What considering fewer actions is worth", narrowed))
        pictures.append(_narrowed_picture(narrowed, scale.most_considered))
    text = (
        f"Matches from {scale.opening_plies} random opening plies, each opening with both colours; "
        "intervals by Wilson over games, of one training. A budget of time is turned into "
        "simulations once, for a batch of one on the machine of the table."
    )
    kinds = {"doublings": doublings, "meetings": equal, "considered": narrowed}
    data = {kind: [_record(score) for score in scores] for kind, scores in kinds.items()}
    return Report("Equal budgets", [text], tables, pictures, data)


def _named(player: str, simulations: int, considered: int) -> str:
    """A player's name with its simulations and the actions it considers; 0 for its own choice."""
    return f"{player}@{simulations}" + (f"?considered={considered}" if considered else "")


def _score(work: Work, first: str, second: str, games: int) -> BudgetMatch:
    rules, plies = _rules_of(first, second), work.scale.footing.opening_plies
    one, other = (make_player(name, rules) for name in (first, second))
    settings = {
        "players": [identity(first, one), identity(second, other)],
        "rules": rules.to_dict(),
        "games": games,
        "opening_plies": plies,
        "seed": work.seed,
    }

    def play() -> list[Any]:
        result = play_games(work, [one, other], rules, games=games, opening_plies=plies)
        # Each match has programs of its own, which would fill the process's memory maps.
        jax.clear_caches()
        return [*counts_of(result), f"{one.name} / {other.name}"]

    *counts, simulations = work.cache.cached("match", settings, play)
    return BudgetMatch(MatchCounts(first, second, work.seed, *counts), simulations)


def _rules_of(first: str, second: str) -> Rules:
    """The rules that players have learned."""
    rules = common_rules([first, second])
    if rules is None:
        raise UsageError(f"experiment: neither {first} nor {second} has learned rules")
    if rules.players != 2:
        raise UsageError(f"experiment: {first} has learned rules for {rules.players} players")
    return rules


def elo(rate: float) -> float:
    """The difference in Elo points that a win rate stands for; infinite at 0 and 1."""
    if rate <= 0 or rate >= 1:
        return math.copysign(math.inf, rate - 0.5)
    return 400 * math.log10(rate / (1 - rate))


def _match_table(title: str, scores: Sequence[BudgetMatch]) -> Table:
    """Matches of a player with itself, in points of Elo."""
    rows = []
    for score in scores:
        rate = score.meeting.estimate
        middle, low, high = (_rounded(elo(each)) for each in rate[:3])
        name = f"{score.meeting.first} against @{score.budgets[1]}"
        row = [name, f"{score.meeting.games:,}", *rate.cells(), f"{middle} ({low} to {high})"]
        rows.append(row)
    return Table(title, ("match", "games", "win rate", "95 %", "Elo"), rows)


def _rounded(points: float) -> str:
    return f"{points:+.0f}" if math.isfinite(points) else "∞" if points > 0 else "−∞"


def _equal_table(scores: Sequence[BudgetMatch]) -> Table:
    rows = []
    for (first, second, _, *counts), simulations in scores:
        rate = MatchCounts(first, second, 0, *counts).estimate
        won = ", ".join(map(str, counts))
        rows.append([f"`{first}`", f"`{second}`", won, *rate.cells(), simulations])
    heads = ("player", "opponent", "won, drawn, lost", "win rate", "95 %", "as played")
    return Table("Equal budgets", heads, rows)


def _doubling_picture(scores: Sequence[BudgetMatch], player: str) -> Picture:
    rates = {int(score.budgets[0]): score.meeting.estimate for score in scores}
    in_elo = {
        more: Estimate(elo(rate.mean), elo(rate.low), elo(rate.high), rate.number)
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


def _narrowed_picture(scores: Sequence[BudgetMatch], most: int) -> Picture:
    """Win rates over simulations, a line for each player and number of considered actions."""
    lines: dict[str, dict[float, Estimate]] = {}
    for score in scores:
        name = read_name(score.meeting.first)
        label = f"{name.considered} actions" if name.considered else "own choice"
        label = f"{label}, {Path(name.target).name or name.kind}"
        lines.setdefault(label, {})[name.budget] = score.meeting.estimate
    figure = curves_figure(
        [Curve(label, points) for label, points in lines.items()],
        title=f"Fewer considered actions against {most}",
        x_label="simulations of both sides",
        y_label="win rate",
        level=0.5,
        is_log=True,
    )
    return Picture("considered", "bands: 95 % intervals over games", figure)


def _equal_picture(scores: Sequence[BudgetMatch], player: str) -> Picture:
    rates = {f"{score.players[1]} @{score.budgets[0]}": score.meeting.estimate for score in scores}
    title = f"{player} at equal budgets"
    figure = pages.rates_figure(rates, title=title, x_label="win rate, 95 % intervals")
    return Picture("equal_budgets", "each row is an opponent with the budget of both", figure)


def _record(score: BudgetMatch) -> dict[str, Any]:
    rate = score.meeting.estimate
    figures = {"simulations": score.simulations, "win_rate": rate.mean}
    return score.meeting._asdict() | figures | {"low": rate.low, "high": rate.high}
