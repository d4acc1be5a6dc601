"""Ratings from results: Bradley-Terry and Plackett-Luce by maximum likelihood, with intervals.

N players, M meetings of P players. The sole winner of a game is the seat whose player i is drawn
with chance w_i / sum of w over the seats, w = 10^(Elo / 400) (Luce, "Individual Choice Behavior",
1959; Plackett, "The Analysis of Permutations", 1975). All other seats are paid the same, so they
stand level behind it: the likelihood of an order that is known up to the order of its last ones is
that of its first stage. A draw counts as 1 / P of a win for each. With two seats this is the model
of Bradley & Terry ("Rank Analysis of Incomplete Block Designs I", 1952; Elo, "The Rating of
Chessplayers", 1978).

Games of one opening hang together, openings do not. Three choices are made:

- Prior: each player draws about one virtual game, shared among its meetings by games played
  (Coulom, "Bayesian Elo Rating", 2005, draws two), so that 400 : 0 gives a finite rating.
- Spread: draws and shared openings make scores vary less or more than independent decisive games
  would. Of two players the factor is estimated for each pairing from the residuals of pairs of
  games, pulled towards the pool's factor (the less so the more one-sided the pairing), and that one
  towards 1; of more it is one for all, from the spread among openings, pulled towards 1.
- Intervals: of two players by profile likelihood, for one-sided results are skewed, its drop scaled
  by the player's factor from the sandwich variance (White, "Maximum Likelihood Estimation of
  Misspecified Models", 1982; Pace, Salvan & Sartori, "Adjusting Composite Likelihood Ratio
  Statistics", 2011); of more by the sandwich variance and the normal approximation.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import brentq, minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp, softmax

from train.arena.figures import Z_95, Counts

ELO = 400 / math.log(10)
"""Elo points in a unit of log odds."""
PRIOR_GAMES = 1.0
_PRIOR_OPENINGS = 8.0
"""Openings of even players whose spread is taken to be that of independent games."""
_EVEN_PAIR_VARIANCE = 0.5
_MAX_LOG_ODDS = 40.0
_TOLERANCE = 1e-6  # norm of the gradient, in games


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Ratings of a pool, in the order of its names."""

    names: tuple[str, ...]  # N players
    elo: np.ndarray  # float[N]
    low: np.ndarray  # float[N], lower end of the 95 % interval
    high: np.ndarray  # float[N], its upper end; both equal `elo` for the anchor
    covariance: np.ndarray  # float[N, N] of `elo`, zero for the anchor
    games: np.ndarray  # int[N]
    score: np.ndarray  # float[N], win rate over all games, draws as half
    anchor: str | None  # whose rating is 0; None where the mean is


def expected_score(lead: Any) -> Any:
    """Expected points a game at a lead of this many Elo points."""
    return 1 / (1 + 10 ** (-np.asarray(lead) / 400))


def choice_information(chances: np.ndarray) -> np.ndarray:
    """[..., P, P]: Fisher information of one game on the log-odds of its players, from the chances
    [..., P] that each wins it."""
    return chances[..., None] * np.eye(chances.shape[-1]) - (
        chances[..., :, None] * chances[..., None, :]
    )


def fit(
    names: Sequence[str],
    results: Sequence[Counts],
    *,
    anchor: str | None = None,
    has_intervals: bool = True,
) -> Ratings:
    """Rate a pool.

    Args:
      names: the players, each once, at least one.
      results: any number for the same players, in any order of theirs.
      anchor: one of them, whose rating is 0; None for a mean of 0.
      has_intervals: False leaves `low` and `high` NaN, which is quicker for pairs.

    Raises:
      ValueError: no chain of games connects all players.
    """
    place = {name: index for index, name in enumerate(names)}
    counted = _gather(place, results)
    tables = np.array([[place[name] for name in each.players] for each in counted], int)
    _check_connected(names, tables)
    is_anchor = np.array([float(name == anchor) for name in names])
    row = np.full(len(names), 1 / len(names)) if anchor is None else is_anchor
    problem = _Problem(len(names), tables, counted, row)
    theta = problem.solve(np.zeros(len(names)))
    bread = problem.bread(theta)
    covariance = bread @ problem.meat(theta) @ bread
    half = Z_95 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    low, high = theta - half, theta + half
    if not has_intervals:
        low = high = np.full(len(names), math.nan)
    elif tables.shape[1:] == (2,):
        ends = [_interval(problem, theta, bread, covariance, i) for i in range(len(names))]
        low, high = np.array(ends).T
    played, won = problem.played, problem.won
    return Ratings(
        names=tuple(names),
        elo=theta * ELO,
        low=low * ELO,
        high=high * ELO,
        covariance=covariance * ELO**2,
        games=played.round().astype(int),
        score=np.divide(won, played, out=np.full(len(names), 1 / 2), where=played > 0),
        anchor=anchor,
    )


def _gather(place: dict[str, int], results: Sequence[Counts]) -> list[Counts]:
    """Meetings with games, each once, in the order of the players."""
    merged: dict[tuple[str, ...], Counts] = {}
    for players, wins, openings, spread in results:
        order = sorted(range(len(players)), key=lambda seat: place[players[seat]])
        names = tuple(players[seat] for seat in order)
        rows = tuple(tuple(spread[i][j] for j in order) for i in order)
        counts = Counts(names, tuple(wins[seat] for seat in order), openings, rows)
        merged[names] = merged[names].plus(counts) if names in merged else counts
    with_games = [result for result in merged.values() if result.games]
    return sorted(with_games, key=lambda result: [place[name] for name in result.players])


def _check_connected(names: Sequence[str], tables: np.ndarray) -> None:
    have_met = np.eye(len(names), dtype=bool)
    for table in tables:
        have_met[np.ix_(table, table)] = True
    _, group = connected_components(have_met)
    for outside in np.flatnonzero(group != group[0])[:1]:
        raise ValueError(
            f"elo: no chain of games connects {names[0]!r} and {names[outside]!r}: their ratings "
            "cannot be compared"
        )


class _Problem:
    """The penalised log-likelihood of log-odds ratings `theta`, float[N], under `row @ theta = 0`.

    Args:
      players: N.
      tables: int[M, P], who meets.
      results: M, what was counted.
      row: float[N].
    """

    def __init__(
        self, players: int, tables: np.ndarray, results: Sequence[Counts], row: np.ndarray
    ) -> None:
        self._tables, self._results, self._row = tables, results, row
        wins = np.array([result.wins for result in results]).reshape(tables.shape)  # [M, P]
        self._games = wins.sum(axis=1)
        self.played, self.won = np.zeros(players), np.zeros(players)
        np.add.at(self.played, tables, self._games[:, None])
        np.add.at(self.won, tables, wins)
        if not len(tables):
            self._virtual, self._wins, self._count = self._games, wins, self._games
            return
        share = (1 / np.maximum(self.played[tables], 1)).mean(axis=1)
        self._virtual = PRIOR_GAMES * self._games * share  # [M]
        self._wins = wins + self._virtual[:, None] / tables.shape[1]
        self._count = self._wins.sum(axis=1)

    def loss(self, theta: np.ndarray) -> float:
        """Minus the log-likelihood."""
        ratings = theta[self._tables]
        return float(self._count @ logsumexp(ratings, axis=1) - (self._wins * ratings).sum())

    def solve(self, start: np.ndarray, held: int | None = None) -> np.ndarray:
        """The likeliest ratings under the constraint, which `start` fulfils; the rating of the
        player `held`, if any, stays as it starts."""
        rows = self._row[None]
        if held is not None:
            rows = np.stack([self._row, np.arange(len(start)) == held])
        free = null_space(rows)  # directions that keep the constraint, [N, N - rows]
        if not free.size:
            return start
        optimum = minimize(
            lambda x: self.loss(start + free @ x),
            np.zeros(free.shape[1]),
            jac=lambda x: free.T @ self._gradient(start + free @ x),
            hess=lambda x: free.T @ self._sum(self._count, start + free @ x) @ free,
            method="trust-exact",
            options={"gtol": _TOLERANCE},
        )
        return start + free @ optimum.x

    def _gradient(self, theta: np.ndarray) -> np.ndarray:
        """Gradient of the loss, float[N]."""
        gradient = np.zeros(len(theta))
        np.add.at(gradient, self._tables, self._count[:, None] * self._chances(theta) - self._wins)
        return gradient

    def _chances(self, theta: np.ndarray) -> np.ndarray:
        """float[M, P]: chances of each player to win a game of a meeting."""
        ratings = theta[self._tables]
        lead = ratings - ratings.max(axis=1, keepdims=True, initial=0.0)
        return softmax(np.maximum(lead, -_MAX_LOG_ODDS), axis=1)

    def _sum(self, weights: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """float[N, N]: the information of games [M], a number for each meeting."""
        each = weights[:, None, None] * choice_information(self._chances(theta))
        information = np.zeros((len(theta), len(theta)))
        np.add.at(information, (self._tables[:, :, None], self._tables[:, None, :]), each)
        return information

    def bread(self, theta: np.ndarray) -> np.ndarray:
        """Inverse information under the constraint, [N, N]."""
        row, information = self._row[None], self._sum(self._count, theta)
        bordered = np.block([[information, row.T], [row, np.zeros((1, 1))]])
        return np.linalg.inv(bordered)[: len(theta), : len(theta)]

    def meat(self, theta: np.ndarray) -> np.ndarray:
        """Variance of the gradient as the openings show it, [N, N]."""
        if not self._results:
            return np.zeros((len(theta), len(theta)))
        chances, players = self._chances(theta), self._tables.shape[1]
        openings = np.array([result.openings for result in self._results], float)
        spread = np.array([result.spread for result in self._results])
        if players > 2:
            factor = self._table_spread(chances, openings, spread)
            return self._sum((self._games + self._virtual) * factor, theta)
        factors = self._pair_spread(chances[:, 0], openings, spread[:, 0, 0], len(theta))
        return self._sum(factors * self._games + self._virtual, theta)

    def _pair_spread(
        self, expected: np.ndarray, openings: np.ndarray, spread: np.ndarray, players: int
    ) -> np.ndarray:
        """float[M]: the variance of the scores of pairs over that of independent games."""
        each = expected * (1 - expected)
        model = self._games * each
        mean = np.array([result.wins[0] for result in self._results]) / openings
        freedom = max(1.0, openings.sum() - players + 1) / openings.sum()
        seen = (spread + openings * (mean - 2 * expected) ** 2) / freedom
        prior = _PRIOR_OPENINGS * _EVEN_PAIR_VARIANCE
        pool = (seen.sum() + prior) / (model.sum() + prior)
        # Where one side nearly always wins, colours and openings cannot make the games differ.
        evenness = np.where(pool < 1, 4 * each, 1)
        typical = 1 + (pool - 1) * evenness
        return (seen + prior * typical) / (model + prior)

    def _table_spread(self, chances: np.ndarray, openings: np.ndarray, spread: np.ndarray) -> float:
        """The spread of openings over that of independent games, of all tables."""
        several, own = openings > 1, np.trace(spread, axis1=1, axis2=2)
        seen = (own * openings / np.maximum(openings - 1, 1))[several].sum()
        each = np.trace(choice_information(chances), axis1=1, axis2=2)
        prior = _PRIOR_OPENINGS * (1 - 1 / chances.shape[1])
        return (seen + prior) / ((self._games * each)[several].sum() + prior)


def _interval(
    problem: _Problem, theta: np.ndarray, bread: np.ndarray, covariance: np.ndarray, player: int
) -> tuple[float, float]:
    """Find the ends of a rating's interval, where its profile has dropped by the 95 % bound."""
    centre = float(theta[player])
    if covariance[player, player] < 1e-18:
        return centre, centre
    spread = covariance[player, player] / bread[player, player]
    best = problem.loss(theta)
    along = bread[:, player] / bread[player, player]  # how the others follow, near the centre

    def excess(value: float) -> float:
        held = theta + (value - centre) * along
        drop = problem.loss(problem.solve(held, held=player)) - best
        return math.sqrt(max(0.0, 2 * drop / spread)) - Z_95

    def end(step: float) -> float:
        """Where the excess, which is below 0 at the centre, rises through 0 on one side."""
        inner, outer = centre, centre + step
        while excess(outer) < 0 and abs(outer) < _MAX_LOG_ODDS:
            inner, outer, step = outer, outer + step, 2 * step
        if abs(outer) >= _MAX_LOG_ODDS:
            return outer
        return cast(float, brentq(excess, inner, outer, xtol=1e-4))

    step = Z_95 * math.sqrt(bread[player, player])
    return end(-step), end(step)
