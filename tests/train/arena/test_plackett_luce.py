"""Ratings of tables against closed forms, Hunter's algorithm and the fit for two players."""

import functools
import math

import numpy as np
import pytest

from train.arena.counts import Counts
from train.arena.elo import fit


def table(players: str, wins: tuple[float, ...], openings: int = 30) -> Counts:
    """Games whose openings differ as independent games would."""
    chances = np.array(wins) / sum(wins)
    each = np.diag(chances) - np.outer(chances, chances)
    spread = tuple(map(tuple, (sum(wins) * each).tolist()))
    return Counts(tuple(players), wins, openings, spread)


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
    found = fit("abc", [table("abc", (60.0, 30.0, 10.0))], anchor="c")
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
    found = fit("abcde", tables, anchor="e")
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
def test_intervals_hold_the_truth_nineteen_times_in_twenty(openings):
    """Whether a table's openings are played at once or one by one."""
    draws, truth = np.random.default_rng(1), np.array([0.5, 0.3, 0.2])
    lead, hits = 400 * math.log10(0.5 / 0.2), 0
    for _ in range(200):
        # Openings of six independent games.
        won = draws.multinomial(6, truth, size=25)
        found = fit("abc", [in_batches(won, openings)], anchor="c")
        hits += bool(found.low[0] <= lead <= found.high[0])
    assert 183 <= hits <= 198


def test_players_apart_are_refused():
    with pytest.raises(ValueError, match="no chain of games connects 'a' and 'd'"):
        fit("abcdef", [table("abc", (1.0, 1.0, 1.0)), table("def", (1.0, 1.0, 1.0))])
