"""Ratings of simulated players of known strength, and of results worked out by hand."""

import functools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from tests.support.learner import matches, tiny
from train.arena import elo
from train.arena.counts import count_games

POOLS = 40  # with each of these kinds of luck
LUCK = (
    {"draw": 0.3, "correlation": -0.4},  # as of paired openings
    {},
    {"draw": 0.2, "correlation": 0.6},
)


def play(rng, lead: float, pairs: int, *, draw: float = 0.0, correlation: float = 0.0):
    """[5] counts of pairs. The lead gives each game's expected points; `draw` is
    the share of draws between equals; the two games' luck is correlated."""
    luck = rng.normal(size=(pairs, 2))
    luck[:, 1] = correlation * luck[:, 0] + math.sqrt(1 - correlation**2) * luck[:, 1]
    mean = 1 / (1 + 10 ** (-lead / 400))
    drawn = draw * 4 * mean * (1 - mean)
    halves = (luck > ndtri(1 - mean + drawn / 2)).sum(1) + (luck > ndtri(1 - mean - drawn / 2)).sum(
        1
    )
    return tuple(np.bincount(halves, minlength=5).tolist())


@functools.cache
def rated_players() -> np.ndarray:
    """[pools, 4]: true rating, rating found and both ends of its interval, of one player of each
    pool, chosen at random; one of a pool, so that they are independent."""
    rng, found = np.random.default_rng(0), []
    for luck in LUCK * POOLS:
        true = np.sort(rng.normal(0, 200, 5))
        names = [f"p{place}" for place in range(5)]
        results = [
            matches.pairs(names[i], names[j], play(rng, true[i] - true[j], 30, **luck))
            for i in range(5)
            for j in range(i + 1, min(i + 3, 5))
        ]
        rated = elo.fit(names, results, anchor="p0")
        place = rng.integers(1, 5)
        of_place = (each[place] for each in (rated.elo, rated.low, rated.high))
        found.append([true[place] - true[0], *of_place])
    return np.array(found)


@pytest.mark.parametrize(("factor", "is_right"), [(0.75, False), (1.0, True), (1.7, False)])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(factor, is_right):
    """Made shorter or longer by a factor, they do not: 99 of 100 counts with a coverage of 95 %
    would lie within these bounds."""
    true, rated, *ends = rated_players().T
    low, high = (rated + factor * (end - rated) for end in ends)
    inside = int(((low <= true) & (true <= high)).sum())
    least, most = binom.ppf([0.005, 0.995], len(true), 0.95)
    assert (least <= inside <= most) == is_right


def test_two_players_have_the_odds_of_their_score():
    # One virtual draw beside 100 games: (75 + 0.5) of 101 points.
    rated = elo.fit(
        ["a", "b"],
        [matches.pairs("a", "b", (0, 0, 25, 0, 0)), matches.pairs("b", "a", (25, 0, 0, 0, 0))],
    )
    expected = 400 * math.log10(75.5 / 25.5)
    assert rated.elo == pytest.approx([expected / 2, -expected / 2], abs=0.01)
    assert rated.games.tolist() == [100, 100]
    assert rated.score == pytest.approx([0.75, 0.25])


def test_order_and_side_of_results_make_no_difference():
    results = [matches.pairs("a", "b", (1, 2, 3, 4, 5)), matches.pairs("c", "b", (9, 0, 1, 0, 2))]
    turned = [matches.pairs("b", "c", (2, 0, 1, 0, 9)), matches.pairs("b", "a", (5, 4, 3, 2, 1))]
    one, other = (elo.fit("abc", each, anchor="b") for each in (results, turned))
    for field in ("elo", "low", "high", "covariance"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-9)


def test_maximum_is_one():
    """The gradient of the penalised likelihood vanishes: points are those expected, where half of a
    virtual draw comes from each side of a pairing, by games."""
    rng = np.random.default_rng(3)
    names = "abcd"
    pairs = {(i, j): play(rng, 80 * (i - j), 20 + 7 * j) for i in range(4) for j in range(i + 1, 4)}
    rated = elo.fit(names, [matches.pairs(names[i], names[j], c) for (i, j), c in pairs.items()])
    games = {key: 2 * sum(c) for key, c in pairs.items()}
    total = [sum(n for key, n in games.items() if place in key) for place in range(4)]
    excess = np.zeros(4)
    for (i, j), counts in pairs.items():
        virtual = games[i, j] * (1 / total[i] + 1 / total[j]) / 2
        scored = sum(half * n for half, n in enumerate(counts)) / 2 + virtual / 2
        mean = 1 / (1 + 10 ** ((rated.elo[j] - rated.elo[i]) / 400))
        gap = scored - (games[i, j] + virtual) * mean
        excess += gap * ((np.arange(4) == i) * 1.0 - (np.arange(4) == j))
    assert excess == pytest.approx(np.zeros(4), abs=1e-5)
    assert rated.elo.sum() == pytest.approx(0, abs=1e-6)


def test_one_sided_result_is_finite():
    rated = elo.fit("ab", [matches.pairs("a", "b", (0, 0, 0, 0, 200))], anchor="b")
    lead = 400 * math.log10(400.5 / 0.5)
    assert rated.elo == pytest.approx([lead, 0], abs=0.01)
    assert 0 < rated.low[0] < lead < rated.high[0] < math.inf
    # The far end is the less known one.
    assert rated.high[0] - lead > 1.5 * (lead - rated.low[0])
    assert rated.low[1] == rated.high[1] == 0


def test_many_games_agree_with_the_textbook_interval():
    """Independent decisive games, half won: 1.96 standard errors of a binomial rate."""
    counts = (2500, 0, 5000, 0, 2500)
    rated = elo.fit("ab", [matches.pairs("a", "b", counts)], anchor="b")
    error = 400 / math.log(10) / math.sqrt(20000 * 0.25)
    assert rated.high[0] == pytest.approx(1.96 * error, rel=0.02)
    assert rated.lead("a", "b") == pytest.approx((0, error), rel=0.02, abs=1e-6)


def test_games_that_hang_together_say_less_and_draws_more():
    def width(counts) -> float:
        rated = elo.fit("ab", [matches.pairs("a", "b", counts)], anchor="b")
        return rated.high[0] - rated.low[0]

    independent = width((250, 0, 500, 0, 250))
    assert width((500, 0, 0, 0, 500)) == pytest.approx(math.sqrt(2) * independent, rel=0.03)
    assert width((0, 0, 1000, 0, 0)) < 0.2 * independent
    # Half of the games drawn halves the variance.
    assert width((62, 250, 376, 250, 62)) == pytest.approx(independent / math.sqrt(2), rel=0.03)


def test_likelihood_of_superiority():
    rated = elo.fit(
        "abc",
        [matches.pairs("a", "b", (20, 0, 50, 0, 30)), matches.pairs("b", "c", (9, 0, 9, 0, 9))],
    )
    lead, error = rated.lead("a", "b")
    by_hand = 0.5 * (1 + math.erf(lead / error / math.sqrt(2)))
    assert rated.superiority("a", "b") == pytest.approx(by_hand)
    assert rated.superiority("a", "b") + rated.superiority("b", "a") == pytest.approx(1)
    assert 0.9 < rated.superiority("a", "b") < 1
    assert rated.superiority("b", "c") == pytest.approx(0.5, abs=0.01)


def test_pairs_of_a_match_are_counted():
    outcome = np.array([1, 1, 0, -1, -1, 1, -1, 0, 0, -1])
    # Pairs: (1, 1), (1, -1), (0, 0), (-1, 0), (-1, -1).
    match = matches.of_two("a", "b", tiny.RULES, outcome)
    assert match.pair_counts == (1, 1, 2, 0, 1)
    assert count_games(match) == matches.pairs("a", "b", (1, 1, 2, 0, 1))


@pytest.mark.parametrize(
    ("names", "results", "word"),
    [
        ("abc", [matches.pairs("a", "b", (1, 0, 0, 0, 1))], "'a' and 'c'"),
        ("abcd", [matches.pairs("a", "b", (1,) * 5), matches.pairs("c", "d", (1,) * 5)], "and 'c'"),
        ("ab", [matches.pairs("a", "b", (0,) * 5)], "connects"),
    ],
)
def test_players_apart_are_refused(names, results, word):
    with pytest.raises(ValueError, match=f"^elo: .*{word}"):
        elo.fit(names, results)
