"""Measures whether win chances come true: values against outcomes, before and after the search.

Positions are compared from the side of the player to move. The factors are fitted to half of the
games; every figure is of the other half.

N positions, G games.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from train.data.record_dataset import RecordedGames
from train.players.basic import Player
from train.review.own_games import states_of
from train.review.player import search_positions
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.files import plain_data
from train.runtime.results import Result
from train.search.evaluator import Calibration, win_chance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10
_RESAMPLES = 1000
NETWORK, SEARCH = "before search", "after search"


class Bin(NamedTuple):
    """Positions of about the same predicted chance."""

    predicted: float  # mean
    scored: float  # mean of 1 for a win, 1/2 for a draw, 0 for a loss
    interval: tuple[float, float]  # 95 %, games drawn anew
    positions: int


class ReliabilityCurve(NamedTuple):
    """A reliability curve and its errors."""

    bins: tuple[Bin, ...]
    brier: float  # mean squared error of the chance
    cross_entropy: float  # nats
    calibration_error: float  # mean distance of bins from the diagonal, by positions


@dataclasses.dataclass(frozen=True)
class Reliability(Result):
    """A player's values compared with outcomes."""

    player: str
    calibration: Calibration
    games: int
    positions: int  # of the measured half
    measured_games: int  # that these are of
    curves: dict[str, dict[str, ReliabilityCurve]]
    """By NETWORK and SEARCH: `plain` of (1 + v) / 2, and `calibrated`."""
    is_interrupted: bool = False
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)
    on_stop = "the positions searched so far are measured; the same command starts anew"

    def __str__(self) -> str:
        return f"{self.positions:,} positions of {self.measured_games:,} games"

    def table(self) -> Table:
        """Errors before and after the search, as they are and calibrated."""
        rows, factors = [], (self.calibration.network, self.calibration.search)
        for factor, (name, curves) in zip(factors, self.curves.items(), strict=True):
            for each, curve in zip((1.0, factor), curves.values(), strict=True):
                errors = f"{curve.brier:.4f}", f"{curve.cross_entropy:.4f}"
                rows.append([name, f"{each:.2f}", *errors, f"{curve.calibration_error:.1%}"])
        heads = ("", "factor", "Brier score", "cross entropy", "calibration error")
        caption = f"{self} that the factors were not fitted to"
        return Table(f"Win chances of {self.player}", heads, rows, caption)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each bin of each curve."""
        return [
            {"values": name, "kind": kind} | bin_._asdict()
            for name, curves in self.curves.items()
            for kind, curve in curves.items()
            for bin_ in curve.bins
        ]

    def summary(self) -> dict[str, Any]:
        """What `calibrate --json` writes; `calibration` is what `review` reads."""
        names = ("player", "calibration", "games", "positions", "measured_games", "curves")
        return plain_data({name: getattr(self, name) for name in names})

    @property
    def caption(self) -> str:
        """What the picture shows, in words."""
        return f"{self.player} · {self} · bars: 95 %, games drawn anew"

    def figure(self) -> "Figure":
        """The curves before and after the search, calibrated ones dashed, as a figure of
        matplotlib."""
        from train.metrics import figure as style

        figure = style.new_figure(size=(9, 4.8), dpi=144)
        for place, (name, curves) in enumerate(self.curves.items()):
            axes = figure.add_subplot(1, 2, place + 1)
            style.set_style(axes)
            axes.set_title(name, loc="left", fontsize=12, color=style.INK)
            axes.plot((0, 1), (0, 1), color=style.GREY, linewidth=0.8)
            for kind, curve in enumerate(curves.values()):
                x, y = (np.array([each[i] for each in curve.bins]) for i in range(2))
                low, high = np.array([each.interval for each in curve.bins]).T
                axes.errorbar(
                    x,
                    y,
                    yerr=np.maximum([y - low, high - y], 0),
                    color=style.COLOURS[kind],
                    marker=style.MARKS[kind],
                    markersize=5,
                    linewidth=1.4,
                    linestyle=style.DASHED if kind else "-",
                    elinewidth=0.8,
                    label="calibrated" if kind else "(1 + value) / 2",
                )
            axes.set_xlim(0, 1)
            axes.set_ylim(0, 1)
            axes.set_xlabel("predicted win chance", color=style.INK)
            axes.legend(frameon=False, loc="upper left")
        figure.axes[0].set_ylabel("score", color=style.INK)
        return figure


def measure_reliability(
    player: Player,
    recorded: RecordedGames,
    *,
    positions: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda simulations: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Reliability:
    """Search positions of finished games and compare their values with how the games ended.

    Args:
      player: searches; made for two players.
      recorded: at least two games.
      positions: drawn from all of them; all where there are fewer.
      seed: decides which.
      on_progress: as in `search_positions`.
      should_stop: asked now and then; what is searched by then is measured.

    Raises:
      UsageError: there are too few games or positions.
    """
    examples, states = states_of(recorded)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(states))[:positions]
    searched = [states[i] for i in chosen]
    reports = search_positions(player, searched, on_progress=on_progress, should_stop=should_stop)
    chosen = chosen[: len(reports)]
    games = np.asarray(examples.game)[chosen]
    movers = np.array([report.mover for report in reports])
    outcome = np.array([record.result for record in recorded.records])[games, movers]
    values = {
        NETWORK: np.array([report.network_values[report.mover] for report in reports], float),
        SEARCH: np.array([report.best_values[report.mover] for report in reports], float),
    }
    rest = games % 2 == 1
    if rest.all() or not rest.any():
        raise UsageError("calibrate: too few positions: each half of the games needs some")
    factors = {name: fit_factor(value[~rest], outcome[~rest]) for name, value in values.items()}

    scores = (1 + outcome[rest]) / 2

    def curve(name: str, factor: float) -> ReliabilityCurve:
        chance = win_chance(values[name][rest], players=2, factor=factor)
        return make_curve(chance, scores, games[rest], rng)

    plain = {name: curve(name, 1.0) for name in values}
    curves = {
        name: {"plain": plain[name], "calibrated": curve(name, factor)}
        for name, factor in factors.items()
    }
    return Reliability(
        player=player.name,
        calibration=Calibration(factors[NETWORK], factors[SEARCH], player.search.simulations),
        games=len(recorded.records),
        positions=int(rest.sum()),
        measured_games=len(np.unique(games[rest])),
        curves=curves,
        is_interrupted=should_stop(),
    )


def fit_factor(value: np.ndarray, outcome: np.ndarray) -> float:
    """The factor of log-odds of the least cross entropy; two players.

    Args:
      value: float[N] in [-1, 1].
      outcome: float[N]: 1, 0 or -1 from the same side.
    """
    from scipy.optimize import minimize_scalar

    chance = np.clip((1 + np.asarray(value, np.float64)) / 2, 1e-3, 1 - 1e-3)
    odds, target = np.log(chance / (1 - chance)), (1 + np.asarray(outcome, np.float64)) / 2

    def loss(log_factor: float) -> float:
        scaled = math.exp(log_factor) * odds
        return float(np.mean(np.logaddexp(0, scaled) - target * scaled))

    fit: Any = minimize_scalar(loss, bounds=(math.log(0.05), math.log(20)), method="bounded")
    return math.exp(float(fit.x))


def make_curve(
    chance: np.ndarray, score: np.ndarray, games: np.ndarray, rng: np.random.Generator
) -> ReliabilityCurve:
    """The curve of predicted chances float[N] against scores float[N] of int[N] games."""
    place = np.minimum((chance * BINS).astype(int), BINS - 1)
    bins = []
    for index in range(BINS):
        here = place == index
        if here.any():
            interval, count = _interval(score[here], games[here], rng), int(here.sum())
            bins.append(Bin(float(chance[here].mean()), float(score[here].mean()), interval, count))
    inner = np.clip(chance, 1e-3, 1 - 1e-3)
    entropy = -(score * np.log(inner) + (1 - score) * np.log(1 - inner))
    distance = sum(abs(each.predicted - each.scored) * each.positions for each in bins)
    return ReliabilityCurve(
        bins=tuple(bins),
        brier=float(np.mean((chance - score) ** 2)),
        cross_entropy=float(entropy.mean()),
        calibration_error=distance / len(chance),
    )


def _interval(
    score: np.ndarray, games: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean; positions of one game are drawn together."""
    _, of_game = np.unique(games, return_inverse=True)
    count = np.bincount(of_game)
    total = np.bincount(of_game, weights=score)
    drawn = rng.integers(len(count), size=(_RESAMPLES, len(count)))
    means = total[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
