"""The counts of a pairing's games, from which ratings and tests are made."""

from typing import NamedTuple

import numpy as np

from train.arena.result import MatchResult

PAIR_SCORES = np.array([0, 0.5, 1, 1.5, 2])
"""Points of the first player in a pair of games: the classes that pairs are counted in."""


class PairResult(NamedTuple):
    """The games of two players, as pairs by score."""

    players: tuple[str, ...]
    pairs: tuple[int, ...]
    """[5]: pairs of games in which the first player scored each of `PAIR_SCORES`."""
    wins: int = 0  # of the first player
    draws: int = 0
    losses: int = 0
    territory: tuple[int, ...] = (0, 0)

    @property
    def games(self) -> int:
        """Number of games."""
        return 2 * sum(self.pairs)

    def plus(self, more: "PairResult") -> "PairResult":
        """Further games of the same players in the same order."""
        return PairResult(
            self.players,
            tuple(np.add(self.pairs, more.pairs).tolist()),
            self.wins + more.wins,
            self.draws + more.draws,
            self.losses + more.losses,
            tuple(np.add(self.territory, more.territory).tolist()),
        )


def pair_result(result: MatchResult) -> PairResult:
    """The counts of a match of two."""
    cells = tuple(result.territory.sum(axis=0).tolist())
    return PairResult(
        result.names, result.pair_counts, result.wins, result.draws, result.losses, cells
    )


class TableResult(NamedTuple):
    """The games of P players, each at one seat."""

    players: tuple[str, ...]
    wins: tuple[float, ...]  # [P], a draw as 1 / P of a win for each
    openings: int
    spread: tuple[tuple[float, ...], ...]
    """[P, P]: sum over openings of (wins - mean wins)(wins - mean wins)^T of an opening's games."""

    @property
    def games(self) -> int:
        """Number of games."""
        return round(sum(self.wins))

    def plus(self, more: "TableResult") -> "TableResult":
        """Further games of the same players in the same order, as one result of all openings."""
        wins, openings = np.array([self.wins, more.wins]), np.array([self.openings, more.openings])
        spread = np.array(self.spread) + np.array(more.spread)
        if openings.all():
            # Openings of both differ from the mean of all by more than from those of each.
            gap = wins[0] / openings[0] - wins[1] / openings[1]
            spread += openings.prod() / openings.sum() * np.outer(gap, gap)
        return TableResult(
            self.players,
            tuple(wins.sum(axis=0).tolist()),
            int(openings.sum()),
            tuple(map(tuple, spread.tolist())),
        )


def table_result(result: MatchResult) -> TableResult:
    """The counts of a match in which each entrant has one seat."""
    players = result.rules.players
    won = (result.rewards > 0) + result.is_drawn[:, None] / players
    won = np.take_along_axis(won, np.argsort(result.seats, axis=1), axis=1)
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


Counts = PairResult | TableResult
"""The counts of a pairing's games."""
