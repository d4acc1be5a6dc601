"""Ratings of simulated players of known strength, and of results worked out by hand; of tables by
closed forms and Hunter's algorithm."""

import functools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from tests.support.learner import matches, tiny
from train.arena import elo
from train.arena.figures import Counts, count_games

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
    assert rated.elo[0] == pytest.approx(0, abs=1e-6)
    assert math.sqrt(rated.covariance[0, 0]) == pytest.approx(error, rel=0.02)


def test_games_that_hang_together_say_less_and_draws_more():
    def width(counts) -> float:
        rated = elo.fit("ab", [matches.pairs("a", "b", counts)], anchor="b")
        return rated.high[0] - rated.low[0]

    independent = width((250, 0, 500, 0, 250))
    assert width((500, 0, 0, 0, 500)) == pytest.approx(math.sqrt(2) * independent, rel=0.03)
    assert width((0, 0, 1000, 0, 0)) < 0.2 * independent
    # Half of the games drawn halves the variance.
    assert width((62, 250, 376, 250, 62)) == pytest.approx(independent / math.sqrt(2), rel=0.03)


def test_pairs_of_a_match_are_counted():
    outcome = np.array([1, 1, 0, -1, -1, 1, -1, 0, 0, -1])
    # Pairs: (1, 1), (1, -1), (0, 0), (-1, 0), (-1, -1).
    match = matches.of_two("a", "b", tiny.RULES, outcome)
    assert match.pair_counts == (1, 1, 2, 0, 1)
    assert count_games(match) == matches.pairs("a", "b", (1, 1, 2, 0, 1))


def table(players: str, wins: tuple[float, ...], openings: int = 30) -> Counts:
    """Games whose openings differ as independent games would."""
    chances = np.array(wins) / sum(wins)
    each = np.diag(chances) - np.outer(chances, chances)
    spread = tuple(map(tuple, (sum(wins) * each).tolist()))
    return Counts(tuple(players), wins, openings, spread)


@pytest.mark.parametrize(
    ("names", "results", "word"),
    [
        ("abcd", [matches.pairs("a", "b", (1,) * 5), matches.pairs("c", "d", (1,) * 5)], "and 'c'"),
        ("ab", [matches.pairs("a", "b", (0,) * 5)], "connects"),
        ("abcdef", [table("abc", (1.0, 1.0, 1.0)), table("def", (1.0, 1.0, 1.0))], "'a' and 'd'"),
    ],
)
def test_players_apart_are_refused(names, results, word):
    with pytest.raises(ValueError, match=f"^elo: .*{word}"):
        elo.fit(names, results)


def of_openings(won: np.ndarray) -> Counts:
    """The result of openings in which players a, b, ... won [O, P] games."""
    apart = won - won.mean(axis=0)
    spread = tuple(map(tuple, (apart.T @ apart).tolist()))
    names = tuple("abcd"[: won.shape[1]])
    return Counts(names, tuple(won.sum(axis=0).tolist()), len(won), spread)


def in_batches(won: np.ndarray, openings: int) -> Counts:
    """The same, added batch by batch."""
    starts = range(0, len(won), openings)
    return functools.reduce(
        Counts.plus, [of_openings(won[start : start + openings]) for start in starts]
    )


def test_one_table_has_the_odds_of_its_wins():
    """A virtual draw adds a third of a win to each of three."""
    found = elo.fit("abc", [table("abc", (60.0, 30.0, 10.0))], anchor="c")
    odds = [math.log10((wins + 1 / 3) / (10.0 + 1 / 3)) for wins in (60.0, 30.0, 10.0)]
    np.testing.assert_allclose(found.elo, 400 * np.array(odds), atol=1e-3)
    assert found.games.tolist() == 3 * [100]
    np.testing.assert_allclose(found.score, np.array([60.0, 30.0, 10.0]) / 100)


def test_several_tables_are_rated_as_by_hunters_algorithm():
    """Hunter, "MM Algorithms for Generalized Bradley-Terry Models" (2004): a player's weight is its
    wins over the sum, over its games, of one by the weights at the table."""
    tables = [
        table("abcd", (20.0, 12.0, 6.0, 2.0)),
        table("bcde", (25.0, 10.0, 4.0, 1.0)),
        table("aceb", (22.0, 3.5, 2.5, 12.0)),
    ]
    played = {name: sum(t.games for t in tables if name in t.players) for name in "abcde"}
    weights = dict.fromkeys("abcde", 1.0)
    counted = []
    for each in tables:
        virtual = each.games * sum(1 / played[name] for name in each.players) / 4
        counted.append((each.players, [wins + virtual / 4 for wins in each.wins]))
    for _ in range(5000):
        weights = {
            name: sum(wins[players.index(name)] for players, wins in counted if name in players)
            / sum(
                sum(wins) / sum(weights[other] for other in players)
                for players, wins in counted
                if name in players
            )
            for name in weights
        }
    found = elo.fit("abcde", tables, anchor="e")
    wanted = [400 * math.log10(weights[name] / weights["e"]) for name in "abcde"]
    np.testing.assert_allclose(found.elo, wanted, atol=0.01)
    assert found.low[4] == pytest.approx(found.high[4], abs=1e-6)


@pytest.mark.parametrize("openings", [1, 4, 11])
def test_batches_together_spread_as_all_their_openings(openings):
    won = np.random.default_rng(3).multinomial(6, [0.5, 0.3, 0.2], size=25).astype(float)
    found, wanted = in_batches(won, openings), of_openings(won)
    assert found[:3] == wanted[:3]
    np.testing.assert_allclose(found.spread, wanted.spread, rtol=1e-12)
    nothing = Counts(wanted.players, (0.0,) * 3, 0, ((0.0,) * 3,) * 3)
    assert nothing.plus(wanted) == wanted.plus(nothing) == wanted


@pytest.mark.parametrize("openings", [25, 1])
def test_intervals_of_tables_hold_the_truth_nineteen_times_in_twenty(openings):
    """Whether a table's openings are played at once or one by one."""
    draws, truth = np.random.default_rng(1), np.array([0.5, 0.3, 0.2])
    lead, hits = 400 * math.log10(0.5 / 0.2), 0
    for _ in range(200):
        # Openings of six independent games.
        won = draws.multinomial(6, truth, size=25)
        found = elo.fit("abc", [in_batches(won, openings)], anchor="c")
        hits += bool(found.low[0] <= lead <= found.high[0])
    assert 183 <= hits <= 198
