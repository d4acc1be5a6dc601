"""Sequential testing: when a match has shown enough, on the scores of its pairs of games.

The generalised sequential probability ratio test over the five scores that a pair of games can
have (Van den Bergh, "A Practical Introduction to the GSPRT", 2019; the statistic of Fishtest,
`stats/LLRcalc.py`). A pair's score distribution is unknown, so each hypothesis is given the one
that suits the counts best among those with the hypothesis's mean; Wald's bounds ("Sequential Tests
of Statistical Hypotheses", 1945) then decide.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from train.arena.elo import PAIR_SCORES, expected_score

WEAKER, STRONGER, UNDECIDED = "H0", "H1", "undecided"
_LITTLE = 1e-3  # in place of a count of 0, so that no score is held impossible
_MAX_ELO = 2000.0


class Verdict(NamedTuple):
    """Where a test stands."""

    llr: float
    """Logarithm of the likelihood of H1 over that of H0."""
    decision: str
    """`WEAKER` (H0 is accepted), `STRONGER` (H1 is) or `UNDECIDED`."""


@dataclasses.dataclass(frozen=True)
class Sprt:
    """A test whether the first player is `elo1` points stronger (H1) or `elo0` (H0).

    Attributes:
      elo0: lead under H0.
      elo1: lead under H1, the larger one.
      alpha: how often H1 may be accepted where H0 holds.
      beta: how often H0 may be accepted where H1 holds.

    Raises:
      ValueError: in one line, which number is wrong and what is allowed.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -_MAX_ELO <= self.elo0 < self.elo1 <= _MAX_ELO:
            raise ValueError(
                f"sprt: elo0 ({self.elo0:g}) must be below elo1 ({self.elo1:g}), both within "
                f"±{_MAX_ELO:g}"
            )
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(f"sprt: {name} ({getattr(self, name):g}) must be in 0 to 0.5")

    @property
    def lower(self) -> float:
        """At or below it H0 is accepted."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """At or above it H1 is accepted."""
        return math.log((1 - self.beta) / self.alpha)

    def llr(self, pairs: Sequence[int]) -> float:
        """Log-likelihood ratio of the counts that `train.arena.elo.pair_counts` gives, [5]."""
        counts = np.asarray(pairs, float)
        if counts.shape != PAIR_SCORES.shape or counts.min() < 0:
            raise ValueError(f"sprt: counts of pairs {list(pairs)}: five are wanted, none below 0")
        if not counts.any():
            return 0.0
        counts = np.maximum(counts, _LITTLE)
        likely = [
            _likeliest(counts, float(expected_score(lead))) for lead in (self.elo1, self.elo0)
        ]
        return float(counts @ np.log(likely[0] / likely[1]))

    def decide(self, pairs: Sequence[int]) -> Verdict:
        """Where the test stands after all pairs so far; to be asked batch after batch."""
        llr = self.llr(pairs)
        if llr >= self.upper:
            return Verdict(llr, STRONGER)
        return Verdict(llr, WEAKER if llr <= self.lower else UNDECIDED)


def parse_sprt(text: str) -> Sprt:
    """A test from `ELO0,ELO1` or `ELO0,ELO1,ALPHA,BETA`.

    Raises:
      ValueError: in one line, what is wrong.
    """
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 4) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"sprt: {text!r} is not ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA, such as 0,20")
    return Sprt(*numbers)


def _likeliest(counts: np.ndarray, mean: float) -> np.ndarray:
    """The distribution over scores, [5], that suits the counts best among those with this mean
    score a game.

    By Lagrange: `share / (1 + multiplier · (score − mean))`, the multiplier giving the mean.
    """
    share = counts / counts.sum()
    gap = PAIR_SCORES / 2 - mean

    def mean_gap(multiplier: float) -> float:
        return float((share * gap / (1 + multiplier * gap)).sum())

    # Beyond these ends a probability would be negative.
    low, high = -1 / gap.max(), -1 / gap.min()
    margin = 1e-12 * (high - low)
    multiplier = brentq(mean_gap, low + margin, high - margin, xtol=1e-14)
    return share / (1 + multiplier * gap)  # pyright: ignore[reportOperatorIssue]
