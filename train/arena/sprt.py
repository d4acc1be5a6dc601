"""Sequential testing: when a match has shown enough, by the scores of its pairs of games.

The generalised sequential probability ratio test over the five scores that a pair of games can
have (Van den Bergh, "A Practical Introduction to the GSPRT", 2019; the statistic of Fishtest,
`stats/LLRcalc.py`). The score distribution of a pair is unknown, so each hypothesis is given the
likeliest one, by the counts, among those with the hypothesis's mean; Wald's bounds ("Sequential
Tests of Statistical Hypotheses", 1945) then decide.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from scipy.optimize import brentq

from train.arena.elo import PAIR_SCORES, expected_score, pair_counts
from train.arena.match import MatchOptions, play_rounds
from train.arena.result import MatchResult
from train.config.sprt import Sprt
from train.players.basic import Player
from wallgo_jax.game.rules import Rules

WEAKER, STRONGER, UNDECIDED = "H0", "H1", "undecided"
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
      pairs: [5] counts of pairs by score, as `train.arena.elo.pair_counts` gives them.
    """
    llr = log_likelihood_ratio(test, pairs)
    if llr >= test.upper:
        return Verdict(llr, STRONGER)
    return Verdict(llr, WEAKER if llr <= test.lower else UNDECIDED)


def verdict_of(test: Sprt, result: MatchResult) -> Verdict:
    """The state of a test after the games so far."""
    return decide(test, pair_counts(result.paired_outcome))


def play_until_decided(
    first: Player,
    second: Player,
    rules: Rules,
    options: MatchOptions,
    test: Sprt | None,
    *,
    key: jax.Array,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> MatchResult:
    """Play a match that ends after the batch with which a test is decided.

    Args:
      test: None plays all games.

    The rest is as in `train.arena.match.play_match`.
    """
    size = options.batch if test else options.games
    return play_rounds(
        first,
        second,
        rules,
        dataclasses.replace(options, round_games=size),
        key=key,
        is_decided=lambda found: test is not None and verdict_of(test, found).decision != UNDECIDED,
        on_progress=on_progress,
    )


def in_words(test: Sprt, verdict: Verdict) -> str:
    """A sentence on a test that has ended, decided or not."""
    figures = (
        f"SPRT: log-likelihood ratio {verdict.llr:.2f}, bounds {test.lower:.2f} and "
        f"{test.upper:.2f}: "
    )
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


def log_likelihood_ratio(test: Sprt, pairs: Sequence[int]) -> float:
    """Log-likelihood ratio of H1 over H0 of the counts that `decide` takes."""
    counts = np.asarray(pairs, float)
    if counts.shape != PAIR_SCORES.shape or counts.min() < 0:
        raise ValueError(f"sprt: counts of pairs {list(pairs)}: five are wanted, none below 0")
    if not counts.any():
        return 0.0
    counts = np.maximum(counts, _LITTLE)
    likely = [_likeliest(counts, float(expected_score(lead))) for lead in (test.elo1, test.elo0)]
    return float(counts @ np.log(likely[0] / likely[1]))


def _likeliest(counts: np.ndarray, mean: float) -> np.ndarray:
    """The distribution over scores, [5], that makes the counts likeliest among those with this mean
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
    multiplier = cast(float, brentq(mean_gap, low + margin, high - margin, xtol=1e-14))
    return share / (1 + multiplier * gap)
