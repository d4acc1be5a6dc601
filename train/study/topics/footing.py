"""Equal footing: matches at equal time and at many simulations, and what a doubling is worth."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.arena.match import MatchOptions, play_meeting
from train.arena.match_programs import check_opening
from train.arena.result import wilson_interval
from train.players.registry import common_rules, make_player, read_name
from train.ratings.pool import identity
from train.runtime.errors import UsageError
from train.study.frame.report import Picture, Report, Table, percent, percent_range
from train.study.frame.work import Work
from wallgo_jax.game.rules import Rules

_BATCH = 200


class Score(NamedTuple):
    """A match for the first player."""

    first: str
    second: str
    wins: int
    draws: int
    losses: int
    simulations: str  # of both players, where time was turned into them

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def rate(self) -> float:
        """Wins, a draw as half."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """Of the rate, 95 %, by Wilson."""
        return wilson_interval(self.rate, self.games)


def report(work: Work) -> Report:
    """Play the matches."""
    scale = work.scale.footing
    if read_name(scale.player).has_budget:
        raise UsageError(f"study: player {scale.player!r}: name a player without simulations")
    # Refused here rather than after the matches before them.
    for name in (scale.player, *scale.opponents):
        for budget in scale.budgets:
            check_opening(_rules_of(name, scale.player), scale.opening_plies)
            read_name(f"{name}@{budget}")
    steps = list(zip(scale.doublings, scale.doublings[1:], strict=False))
    doublings = [
        _score(work, f"{scale.player}@{more}", f"{scale.player}@{less}", scale.doubling_games)
        for less, more in steps
    ]
    meetings = [
        _score(work, f"{scale.player}@{budget}", f"{opponent}@{budget}", scale.games)
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
    tables = [_doubling_table(doublings), _meeting_table(meetings)]
    pictures = [_doubling_picture(doublings, steps, scale.player), _meeting_picture(meetings)]
    if narrowed:
        tables.append(_match_table("What considering fewer actions is worth", narrowed))
        pictures.append(_narrowed_picture(narrowed, scale.most_considered))
    return Report(
        title="Equal footing",
        text=_text(work),
        tables=tables,
        pictures=pictures,
        data={
            "doublings": [_record(score) for score in doublings],
            "meetings": [_record(score) for score in meetings],
            "considered": [_record(score) for score in narrowed],
        },
    )


def _named(player: str, simulations: int, considered: int) -> str:
    """A player's name with its simulations and the actions it considers; 0 for its own choice."""
    return f"{player}@{simulations}" + (f"?considered={considered}" if considered else "")


def _score(work: Work, first: str, second: str, games: int) -> Score:
    rules = _rules_of(first, second)
    one, other = (make_player(name, rules) for name in (first, second))
    plies, seed = work.scale.footing.opening_plies, work.scale.seed
    settings = {
        "players": [identity(first, one), identity(second, other)],
        "rules": rules.to_dict(),
        "games": games,
        "opening_plies": plies,
        "seed": seed,
    }

    def make() -> list[Any]:
        options = MatchOptions(games=games, batch=min(games, _BATCH), opening_plies=plies)
        with work.task(f"{first} against {second}", games, "games") as on_progress:
            found = play_meeting(
                (one, other), rules, options, seed=seed, before=0, on_progress=on_progress
            )
        # Each match has programs of its own, which would fill the process's memory maps.
        jax.clear_caches()
        return [found.wins, found.draws, found.losses, f"{one.name} / {other.name}"]

    kept = work.pieces.keep("match", settings, make)
    return Score(first, second, *kept)


def _rules_of(first: str, second: str) -> Rules:
    """The rules that players have learned."""
    rules = common_rules([first, second])
    if rules is None:
        raise UsageError(f"study: neither {first} nor {second} has learned rules")
    if rules.players != 2:
        raise UsageError(f"study: {first} has learned rules for {rules.players} players, not 2")
    return rules


def elo(rate: float) -> float:
    """The difference in Elo points that a win rate stands for; infinite at 0 and 1."""
    if rate <= 0 or rate >= 1:
        return math.copysign(math.inf, rate - 0.5)
    return 400 * math.log10(rate / (1 - rate))


def _text(work: Work) -> list[str]:
    scale = work.scale.footing
    return [
        f"Matches from {scale.opening_plies} random opening plies, each opening with both colours; "
        "intervals by Wilson over games, of one training. A budget of time is turned into "
        "simulations once, for a batch of one on the machine of the table.",
    ]


def _doubling_table(scores: list[Score]) -> Table:
    return _match_table("What more simulations are worth", scores)


def _match_table(title: str, scores: list[Score]) -> Table:
    """Matches of a player with itself, in points of Elo."""
    rows = []
    for score in scores:
        low, high = score.interval
        rows.append(
            (
                f"{score.first} against @{score.second.rpartition('@')[2]}",
                f"{score.games:,}",
                percent(score.rate),
                percent_range(low, high),
                f"{_rounded(elo(score.rate))} ({_rounded(elo(low))} to {_rounded(elo(high))})",
            )
        )
    heads = ("match", "games", "win rate", "95 %", "Elo")
    return Table(title, heads, tuple(rows))


def _meeting_table(scores: list[Score]) -> Table:
    rows = []
    for score in scores:
        low, high = score.interval
        rows.append(
            (
                f"`{score.first}`",
                f"`{score.second}`",
                f"{score.wins}, {score.draws}, {score.losses}",
                percent(score.rate),
                percent_range(low, high),
                score.simulations,
            )
        )
    heads = ("player", "opponent", "won, drawn, lost", "win rate", "95 %", "as played")
    return Table("Equal budgets", heads, tuple(rows))


def _rounded(points: float) -> str:
    return f"{points:+.0f}" if math.isfinite(points) else "∞" if points > 0 else "−∞"


def _doubling_picture(scores: list[Score], steps: list[tuple[int, int]], player: str) -> Picture:
    from train.metrics.plot_style import COLOURS, new_plot

    figure, axes = new_plot(
        title=f"{player} against itself with fewer simulations",
        x_label="simulations of the stronger side",
        y_label="Elo above the weaker side",
    )
    for score, (_, more) in zip(scores, steps, strict=True):
        low, middle, high = (
            elo(rate) for rate in (score.interval[0], score.rate, score.interval[1])
        )
        if math.isfinite(middle):
            axes.plot((more, more), (low, high), color=COLOURS[0], linewidth=2.2, alpha=0.55)
            axes.plot(more, middle, color=COLOURS[0], marker="o", markersize=6)
    axes.set_xscale("log", base=2)
    axes.set_xticks([more for _, more in steps], [f"{more:,}" for _, more in steps])
    axes.axhline(0, color="#6e7781", linewidth=1)
    return Picture("doublings", "95 % intervals over games", figure)


def _narrowed_picture(scores: list[Score], most: int) -> Picture:
    """Win rates over simulations, a line for each player and number of considered actions."""
    from train.metrics.plot_style import COLOURS, new_plot

    figure, axes = new_plot(
        title=f"Fewer considered actions against {most}",
        x_label="simulations of both sides",
        y_label="win rate",
    )
    lines: dict[tuple[str, str], list[tuple[int, Score]]] = {}
    for score in scores:
        name = read_name(score.first)
        label = f"{name.considered} actions" if name.considered else "own choice"
        lines.setdefault((Path(name.target).name or name.kind, label), []).append(
            (name.budget, score)
        )
    labels = list(dict.fromkeys(label for _, label in lines))
    players = list(dict.fromkeys(player for player, _ in lines))
    for (player, label), points in lines.items():
        budgets = [budget for budget, _ in points]
        axes.errorbar(
            budgets,
            [score.rate for _, score in points],
            yerr=[
                [score.rate - score.interval[0] for _, score in points],
                [score.interval[1] - score.rate for _, score in points],
            ],
            color=COLOURS[labels.index(label)],
            linestyle=("-", "--", ":", "-.")[players.index(player) % 4],
            marker="o",
            label=f"{label}, {player}",
        )
    budgets = sorted({budget for points in lines.values() for budget, _ in points})
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [str(budget) for budget in budgets])
    axes.axhline(0.5, color="#6e7781", linewidth=1)
    axes.legend(frameon=False, fontsize=8)
    return Picture("considered", "95 % intervals over games", figure)


def _meeting_picture(scores: list[Score]) -> Picture:
    from train.metrics.intervals import Interval, intervals_figure

    rows = [
        Interval(
            f"{score.second.rpartition('@')[0]} @{score.first.rpartition('@')[2]}",
            score.rate,
            *score.interval,
        )
        for score in scores
    ]
    figure = intervals_figure(
        rows,
        title=f"{scores[0].first.rpartition('@')[0]} at equal budgets",
        x_label="win rate, 95 % intervals",
        middle=0.5,
        is_share=True,
    )
    return Picture("equal_budgets", "each row is an opponent with the budget of both", figure)


def _record(score: Score) -> dict[str, Any]:
    low, high = score.interval
    return score._asdict() | {"win_rate": score.rate, "low": low, "high": high}
