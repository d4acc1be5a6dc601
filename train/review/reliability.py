"""Measures whether win chances come true: values against outcomes, before and after the search.

Positions are compared from the side of the player to move. The factors are fitted to half of the
games; every figure is of the other half.

N positions, G games.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from train.checkpoints.calibration import Calibration, to_dict, win_chance
from train.data.record_dataset import RecordedGames
from train.review.analyst import Analyst
from train.review.own_games import states_of
from train.review.positions import SearchedPosition, search_positions
from train.runtime.errors import UsageError
from wallgo_jax.game.state import State

BINS = 10
_RESAMPLES = 1000
_BATCH = 256
NETWORK, SEARCH = "before search", "after search"


class Bin(NamedTuple):
    """Positions of about the same predicted chance."""

    predicted: float  # mean
    scored: float  # mean of 1 for a win, 1/2 for a draw, 0 for a loss
    interval: tuple[float, float]  # 95 %, games drawn anew
    positions: int


class Curve(NamedTuple):
    """A reliability curve and its errors."""

    bins: tuple[Bin, ...]
    brier: float  # mean squared error of the chance
    cross_entropy: float  # nats
    calibration_error: float  # mean distance of bins from the diagonal, by positions


class Reliability(NamedTuple):
    """Values of an analyst against outcomes; `plain` is of (1 + v) / 2, `fitted` calibrated."""

    player: str
    calibration: Calibration
    games: int
    positions: int  # of the measured half
    measured_games: int  # that these are of
    plain: dict[str, Curve]  # by NETWORK and SEARCH
    fitted: dict[str, Curve]


def measure_reliability(
    analyst: Analyst,
    recorded: RecordedGames,
    *,
    positions: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda simulations: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Reliability:
    """Search positions of finished games and compare their values with how the games ended.

    Args:
      analyst: made for two players.
      recorded: at least two games.
      positions: drawn from all of them; all where there are fewer.
      seed: decides which.
      on_progress: as in `search_positions`.
      should_stop: asked now and then; what is searched by then is measured.

    Raises:
      UsageError: there are too few games or positions.
    """
    if len(recorded.records) < 2:
        raise UsageError("calibrate: needs at least 2 finished games")
    examples, states = states_of(recorded)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(states))[:positions]
    found = _search(
        analyst, [states[i] for i in chosen], on_progress=on_progress, should_stop=should_stop
    )
    chosen = chosen[: len(found)]
    games = np.asarray(examples.game)[chosen]
    movers = np.array([each.mover for each in found])
    results = np.array([record.result for record in recorded.records])
    outcome = results[games, movers]
    values = {
        NETWORK: np.array([each.network_value[each.mover] for each in found]),
        SEARCH: np.array([each.value[each.mover] for each in found]),
    }
    is_fitted = games % 2 == 0
    if is_fitted.all() or not is_fitted.any():
        raise UsageError("calibrate: too few positions, each half of the games needs some")
    factors = {
        name: fit_factor(value[is_fitted], outcome[is_fitted]) for name, value in values.items()
    }
    rest = ~is_fitted

    def curves(factor: Callable[[str], float]) -> dict[str, Curve]:
        return {
            name: make_curve(
                win_chance(value[rest], players=2, factor=factor(name)),
                (1 + outcome[rest]) / 2,
                games[rest],
                rng,
            )
            for name, value in values.items()
        }

    return Reliability(
        player=analyst.name,
        calibration=Calibration(factors[NETWORK], factors[SEARCH], analyst.search.simulations),
        games=len(recorded.records),
        positions=int(rest.sum()),
        measured_games=len(np.unique(games[rest])),
        plain=curves(lambda name: 1.0),
        fitted=curves(factors.__getitem__),
    )


def _search(
    analyst: Analyst,
    states: Sequence[State],
    *,
    on_progress: Callable[[int], None],
    should_stop: Callable[[], bool],
) -> list[SearchedPosition]:
    """Search positions batch by batch until all are done, or `should_stop` says True."""
    found: list[SearchedPosition] = []
    while len(found) < len(states) and not should_stop():
        done = len(found)
        found += search_positions(
            analyst,
            states[done : done + _BATCH],
            on_progress=lambda new, done=done: on_progress(done * analyst.search.simulations + new),
        )
    return found


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

    found: Any = minimize_scalar(loss, bounds=(math.log(0.05), math.log(20)), method="bounded")
    return math.exp(float(found.x))


def make_curve(
    chance: np.ndarray, score: np.ndarray, games: np.ndarray, rng: np.random.Generator
) -> Curve:
    """The curve of predicted chances float[N] against scores float[N] of int[N] games."""
    place = np.minimum((chance * BINS).astype(int), BINS - 1)
    bins = []
    for index in range(BINS):
        own = place == index
        if own.any():
            interval = _interval(score[own], games[own], rng)
            bins.append(
                Bin(float(chance[own].mean()), float(score[own].mean()), interval, int(own.sum()))
            )
    inner = np.clip(chance, 1e-3, 1 - 1e-3)
    entropy = -(score * np.log(inner) + (1 - score) * np.log(1 - inner))
    distance = sum(abs(each.predicted - each.scored) * each.positions for each in bins)
    return Curve(
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


def reliability_table(found: Reliability) -> Table:
    """Errors before and after the search, as they are and calibrated."""
    table = Table(
        title=Text(f"Win chances of {found.player}"),
        caption=f"{_told(found)} that the factors were not fitted to",
        caption_justify="left",
    )
    for name in ("", "factor", "Brier score", "cross entropy", "calibration error"):
        table.add_column(name, justify="right" if name else "left")
    factors = {NETWORK: found.calibration.network, SEARCH: found.calibration.search}
    for name, curve in found.plain.items():
        for factor, each in ((1.0, curve), (factors[name], found.fitted[name])):
            table.add_row(
                name,
                f"{factor:.2f}",
                f"{each.brier:.4f}",
                f"{each.cross_entropy:.4f}",
                f"{each.calibration_error:.1%}",
            )
    return table


def _told(found: Reliability) -> str:
    return f"{found.positions:,} positions of {found.measured_games:,} games"


def reliability_record(found: Reliability) -> dict[str, Any]:
    """The measurement as JSON-ready figures; `calibration` is what `review` reads."""
    return {
        "player": found.player,
        "calibration": to_dict(found.calibration),
        "games": found.games,
        "positions": found.positions,
        "curves": {
            name: {"plain": _curve_record(curve), "calibrated": _curve_record(found.fitted[name])}
            for name, curve in found.plain.items()
        },
    }


def _curve_record(curve: Curve) -> dict[str, Any]:
    return {**curve._asdict(), "bins": [each._asdict() for each in curve.bins]}


def draw_reliability(found: Reliability, path: Path) -> None:
    """Draw the curves before and after the search, calibrated ones dashed.

    Raises:
      UsageError: the file cannot be written, or its ending names no format.
    """
    from train.metrics.plot_style import (
        COLOURS,
        DASHED,
        GREY,
        INK,
        MARKS,
        new_figure,
        save_figure,
        set_style,
    )

    figure = new_figure(size=(9, 4.8), dpi=144)
    for place, name in enumerate((NETWORK, SEARCH)):
        axes = figure.add_subplot(1, 2, place + 1)
        set_style(axes)
        axes.set_title(name, loc="left", fontsize=12, color=INK)
        axes.plot((0, 1), (0, 1), color=GREY, linewidth=0.8)
        for kind, curve in enumerate((found.plain[name], found.fitted[name])):
            x = [each.predicted for each in curve.bins]
            y = [each.scored for each in curve.bins]
            spread = [
                (each.scored - each.interval[0], each.interval[1] - each.scored)
                for each in curve.bins
            ]
            axes.errorbar(
                x,
                y,
                yerr=np.maximum(np.array(spread).T, 0),
                color=COLOURS[kind],
                marker=MARKS[kind],
                markersize=5,
                linewidth=1.4,
                linestyle=DASHED if kind else "-",
                elinewidth=0.8,
                label="calibrated" if kind else "(1 + value) / 2",
            )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("predicted win chance", color=INK)
        axes.legend(frameon=False, loc="upper left")
    figure.axes[0].set_ylabel("score", color=INK)
    caption = f"{found.player} · {_told(found)} · bars: 95 %, games drawn anew"
    save_figure(figure, path, caption=caption)
