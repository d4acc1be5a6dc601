"""What is counted of a match: outcomes, places, win rates and their intervals.

G games, P seats, E entrants. A seat's score is its reward: 1 for the sole winner, -1 / (P - 1) for
each other seat, 0 for all in a draw. A win rate counts a draw as 1 / P of a win, so that equal
players have 1 / P each.
"""

import dataclasses
import math
from typing import NamedTuple, Self

import numpy as np

from wallgo_jax.game.rules import Rules

Z_95 = 1.959963984540054
"""Standard errors on either side that hold 95 % of a normal distribution."""


@dataclasses.dataclass(frozen=True)
class MatchFigures:
    """The games of a match, and what is counted of them from the side of one entrant."""

    names: tuple[str, ...]  # of the E entrants
    rules: Rules  # what was played
    seats: np.ndarray  # int[G, P], the entrant at each seat
    rewards: np.ndarray  # float[G, P], of each seat
    cells: np.ndarray  # int[G, P], territory of each seat at the end
    regions: np.ndarray  # int[G, P], cells of the largest region of each seat at the end
    opening: np.ndarray  # int[G]; games of one opening differ in the seating alone
    games: tuple[tuple[int, ...], ...]  # public actions of each game
    forfeits: tuple[str, ...] = ()
    """Of each game, who lost it by forfeit and why, as a program that crashed or made an
    illegal move; empty texts for all other games, or no texts at all."""
    entrant: int = 0  # whose figures are given

    def of(self, entrant: int) -> Self:
        """The match from the side of another entrant, by its number."""
        return dataclasses.replace(self, entrant=entrant)

    def of_games(self, numbers: np.ndarray) -> Self:
        """The match of some of its games, int[...]."""
        arrays = ("seats", "rewards", "cells", "regions", "opening")
        lists = ("games", "forfeits") if self.forfeits else ("games",)
        return dataclasses.replace(
            self,
            **{name: getattr(self, name)[numbers] for name in arrays},
            **{name: tuple(getattr(self, name)[n] for n in numbers) for name in lists},
        )

    @property
    def first(self) -> str:
        """Name of the first entrant."""
        return self.names[0]

    @property
    def second(self) -> str:
        """The other entrants, each with its seats where it has several."""
        counted = [(name, self.of(e).held) for e, name in enumerate(self.names) if e]
        names = ", ".join(name if held == 1 else f"{held} {name}" for name, held in counted)
        return names or "itself"

    @property
    def is_drawn(self) -> np.ndarray:
        """bool[G]: nobody won."""
        return np.asarray(self.rewards.max(axis=1) <= 0)

    @property
    def territory(self) -> np.ndarray:
        """int[G, E]: cells of all seats of each entrant at the end."""
        entrants = range(len(self.names))
        return np.stack([np.where(self.seats == e, self.cells, 0).sum(axis=1) for e in entrants], 1)

    @property
    def places(self) -> np.ndarray:
        """int[G, P] from 1: by reward, then by territory; equal seats share the better place."""
        one = self.rewards[:, :, None]
        other = self.rewards[:, None]
        more = self.cells[:, None] > self.cells[:, :, None]
        return 1 + ((other > one) | ((other == one) & more)).sum(axis=2)

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int(self.is_drawn.sum())

    @property
    def mean_length(self) -> float:
        """Plies a game."""
        return float(np.mean([len(game) for game in self.games]))

    @property
    def forfeited(self) -> int:
        """Games lost by forfeit."""
        return sum(map(bool, self.forfeits))

    @property
    def distinct_games(self) -> int:
        """Games that differ in at least one action."""
        return len(set(self.games))

    def seat_win_rate(self, seat: int) -> float:
        """Win rate of a seat, whoever has it: above 1 / P if it is an advantage."""
        return self._win_rate(self.rewards[:, seat])

    @property
    def pairs(self) -> np.ndarray:
        """int[...]: wins less losses of one of two entrants in the two games of each opening, those
        aside of which only one is over."""
        _, place, count = np.unique(self.opening, return_inverse=True, return_counts=True)
        return np.bincount(place, weights=self.outcome)[count == 2].astype(int)

    @property
    def pair_counts(self) -> tuple[int, ...]:
        """[5] `pairs` in which one of two entrants has 0, ½, 1, 1½ and 2 points."""
        return tuple(np.bincount(self.pairs + 2, minlength=5).tolist())

    @property
    def name(self) -> str:
        """The entrant's name."""
        return self.names[self.entrant]

    @property
    def is_own(self) -> np.ndarray:
        """bool[G, P]: the entrant's seats."""
        return np.asarray(self.seats == self.entrant)

    @property
    def held(self) -> int:
        """Seats that it holds in a game."""
        return int(self.is_own[0].sum())

    @property
    def outcome(self) -> np.ndarray:
        """int[G]: 1 won, 0 drawn, -1 lost by the entrant."""
        won = (self.is_own & (self.rewards > 0)).any(axis=1)
        return np.where(self.is_drawn, 0, np.where(won, 1, -1))

    @property
    def wins(self) -> int:
        """Games that one of its seats won."""
        return int((self.outcome > 0).sum())

    @property
    def losses(self) -> int:
        """Games that another entrant won."""
        return int((self.outcome < 0).sum())

    @property
    def win_rate(self) -> float:
        """Share of the games that a seat of its wins, a draw counted as 1 / P; at two seats
        (W + D / 2) / G."""
        own_draws = self.draws * self.held / self.rules.players
        return (self.wins + own_draws) / (len(self.games) * self.held)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson, of the games that one of its seats wins)."""
        low, high = wilson_interval(self.win_rate * self.held, len(self.games))
        return low / self.held, high / self.held

    @property
    def decided_rate(self) -> float | None:
        """Share that it won of the games that somebody won; None where all were drawn."""
        decided = self.wins + self.losses
        return self.wins / decided if decided else None

    @property
    def decided_interval(self) -> tuple[float, float]:
        """95 % interval of `decided_rate` (Wilson)."""
        return wilson_interval(self.decided_rate or 0.0, self.wins + self.losses)

    def win_rate_at(self, seat: int) -> float | None:
        """Its win rate in the games where it has this seat; None where it never has."""
        rewards = self.rewards[self.is_own[:, seat], seat]
        return self._win_rate(rewards) if len(rewards) else None

    @property
    def reward(self) -> tuple[float, float]:
        """Mean reward of its seats, and half the width of a 95 % interval.

        Games of one opening hang together, so the openings' means are taken as the sample
        (normal approximation); the half width is NaN for fewer than two openings.
        """
        rewards = np.where(self.is_own, self.rewards, 0.0).sum(axis=1)
        openings = np.unique(self.opening)
        means = np.array([rewards[self.opening == each].mean() for each in openings]) / self.held
        error = means.std(ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
        return float(means.mean()), float(Z_95 * error)

    @property
    def place_shares(self) -> list[float]:
        """Shares of its seats that came first, second and so on, [P]."""
        places = self.places[self.is_own]
        return [float((places == n).mean()) for n in range(1, self.rules.players + 1)]

    @property
    def mean_territory(self) -> tuple[float, float]:
        """Mean cells of one of its seats at the end, and of one of the others'."""
        of_each = self.cells[self.is_own]
        other = self.cells[~self.is_own]
        return float(of_each.mean()), float(other.mean()) if other.size else 0.0

    @property
    def territory_ratio(self) -> float | None:
        """Cells of one of its seats over those of one of the others'; None if they had none."""
        cells = self.cells[self.is_own]
        other = self.cells[~self.is_own]
        total = int(other.sum()) * cells.size
        return int(cells.sum()) * other.size / total if total else None

    def _win_rate(self, rewards: np.ndarray) -> float:
        """Mean share of a win: 1 for reward 1, 1 / P for 0, 0 for -1 / (P - 1)."""
        return float(((rewards > 0) + (rewards == 0) / self.rules.players).mean())


def wilson_interval(rate: float, games: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a rate over independent games (Wilson, "Probable Inference, the
    Law of Succession, and Statistical Inference", 1927).

    scipy's takes whole numbers of wins alone; here a draw counts as a part of one.
    """
    if games == 0:
        return 0.0, 1.0
    spread = z * z / games
    centre = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / games + spread / (4 * games))
    return max(0.0, centre - half), min(1.0, centre + half)


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
        wins = np.array([self.wins, more.wins])
        openings = np.array([self.openings, more.openings])
        spread = np.array(self.spread) + np.array(more.spread)
        if openings.all():
            # Openings of both differ from the mean of all by more than from those of each.
            gap = wins[0] / openings[0] - wins[1] / openings[1]
            spread += openings.prod() / openings.sum() * np.outer(gap, gap)
        total = tuple(wins.sum(axis=0).tolist())
        return Counts(self.players, total, int(openings.sum()), tuple(map(tuple, spread.tolist())))


def count_games(result: MatchFigures, players: tuple[str, ...] = ()) -> Counts:
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
