"""The counts of some players' games, from which ratings are made."""

from typing import NamedTuple

import numpy as np

from train.arena.result import MatchResult


class Counts(NamedTuple):
    """The games of P players, each at one seat, whose openings are played in every seating."""

    players: tuple[str, ...]
    wins: tuple[float, ...]  # [P], a draw as 1 / P of a win for each
    openings: int
    spread: tuple[tuple[float, ...], ...]
    """[P, P]: sum over openings of (wins - mean wins)(wins - mean wins)^T of an opening's games."""

    @property
    def games(self) -> int:
        """Number of games."""
        return round(sum(self.wins))

    def plus(self, more: "Counts") -> "Counts":
        """Further games of the same players in the same order, as one result of all openings."""
        wins, openings = np.array([self.wins, more.wins]), np.array([self.openings, more.openings])
        spread = np.array(self.spread) + np.array(more.spread)
        if openings.all():
            # Openings of both differ from the mean of all by more than from those of each.
            gap = wins[0] / openings[0] - wins[1] / openings[1]
            spread += openings.prod() / openings.sum() * np.outer(gap, gap)
        total = tuple(wins.sum(axis=0).tolist())
        return Counts(self.players, total, int(openings.sum()), tuple(map(tuple, spread.tolist())))


def count_games(result: MatchResult, players: tuple[str, ...] = ()) -> Counts:
    """The counts of a match in which each entrant has one seat; `players` are its entrants in place
    of their names."""
    won = (result.rewards > 0) + result.is_drawn[:, None] / result.rules.players
    won = np.take_along_axis(won, np.argsort(result.seats, axis=1), axis=1)
    openings = np.unique(result.opening)
    by_opening = np.array([won[result.opening == each].sum(axis=0) for each in openings])
    apart = by_opening - by_opening.mean(axis=0)
    return Counts(
        players or result.names,
        tuple(won.sum(axis=0).tolist()),
        len(openings),
        tuple(map(tuple, (apart.T @ apart).tolist())),
    )
