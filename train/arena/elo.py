"""Ratings from results: Bradley-Terry by maximum likelihood, with intervals.

N players, M pairings. A player with rating `a` scores `1 / (1 + 10^((b - a) / 400))` a game against
one with rating `b` (Bradley & Terry, "Rank Analysis of Incomplete Block Designs I", 1952; Elo, "The
Rating of Chessplayers", 1978); a draw is half a win.

Games come in pairs, one with each colour from one opening, and what is counted is the score of a
pair: games of one pair hang together, pairs do not. Three choices are made:

- Prior: each player draws about one virtual game, shared among its opponents by games played
  (Coulom, "Bayesian Elo Rating", 2005, draws two), so that 400 : 0 gives a finite rating.
- Spread: draws and paired openings make scores vary less or more than independent decisive games
  would. The factor is estimated for each pairing from the pairs' residuals, pulled towards the
  pool's factor (the less so the more one-sided the pairing), and that one towards 1.
- Intervals: profile likelihood, for one-sided results are skewed, its drop scaled by the player's
  factor from the sandwich variance (White, "Maximum Likelihood Estimation of Misspecified Models",
  1982; Pace, Salvan & Sartori, "Adjusting Composite Likelihood Ratio Statistics", 2011).
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import brentq, minimize
from scipy.special import ndtr

from train.arena.result import Z_95

ELO = 400 / math.log(10)
"""Elo points in a unit of log odds."""
PAIR_SCORES = np.array([0, 0.5, 1, 1.5, 2])
"""Points of the first player in a pair of games: the classes that pairs are counted in."""
PRIOR_GAMES = 1.0
_PRIOR_PAIRS = 8.0  # pairs of even players whose spread is taken to be 1
_EVEN_PAIR_VARIANCE = 0.5
_MAX_LOG_ODDS = 40.0
_TOLERANCE = 1e-6  # norm of the gradient, in games


class Result(NamedTuple):
    """The games of two players, as pairs by score."""

    first: str
    second: str
    pairs: tuple[int, ...]
    """[5]: pairs of games in which the first player scored each of `PAIR_SCORES`."""


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Ratings of a pool, in the order of its names.

    Attributes:
      names: N players.
      elo: float[N].
      low: float[N], lower end of the 95 % interval.
      high: float[N], its upper end; both equal `elo` for the anchor.
      covariance: float[N, N] of `elo`, zero for the anchor.
      games: int[N].
      score: float[N], win rate over all games, draws as half.
      anchor: whose rating is 0; None where the mean is.
    """

    names: tuple[str, ...]
    elo: np.ndarray
    low: np.ndarray
    high: np.ndarray
    covariance: np.ndarray
    games: np.ndarray
    score: np.ndarray
    anchor: str | None

    def lead(self, first: str, second: str) -> tuple[float, float]:
        """The first player's lead in Elo points, and its standard error."""
        i, j = self.names.index(first), self.names.index(second)
        cov = self.covariance
        variance = cov[i, i] + cov[j, j] - 2 * cov[i, j]
        return float(self.elo[i] - self.elo[j]), math.sqrt(max(variance, 0.0))

    def superiority(self, first: str, second: str) -> float:
        """Likelihood that the first player is the stronger one (normal approximation)."""
        lead, error = self.lead(first, second)
        return float(ndtr(lead / error)) if error else 0.5


def pair_counts(outcome: np.ndarray) -> tuple[int, ...]:
    """[5] pairs by score, of a match's games.

    Args:
      outcome: int[N]: 1 won, 0 drawn, -1 lost by the first player; games i and i + N / 2 are a
        pair, as in `train.arena.result.MatchResult`.
    """
    one, other = np.split(np.asarray(outcome) + 1, 2)
    return tuple(int(n) for n in np.bincount(one + other, minlength=len(PAIR_SCORES)))


def expected_score(lead: Any) -> Any:
    """Expected points a game at a lead of this many Elo points."""
    return 1 / (1 + 10 ** (-np.asarray(lead) / 400))


def fit(
    names: Sequence[str],
    results: Iterable[Result],
    *,
    anchor: str | None = None,
    has_intervals: bool = True,
) -> Ratings:
    """Rate a pool.

    Args:
      names: the players, each once.
      results: any number for two players, in either order.
      anchor: the player whose rating is 0; None for a mean of 0.
      has_intervals: False leaves `low` and `high` NaN, which is quicker.

    Raises:
      ValueError: an unknown name, a bad count, or players that no chain of games connects.
    """
    games = _gather(names, results)
    _check_connected(names, games)
    if anchor is not None and anchor not in names:
        raise ValueError(f"elo: anchor {anchor!r} is not among the players")
    problem = _Problem(games, _anchor_row(names, anchor))
    theta = problem.solve(np.zeros(len(names)))
    bread = problem.bread(theta)
    covariance = bread @ problem.meat(theta) @ bread
    ends = [
        _interval(problem, theta, bread, covariance, i) if has_intervals else (math.nan, math.nan)
        for i in range(len(names))
    ]
    played, scored = games.totals()
    return Ratings(
        names=tuple(names),
        elo=theta * ELO,
        low=np.array([low for low, _ in ends]) * ELO,
        high=np.array([high for _, high in ends]) * ELO,
        covariance=covariance * ELO**2,
        games=played.astype(int),
        score=np.divide(scored, played, out=np.full(len(names), 0.5), where=played > 0),
        anchor=anchor,
    )


class _Games(NamedTuple):
    """Pairings with games, each once."""

    contrast: np.ndarray  # float[M, N]: +1 for the first player, -1 for the second
    pairs: np.ndarray  # float[M, 5]

    @property
    def played(self) -> np.ndarray:
        """Games, [M]."""
        return 2 * self.pairs.sum(axis=1)

    @property
    def score(self) -> np.ndarray:
        """Points of the first player, [M]."""
        return self.pairs @ PAIR_SCORES

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Games and points of each player, [N]."""
        first, second = self.contrast > 0, self.contrast < 0
        played = self.played @ (first | second)
        return played, self.score @ first + (self.played - self.score) @ second


def _gather(names: Sequence[str], results: Iterable[Result]) -> _Games:
    place = {name: index for index, name in enumerate(names)}
    if len(place) < len(names):
        raise ValueError("elo: a player is named twice")
    found: dict[tuple[int, int], np.ndarray] = {}
    for first, second, pairs in results:
        for name in (first, second):
            if name not in place:
                raise ValueError(f"elo: result of {name!r}, who is not among the players")
        if first == second or len(pairs) != len(PAIR_SCORES) or min(pairs) < 0:
            raise ValueError(f"elo: {first!r} against {second!r}: bad counts {list(pairs)}")
        i, j = place[first], place[second]
        counts = np.array(pairs if i < j else pairs[::-1], float)
        key = (min(i, j), max(i, j))
        found[key] = found.get(key, 0) + counts
    keys = sorted(key for key, counts in found.items() if counts.any())
    contrast = np.zeros((len(keys), len(names)))
    for row, (i, j) in zip(contrast, keys, strict=True):
        row[i], row[j] = 1, -1
    return _Games(contrast, np.array([found[key] for key in keys]).reshape(-1, len(PAIR_SCORES)))


def _check_connected(names: Sequence[str], games: _Games) -> None:
    if not names:
        raise ValueError("elo: no players")
    reached = np.arange(len(names)) == 0
    for _ in names:
        touched = (np.abs(games.contrast) @ reached > 0) @ np.abs(games.contrast) > 0
        reached = reached | touched
    if not reached.all():
        inside = names[0]
        outside = next(name for name, seen in zip(names, reached, strict=True) if not seen)
        raise ValueError(
            f"elo: no chain of games connects {inside!r} and {outside!r}: their ratings cannot be "
            "compared"
        )


def _anchor_row(names: Sequence[str], anchor: str | None) -> np.ndarray:
    if anchor is None:
        return np.full(len(names), 1 / len(names))
    return np.array([float(name == anchor) for name in names])


class _Problem:
    """The penalised log-likelihood of log-odds ratings `theta`, float[N], under `row @ theta = 0`.

    Args:
      games: what was played.
      row: float[N].
    """

    def __init__(self, games: _Games, row: np.ndarray) -> None:
        self._games = games
        self._row = row
        self._contrast = games.contrast
        played = games.played
        totals = np.maximum(games.totals()[0], 1)
        share = np.abs(self._contrast) @ (1 / totals) / 2
        self._virtual = PRIOR_GAMES * played * share  # [M]
        self._count = played + self._virtual
        self._wins = games.score + self._virtual / 2

    def loss(self, theta: np.ndarray) -> float:
        """Minus the log-likelihood."""
        lead = self._contrast @ theta
        losses = self._count - self._wins
        return float(self._wins @ np.logaddexp(0, -lead) + losses @ np.logaddexp(0, lead))

    def solve(self, start: np.ndarray, held: int | None = None) -> np.ndarray:
        """The likeliest ratings under the constraint, which `start` fulfils; the rating of the
        player `held`, if any, stays as it starts."""
        rows = self._row[None]
        if held is not None:
            rows = np.stack([self._row, np.arange(len(start)) == held])
        free = null_space(rows)  # directions that keep the constraint, [N, N - rows]
        if not free.size:
            return start
        found = minimize(
            lambda x: self.loss(start + free @ x),
            np.zeros(free.shape[1]),
            jac=lambda x: free.T @ self._gradient(start + free @ x),
            hess=lambda x: free.T @ self._moments(start + free @ x)[1] @ free,
            method="trust-exact",
            options={"gtol": _TOLERANCE},
        )
        return start + free @ found.x

    def _gradient(self, theta: np.ndarray) -> np.ndarray:
        """Of the loss, float[N]."""
        expected, _ = self._moments(theta)
        return self._contrast.T @ (self._count * expected - self._wins)

    def bread(self, theta: np.ndarray) -> np.ndarray:
        """Inverse information under the constraint, [N, N]."""
        bordered = _bordered(self._moments(theta)[1], self._row[None])
        return np.linalg.inv(bordered)[: len(theta), : len(theta)]

    def meat(self, theta: np.ndarray) -> np.ndarray:
        """Variance of the gradient as the pairs show it, [N, N]."""
        expected, _ = self._moments(theta)
        each = expected * (1 - expected)
        model = self._games.played * each
        residual = (PAIR_SCORES[None] - 2 * expected[:, None]) ** 2
        pairs = self._games.pairs.sum()
        freedom = max(1.0, pairs - len(theta) + 1) / pairs
        seen = (self._games.pairs * residual).sum(axis=1) / freedom
        prior = _PRIOR_PAIRS * _EVEN_PAIR_VARIANCE
        pool = (seen.sum() + prior) / (model.sum() + prior)
        # Where one side nearly always wins, colours and openings cannot make the games differ.
        evenness = np.where(pool < 1, 4 * each, 1)
        typical = 1 + (pool - 1) * evenness
        spread = (seen + prior * typical) / (model + prior)
        variance = spread * model + self._virtual * each
        return self._contrast.T @ (variance[:, None] * self._contrast)

    def _moments(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected score of each pairing [M], information [N, N]."""
        lead = np.clip(self._contrast @ theta, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        expected = 1 / (1 + np.exp(-lead))
        weight = self._count * expected * (1 - expected)
        return expected, self._contrast.T @ (weight[:, None] * self._contrast)


def _bordered(information: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The information with the constraints' rows at its right and below."""
    corner = np.zeros((len(rows), len(rows)))
    return np.block([[information, rows.T], [rows, corner]])


def _interval(
    problem: _Problem, theta: np.ndarray, bread: np.ndarray, covariance: np.ndarray, player: int
) -> tuple[float, float]:
    """Where the profile of a player's rating has dropped by what 95 % allow."""
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

    return _crossing(excess, centre, -bread[player, player]), _crossing(
        excess, centre, bread[player, player]
    )


def _crossing(excess: Any, centre: float, direction: float) -> float:
    """Where a function that is below 0 at the centre rises through it, on one side."""
    step = math.copysign(Z_95 * math.sqrt(abs(direction)), direction)
    inner, outer = centre, centre + step
    while excess(outer) < 0 and abs(outer) < _MAX_LOG_ODDS:
        inner, outer = outer, outer + step
        step *= 2
    if abs(outer) >= _MAX_LOG_ODDS:
        return outer
    return brentq(excess, inner, outer, xtol=1e-4)  # pyright: ignore[reportReturnType]
