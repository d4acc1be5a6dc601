"""Means over games with their intervals."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student


class Mean(NamedTuple):
    """A mean over games with its 95 % interval by Student."""

    value: float
    low: float
    high: float

    def text(self, unit: str = "") -> str:
        """As `1.23 (1.10 to 1.36)`, or with unit `%` in per cent."""
        if np.isnan(self.value):
            return ""
        scale = 100 if unit else 1
        value, low, high = (scale * number for number in self)
        return f"{value:.2f}{unit and f' {unit}'} ({low:.2f} to {high:.2f})"

    def share(self) -> str:
        """The mean of shares in per cent; the interval ends at 0 and 100."""
        return self._replace(low=max(self.low, 0.0), high=min(self.high, 1.0)).text("%")


def mean_of(values: np.ndarray) -> Mean:
    """The mean of one value a game, with Student's interval; NaN entries are left out."""
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Mean(float("nan"), float("nan"), float("nan"))
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    middle = float(values.mean())
    return Mean(middle, middle - float(half), middle + float(half))


def by_game(values: np.ndarray, game: np.ndarray, games: int) -> np.ndarray:
    """float[G]: the mean over each game's positions; NaN for a game without any."""
    counts = np.bincount(game, minlength=games)
    sums = np.bincount(game, values.astype(float), minlength=games)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
