"""Ratings from games of three and four players: the Plackett-Luce model, by maximum likelihood.

The sole winner of a game is the seat whose player i is drawn with chance w_i / sum of w over the
seats, w = 10^(Elo / 400) (Luce, "Individual Choice Behavior", 1959; Plackett, "The Analysis of
Permutations", 1975). All other seats are paid the same, so they stand level behind it: the
likelihood of an order that is known up to the order of its last ones is that of its first stage. A
draw counts as 1 / P of a win for each of P seats. With two seats this is the model of
`train.arena.elo`.

The choices of that module are made here, too: each player draws about one virtual game, shared
among its tables, and the spread of the results is estimated from those of openings, because games
of one opening hang together. The intervals are by the sandwich variance (White, "Maximum Likelihood
Estimation of Misspecified Models", 1982) and the normal approximation.

N players, M tables, P seats.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from train.arena.elo import ELO, PRIOR_GAMES, Ratings
from train.arena.result import Z_95
from train.arena.seats.result import SeatedResult

_PRIOR_OPENINGS = 8.0
"""Openings whose spread is taken to be that of independent games."""


class TableResult(NamedTuple):
    """The games of P players, each at one seat."""

    players: tuple[str, ...]
    wins: tuple[float, ...]  # [P], a draw as 1 / P of a win for each
    openings: int
    spread: tuple[tuple[float, ...], ...]
    """[P, P]: sum over openings of (wins - mean wins)(wins - mean wins)^T of an opening's games."""

    @property
    def games(self) -> float:
        """Number of games."""
        return sum(self.wins)


def table_result(result: SeatedResult) -> TableResult:
    """What is counted of a match in which each entrant has one seat."""
    players = result.rules.players
    draws = np.asarray((result.rewards <= 0).all(axis=1, keepdims=True))
    won = (result.rewards > 0) + draws / players
    order = np.argsort(result.seats, axis=1)
    won = np.take_along_axis(won, order, axis=1)
    by_opening = np.array(
        [won[result.opening == each].sum(axis=0) for each in np.unique(result.opening)]
    )
    apart = by_opening - by_opening.mean(axis=0)
    return TableResult(
        result.names,
        tuple(won.sum(axis=0).tolist()),
        len(by_opening),
        tuple(map(tuple, (apart.T @ apart).tolist())),
    )


def add(one: TableResult, other: TableResult) -> TableResult:
    """Two results of the same players in the same order, as one of all their openings."""
    assert one.players == other.players
    wins, openings = np.array([one.wins, other.wins]), np.array([one.openings, other.openings])
    spread = np.array(one.spread) + np.array(other.spread)
    if openings.all():
        # Openings of both differ from the mean of all by more than from those of each.
        gap = wins[0] / openings[0] - wins[1] / openings[1]
        spread += openings.prod() / openings.sum() * np.outer(gap, gap)
    return TableResult(
        one.players,
        tuple(wins.sum(axis=0).tolist()),
        int(openings.sum()),
        tuple(map(tuple, spread.tolist())),
    )


def fit(
    names: Sequence[str], results: Sequence[TableResult], *, anchor: str | None = None
) -> Ratings:
    """Rate a pool.

    Args:
      names: the players, each once.
      results: of tables, each at most once.
      anchor: the player whose rating is 0; None for a mean of 0.

    Raises:
      ValueError: an unknown name, or players that no chain of games connects.
    """
    place = {name: number for number, name in enumerate(names)}
    for result in results:
        for name in result.players:
            if name not in place:
                raise ValueError(f"elo: result of {name!r}, who is not among the players")
    if anchor is not None and anchor not in place:
        raise ValueError(f"elo: anchor {anchor!r} is not among the players")
    tables = [np.array([place[name] for name in result.players]) for result in results]
    _check_connected(names, tables)
    row = np.array([float(name == anchor) for name in names])
    row = row if anchor is not None else np.full(len(names), 1 / len(names))
    problem = _Problem(len(names), tables, results)
    theta = problem.solve(row)
    bread = _constrained_inverse(problem.information(theta), row)
    covariance = bread @ problem.meat(theta) @ bread
    half = Z_95 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Ratings(
        names=tuple(names),
        elo=theta * ELO,
        low=(theta - half) * ELO,
        high=(theta + half) * ELO,
        covariance=covariance * ELO**2,
        games=problem.played.round().astype(int),
        score=np.divide(
            problem.won, problem.played, out=np.full(len(names), math.nan), where=problem.played > 0
        ),
        anchor=anchor,
    )


def choice_information(chances: np.ndarray) -> np.ndarray:
    """[..., P, P]: Fisher information of one game on the log-odds of its players, from the chances
    [..., P] that each wins it."""
    return chances[..., None] * np.eye(chances.shape[-1]) - (
        chances[..., :, None] * chances[..., None, :]
    )


class _Problem:
    """The penalised log-likelihood of log-odds ratings `theta`, float[N]."""

    def __init__(
        self, players: int, tables: Sequence[np.ndarray], results: Sequence[TableResult]
    ) -> None:
        self._players, self._tables, self._results = players, tables, results
        self.played, self.won = np.zeros(players), np.zeros(players)
        for table, result in zip(tables, results, strict=True):
            self.played[table] += result.games
            self.won[table] += result.wins
        self._virtual = [
            PRIOR_GAMES * result.games * float((1 / np.maximum(self.played[table], 1)).mean())
            for table, result in zip(tables, results, strict=True)
        ]

    def solve(self, row: np.ndarray) -> np.ndarray:
        """The likeliest ratings under `row @ theta = 0`."""
        free = null_space(row[None])
        found = minimize(
            lambda x: self._loss(free @ x),
            np.zeros(free.shape[1]),
            jac=lambda x: free.T @ self._gradient(free @ x),
            hess=lambda x: free.T @ self.information(free @ x) @ free,
            method="trust-exact",
            options={"gtol": 1e-6},
        )
        return free @ found.x

    def _counts(self, number: int) -> np.ndarray:
        """[P] wins of a table, the virtual draws included."""
        wins = np.array(self._results[number].wins)
        return wins + self._virtual[number] / len(wins)

    def _loss(self, theta: np.ndarray) -> float:
        total = 0.0
        for number, table in enumerate(self._tables):
            counts = self._counts(number)
            total += counts.sum() * logsumexp(theta[table]) - counts @ theta[table]
        return float(total)

    def _gradient(self, theta: np.ndarray) -> np.ndarray:
        gradient = np.zeros(self._players)
        for number, table in enumerate(self._tables):
            counts = self._counts(number)
            gradient[table] += counts.sum() * softmax(theta[table]) - counts
        return gradient

    def information(self, theta: np.ndarray) -> np.ndarray:
        """Second derivatives of the loss, [N, N]."""
        found = np.zeros((self._players, self._players))
        for number, table in enumerate(self._tables):
            each = choice_information(softmax(theta[table]))
            found[np.ix_(table, table)] += self._counts(number).sum() * each
        return found

    def meat(self, theta: np.ndarray) -> np.ndarray:
        """Variance of the gradient as the openings show it, [N, N].

        The information of the games times a factor: how much more, or less, openings differ than
        independent games would, over all tables, pulled towards 1.
        """
        found, seen, model = np.zeros((self._players, self._players)), 0.0, 0.0
        for number, table in enumerate(self._tables):
            result, virtual = self._results[number], self._virtual[number]
            each = choice_information(softmax(theta[table]))
            found[np.ix_(table, table)] += (result.games + virtual) * each
            if result.openings > 1:
                seen += np.trace(np.array(result.spread)) * result.openings / (result.openings - 1)
                model += result.games * np.trace(each)
        players = len(self._tables[0])
        prior = _PRIOR_OPENINGS * (1 - 1 / players)
        return found * (seen + prior) / (model + prior)


def _constrained_inverse(information: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Inverse information under `row @ theta = 0`, [N, N]."""
    bordered = np.block([[information, row[:, None]], [row[None], np.zeros((1, 1))]])
    return np.linalg.inv(bordered)[: len(row), : len(row)]


def _check_connected(names: Sequence[str], tables: Sequence[np.ndarray]) -> None:
    reached = {0}
    for _ in names:
        for table in tables:
            if reached & set(table.tolist()):
                reached |= set(table.tolist())
    if len(reached) < len(names):
        outside = next(name for number, name in enumerate(names) if number not in reached)
        raise ValueError(
            f"elo: no chain of games connects {names[0]!r} and {outside!r}: their ratings cannot "
            "be compared"
        )
