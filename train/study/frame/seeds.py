"""Statistics with seeds as the unit of replication."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from train.arena.result import wilson_interval

EARNEST_SEEDS = 6
"""Fewer paired seeds are called screening, and decide nothing."""
KEPT, REJECTED, OPEN, SCREENING = "better", "worse", "undecided", "screening"


class Estimate(NamedTuple):
    """A mean win rate with its 95 % interval."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        """On which side of one half the interval lies, where there are enough seeds to say."""
        if self.seeds < EARNEST_SEEDS:
            return SCREENING
        return KEPT if self.low > 0.5 else REJECTED if self.high < 0.5 else OPEN


def count_of(seeds: int) -> str:
    """A number of seeds in words."""
    return f"{seeds} seed{'' if seeds == 1 else 's'}"


def interval_kind(seeds: int) -> str:
    """What the interval of `estimate` is, for a sentence."""
    return "Student's t over seeds" if seeds > 1 else "Wilson's over the games of one seed"


def interval_unit(seeds: int) -> str:
    """What the interval of `estimate` is over, for heads of tables and labels of pictures."""
    return "over seeds" if seeds > 1 else "over the games of one seed"


def estimate(rates: Sequence[float], games: int) -> Estimate:
    """The mean over seeds with Student's interval; of one seed, Wilson's over its games.

    The interval over seeds holds the chance of training and of the games; the one over games tells
    nothing of how far another seed would differ.

    Args:
      rates: one win rate a seed, at least one.
      games: of each.
    """
    mean, count = float(np.mean(rates)), len(rates)
    if count == 1:
        return Estimate(mean, *wilson_interval(mean, games), count)
    error = float(np.std(rates, ddof=1)) / math.sqrt(count)
    half = float(student.ppf(0.975, count - 1)) * error
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), count)
