"""Sequential testing: when a match has shown enough, by the scores of its pairs of games.

The generalised sequential probability ratio test over the five scores that a pair of games can
have (Van den Bergh, "A Practical Introduction to the GSPRT", 2019; the statistic of Fishtest,
`stats/LLRcalc.py`). The score distribution of a pair is unknown, so each hypothesis is given the
likeliest one, by the counts, among those with the hypothesis's mean; Wald's bounds ("Sequential
Tests of Statistical Hypotheses", 1945) then decide.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.optimize import brentq

from train.arena.elo import expected_score
from train.config.sprt import Sprt

WEAKER, STRONGER, UNDECIDED = "H0", "H1", "undecided"
_SCORES = np.array([0, 0.25, 0.5, 0.75, 1])
"""Mean score of a game of the pairs that are counted."""
_LITTLE = 1e-3  # in place of a count of 0, so that no score is held impossible


class Verdict(NamedTuple):
    """The state of a test."""

    llr: float
    """Logarithm of the likelihood of H1 over that of H0."""
    decision: str
    """`WEAKER` (H0 is accepted), `STRONGER` (H1 is) or `UNDECIDED`."""


def decide(test: Sprt, pairs: Sequence[int]) -> Verdict:
    """Decide a test by all pairs so far; may be called after every batch.

    Args:
      test: the hypotheses.
      pairs: [5] counts of pairs by score, as `MatchFigures.pair_counts` gives them.
    """
    counts, llr = np.asarray(pairs, float), 0.0
    if counts.any():
        counts = np.maximum(counts, _LITTLE)
        one, other = (_likeliest(counts, expected_score(lead)) for lead in (test.elo1, test.elo0))
        llr = float(counts @ np.log(one / other))
    if llr >= test.upper:
        return Verdict(llr, STRONGER)
    return Verdict(llr, WEAKER if llr <= test.lower else UNDECIDED)


def in_words(test: Sprt, verdict: Verdict) -> str:
    """A sentence on a test that has ended, decided or not."""
    bounds = f"{test.lower:.2f} and {test.upper:.2f}"
    figures = f"SPRT: log-likelihood ratio {verdict.llr:.2f}, bounds {bounds}: "
    if verdict.decision == UNDECIDED:
        return f"{figures}undecided, the games ended before it reached a bound"
    accepted, other = test.elo1, test.elo0
    if verdict.decision == WEAKER:
        accepted, other = other, accepted
    return (
        f"{figures}{verdict.decision} is accepted, the first player's lead is {accepted:g} Elo "
        f"points rather than {other:g}"
    )


def verdict_record(test: Sprt, verdict: Verdict) -> dict[str, Any]:
    """A test and its state as JSON-ready figures."""
    return {
        **dataclasses.asdict(test),
        "llr": verdict.llr,
        "bounds": [test.lower, test.upper],
        "decision": verdict.decision,
    }


def _likeliest(counts: np.ndarray, mean: float) -> np.ndarray:
    """The distribution over scores, [5], that makes the counts likeliest among those with this mean
    score a game.

    By Lagrange: `share / (1 + multiplier · (score − mean))`, the multiplier giving the mean.
    """
    share = counts / counts.sum()
    gap = _SCORES - mean

    def mean_gap(multiplier: float) -> float:
        return float((share * gap / (1 + multiplier * gap)).sum())

    # Beyond these ends a probability would be negative.
    low, high = -1 / gap.max(), -1 / gap.min()
    margin = 1e-12 * (high - low)
    multiplier = cast(float, brentq(mean_gap, low + margin, high - margin, xtol=1e-14))
    return share / (1 + multiplier * gap)
