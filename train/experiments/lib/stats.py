"""Means and win rates with their 95 % intervals, over seeds or over games."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from train.arena.figures import wilson_interval

EARNEST_SEEDS = 6
"""Fewer paired seeds are called screening, and decide nothing."""


def percent(share: float, digits: int = 1) -> str:
    """A share as `53.6 %`."""
    return f"{100 * share:.{digits}f} %"


class Estimate(NamedTuple):
    """A mean with its 95 % interval; NaN where nothing is known."""

    mean: float
    low: float
    high: float
    number: int  # of seeds or games that the interval is over

    @property
    def verdict(self) -> str:
        """The side of one half that the interval lies on, where there are enough seeds to say."""
        if self.number < EARNEST_SEEDS:
            return "screening"
        return "better" if self.low > 0.5 else "worse" if self.high < 0.5 else "undecided"

    def cells(self, digits: int = 1) -> tuple[str, str]:
        """Two cells of a table: `53.6 %`, `52.2 to 55.0`."""
        ends = f"{100 * self.low:.{digits}f} to {100 * self.high:.{digits}f}"
        return percent(self.mean, digits), ends

    def text(self) -> str:
        """As `1.23 (1.10 to 1.36)`; empty where the mean is not known."""
        if math.isnan(self.mean):
            return ""
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"

    def share(self, *, least: float = 0.0) -> str:
        """As `53.60 % (52.20 to 55.00)`; the interval ends at the least share and at 1."""
        percents = (100 * each for each in (self.mean, max(self.low, least), min(self.high, 1.0)))
        return "" if math.isnan(self.mean) else "{:.2f} % ({:.2f} to {:.2f})".format(*percents)

    def points(self) -> str:
        """A difference of shares in points, as `+2.3 (+1.2 to +3.4)`, without unknown ends."""
        ends = f" ({100 * self.low:+.1f} to {100 * self.high:+.1f})"
        return f"{100 * self.mean:+.1f}{'' if math.isnan(self.low) else ends}"


class MatchCounts(NamedTuple):
    """The games of two players, counted for the first."""

    first: str
    second: str
    seed: int
    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def rate(self) -> float:
        """The win rate, draws as half."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def estimate(self) -> Estimate:
        """The win rate with Wilson's interval over games."""
        return rate_over_games(self.rate, self.games)


def rate_over_games(rate: float, games: int) -> Estimate:
    """A win rate with Wilson's interval over games."""
    return Estimate(rate, *wilson_interval(rate, games), games)


def over_seeds(rates: Sequence[float], games: int) -> Estimate:
    """The mean of a win rate for each seed with Student's interval; of one seed, Wilson's over its
    games.

    The interval over seeds holds the chance of training and of the games; the one over games says
    nothing of how far another seed would differ.
    """
    if len(rates) == 1:
        return rate_over_games(float(rates[0]), games)._replace(number=1)
    mean, low, high, number = over_games(np.array(rates))
    return Estimate(mean, max(0.0, low), min(1.0, high), number)


def over_games(values: np.ndarray) -> Estimate:
    """The mean of one value a game with Student's interval; NaN entries are left out."""
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Estimate(math.nan, math.nan, math.nan, len(values))
    error = values.std(ddof=1) / math.sqrt(len(values))
    mean, half = float(values.mean()), float(student.ppf(0.975, len(values) - 1) * error)
    return Estimate(mean, mean - half, mean + half, len(values))


def by_game(values: np.ndarray, game: np.ndarray, games: int) -> np.ndarray:
    """float[G]: the mean over each game's positions; NaN for a game without any."""
    counts = np.bincount(game, minlength=games)
    sums = np.bincount(game, values.astype(float), minlength=games)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def interval_kind(seeds: int) -> str:
    """The kind of the interval of `over_seeds`, for a sentence."""
    return "Student's t over seeds" if seeds > 1 else "Wilson's over the games of one seed"


def interval_head(seeds: int) -> str:
    """The interval of `over_seeds` as the head of a column."""
    return f"95 % {'over seeds' if seeds > 1 else 'over the games of one seed'}"


def rate_of(meetings: Sequence[MatchCounts], name: str, seed: int) -> float:
    """A player's win rate in a seed's meetings, draws as half."""
    own = [each for each in meetings if each.seed == seed and name in each[:2]]
    points = sum((m.wins if name == m.first else m.losses) + m.draws / 2 for m in own)
    return points / sum(meeting.games for meeting in own)


def mean_rate(meetings: Sequence[MatchCounts], name: str) -> Estimate:
    """The mean over seeds of `rate_of`, as `over_seeds`."""
    seeds = sorted({meeting.seed for meeting in meetings})
    games = sum(meeting.games for meeting in meetings if name in meeting[:2])
    return over_seeds([rate_of(meetings, name, seed) for seed in seeds], games // len(seeds))


def difference(meetings: Sequence[MatchCounts], name: str, other: str) -> Estimate:
    """The mean over seeds of one player's mean rate less another's, see `mean_gap`."""
    seeds = sorted({meeting.seed for meeting in meetings})
    gap = mean_gap(*([rate_of(meetings, each, seed) for seed in seeds] for each in (name, other)))
    low, high = np.clip(gap[1:3], -1, 1)
    return gap._replace(low=float(low), high=float(high))


def mean_gap(rates: Sequence[float], others: Sequence[float]) -> Estimate:
    """The mean difference of two rates a seed, with Student's interval; of one seed, which has
    none, ends that are NaN."""
    gaps = np.subtract(rates, others)
    return over_games(gaps)._replace(mean=float(gaps.mean()))
