"""Sequential tests: their bounds, their statistic by another way, and how often they err."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from train.arena.sprt import STRONGER, UNDECIDED, WEAKER, decide, in_words
from train.config.sprt import Sprt, parse_sprt

MATCHES, BATCH = 400, 8


def expected(lead: float) -> float:
    return 1 / (1 + 10 ** (-lead / 400))


def simulate(test: Sprt, lead: float, rng) -> tuple[str, int]:
    """The decision on a simulated match of a true lead, and its pairs; a third of the games is
    drawn."""
    mean, drawn = expected(lead), 1 / 3
    game = np.array([1 - mean - drawn / 2, drawn, mean - drawn / 2])
    pair = np.convolve(game, game)
    counts, pairs = np.zeros(5, int), 0
    while pairs < 20_000:
        counts += rng.multinomial(BATCH, pair)
        pairs += BATCH
        verdict = decide(test, counts)
        if verdict.decision != UNDECIDED:
            return verdict.decision, pairs
    raise AssertionError("undecided")


@pytest.mark.parametrize(("lead", "wrong"), [(0, STRONGER), (60, WEAKER)])
def test_errors_are_as_rare_as_promised(lead, wrong):
    rng = np.random.default_rng(lead)
    test = Sprt(0, 60)
    found = [simulate(test, lead, rng) for _ in range(MATCHES)]
    errors = sum(decision == wrong for decision, _ in found)
    # Steps go a little beyond the bounds, so that errors are rarer rather than more frequent.
    assert binom.ppf(0.0005, MATCHES, 0.03) <= errors <= binom.ppf(0.995, MATCHES, 0.05)
    # A test of fixed length needs ((z_alpha + z_beta) / effect)^2 pairs.
    effect = 2 * (expected(60) - 0.5) / math.sqrt(2 * (1 / 4 - 1 / 12))
    fixed = (2 * 1.645 / effect) ** 2
    assert np.mean([pairs for _, pairs in found]) < 0.75 * fixed


def test_bounds_are_walds():
    test = Sprt(0, 20, alpha=0.05, beta=0.1)
    assert test.upper == pytest.approx(math.log(0.9 / 0.05))
    assert test.lower == pytest.approx(math.log(0.1 / 0.95))


# Of SciPy's optimiser before 1.16, which rounds out of the bounds and says so.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("counts", [(10, 20, 40, 25, 15), (3, 0, 30, 0, 50), (40, 1, 9, 1, 12)])
def test_statistic_is_that_of_the_likeliest_distributions(counts):
    """Found here by a general optimiser, over distributions with a given mean."""

    def loglikelihood(mean: float) -> float:
        filled = np.maximum(counts, 1e-3)

        def loss(p):
            return -filled @ np.log(np.maximum(p, 1e-15))

        found = minimize(
            loss,
            np.full(5, 0.2),
            method="SLSQP",
            bounds=[(1e-12, 1)] * 5,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "eq", "fun": lambda p: p @ np.arange(5) / 4 - mean},
            ],
            options={"maxiter": 1000, "ftol": 1e-13},
        )
        assert found.success
        return -found.fun

    by_search = loglikelihood(expected(25)) - loglikelihood(expected(-5))
    assert decide(Sprt(-5, 25), counts).llr == pytest.approx(by_search, abs=1e-3)


def test_decisions():
    test = Sprt(0, 20)
    assert decide(test, (0, 0, 0, 0, 0)) == (0.0, UNDECIDED)
    assert decide(test, (0, 0, 4, 0, 1)).decision == UNDECIDED
    assert decide(test, (50, 0, 100, 0, 250)).decision == STRONGER
    assert decide(test, (250, 0, 100, 0, 50)).decision == WEAKER
    assert decide(test, (0, 0, 0, 0, 200)).decision == STRONGER
    assert decide(test, (200, 0, 0, 0, 0)).decision == WEAKER
    assert "H0 is accepted" in in_words(test, decide(test, (200, 0, 0, 0, 0)))


def test_text_is_read():
    assert parse_sprt("0,20") == Sprt(0, 20)
    assert parse_sprt("-5,5,0.01,0.1") == Sprt(-5, 5, alpha=0.01, beta=0.1)


@pytest.mark.parametrize("text", ["", "5", "a,b", "20,0", "5,5", "0,20,1,0.1", "0,nan", "0,9999"])
def test_bad_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^sprt: "):
        parse_sprt(text)
