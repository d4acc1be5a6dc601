"""The result of a match: games, outcomes, places, and what is counted of them.

G games, P seats, E entrants. A seat's score is its reward: 1 for the sole winner, -1 / (P - 1) for
each other seat, 0 for all in a draw. A win rate counts a draw as 1 / P of a win, so that equal
players have 1 / P each.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wallgo_jax.game.rules import Rules

Z_95 = 1.959963984540054
"""Standard errors on either side that hold 95 % of a normal distribution."""


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """A match, game by game. Figures are from the side of the first entrant; `of` has those of
    another.

    Attributes:
      names: of the E entrants.
      rules: what was played.
      seats: int[G, P], the entrant at each seat.
      rewards: float[G, P], of each seat.
      cells: int[G, P], territory of each seat at the end.
      opening: int[G]; games of one opening differ in the seating alone.
      games: public actions of each game.
      forfeits: of each game, who lost it without the rules and why, as a program that crashed or
        made an illegal move; empty texts for all other games, or no texts at all.
    """

    names: tuple[str, ...]
    rules: Rules
    seats: np.ndarray
    rewards: np.ndarray
    cells: np.ndarray
    opening: np.ndarray
    games: tuple[tuple[int, ...], ...]
    forfeits: tuple[str, ...] = ()

    def of(self, entrant: int) -> "EntrantResult":
        """The figures of an entrant, by its number."""
        return EntrantResult(self, entrant)

    def of_games(self, numbers: np.ndarray) -> "MatchResult":
        """The match of some of its games, int[...]."""
        arrays = ("seats", "rewards", "cells", "opening")
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
        counted = [(name, self.of(e).seats) for e, name in enumerate(self.names) if e]
        names = ", ".join(name if seats == 1 else f"{seats} {name}" for name, seats in counted)
        return names or "itself"

    @property
    def outcome(self) -> np.ndarray:
        """int[G]: 1 won, 0 drawn, -1 lost by the first entrant."""
        won = ((self.seats == 0) & (self.rewards > 0)).any(axis=1)
        return np.where(self.is_drawn, 0, np.where(won, 1, -1))

    @property
    def is_drawn(self) -> np.ndarray:
        """bool[G]: nobody won."""
        return np.asarray(self.rewards.max(axis=1) <= 0)

    @property
    def first_is_red(self) -> np.ndarray:
        """bool[G]: the first entrant has the first seat."""
        return np.asarray(self.seats[:, 0] == 0)

    @property
    def territory(self) -> np.ndarray:
        """int[G, E]: cells of all seats of each entrant at the end."""
        entrants = range(len(self.names))
        return np.stack([np.where(self.seats == e, self.cells, 0).sum(axis=1) for e in entrants], 1)

    @property
    def places(self) -> np.ndarray:
        """int[G, P] from 1: by reward, then by territory; equal seats share the better place."""
        one, other = self.rewards[:, :, None], self.rewards[:, None]
        more = self.cells[:, None] > self.cells[:, :, None]
        return 1 + ((other > one) | ((other == one) & more)).sum(axis=2)

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int(self.is_drawn.sum())

    @property
    def wins(self) -> int:
        """Games that the first entrant won."""
        return self.of(0).wins

    @property
    def losses(self) -> int:
        """Games that another entrant won."""
        return self.of(0).losses

    @property
    def win_rate(self) -> float:
        """The first entrant's, see `EntrantResult.win_rate`."""
        return self.of(0).win_rate

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson)."""
        return self.of(0).interval

    @property
    def pairs(self) -> np.ndarray:
        """int[...]: wins less losses of the first of two entrants in the two games of each opening,
        those aside of which only one is over."""
        _, place, count = np.unique(self.opening, return_inverse=True, return_counts=True)
        return np.bincount(place, weights=self.outcome)[count == 2].astype(int)

    @property
    def pair_counts(self) -> tuple[int, ...]:
        """[5] `pairs` in which the first of two entrants has 0, ½, 1, 1½ and 2 points."""
        return tuple(np.bincount(self.pairs + 2, minlength=5).tolist())

    def seat_win_rate(self, seat: int) -> float:
        """Win rate of a seat, whoever has it: above 1 / P if it is an advantage."""
        return _win_rate(self.rewards[:, seat], self.rules.players)

    @property
    def mean_length(self) -> float:
        """Plies a game."""
        return float(np.mean([len(game) for game in self.games]))

    @property
    def forfeited(self) -> int:
        """Games that a player lost without the rules."""
        return sum(map(bool, self.forfeits))

    @property
    def distinct_games(self) -> int:
        """Games that differ in at least one action."""
        return len(set(self.games))


@dataclasses.dataclass(frozen=True)
class EntrantResult:
    """A match from one entrant's side."""

    match: MatchResult
    entrant: int

    @property
    def name(self) -> str:
        """Its name."""
        return self.match.names[self.entrant]

    @property
    def is_own(self) -> np.ndarray:
        """bool[G, P]: its seats."""
        return np.asarray(self.match.seats == self.entrant)

    @property
    def seats(self) -> int:
        """Seats that it holds in a game."""
        return int(self.is_own[0].sum())

    @property
    def wins(self) -> int:
        """Games that one of its seats won."""
        return int((self.is_own & (self.match.rewards > 0)).sum())

    @property
    def losses(self) -> int:
        """Games that another entrant won."""
        return len(self.match.games) - self.match.draws - self.wins

    @property
    def win_rate(self) -> float:
        """Share of the games that a seat of its wins, a draw counted as 1 / P; at two seats
        (W + D / 2) / G."""
        own_draws = self.match.draws * self.seats / self.match.rules.players
        return (self.wins + own_draws) / (len(self.match.games) * self.seats)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson, of the games that one of its seats wins)."""
        low, high = wilson_interval(self.win_rate * self.seats, len(self.match.games))
        return low / self.seats, high / self.seats

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
        rewards = self.match.rewards[self.is_own[:, seat], seat]
        return _win_rate(rewards, self.match.rules.players) if len(rewards) else None

    @property
    def reward(self) -> tuple[float, float]:
        """Mean reward of its seats, and half the width of a 95 % interval.

        Games of one opening hang together, so the openings' means are taken as the sample
        (normal approximation); the half width is NaN for fewer than two openings.
        """
        rewards = np.where(self.is_own, self.match.rewards, 0.0).sum(axis=1)
        opening = self.match.opening
        by_opening = [rewards[opening == each].mean() for each in np.unique(opening)]
        means = np.array(by_opening) / self.seats
        if len(means) < 2:
            return float(means.mean()), math.nan
        return float(means.mean()), float(Z_95 * means.std(ddof=1) / math.sqrt(len(means)))

    @property
    def place_shares(self) -> list[float]:
        """Shares of its seats that came first, second and so on, [P]."""
        places = self.match.places[self.is_own]
        return [float((places == n).mean()) for n in range(1, self.match.rules.players + 1)]

    @property
    def territory(self) -> tuple[float, float]:
        """Mean cells of one of its seats at the end, and of one of the others'."""
        of_each, other = self.match.cells[self.is_own], self.match.cells[~self.is_own]
        return float(of_each.mean()), float(other.mean()) if other.size else 0.0

    @property
    def territory_ratio(self) -> float | None:
        """Cells of one of its seats over those of one of the others'; None if they had none."""
        cells, other = self.match.cells[self.is_own], self.match.cells[~self.is_own]
        total = int(other.sum()) * cells.size
        return int(cells.sum()) * other.size / total if total else None


def wilson_interval(rate: float, games: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a rate over independent games (Wilson, "Probable Inference, the
    Law of Succession, and Statistical Inference", 1927)."""
    if games == 0:
        return 0.0, 1.0
    spread = z * z / games
    centre = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / games + spread / (4 * games))
    return max(0.0, centre - half), min(1.0, centre + half)


def join(one: MatchResult, other: MatchResult) -> MatchResult:
    """Two matches of the same players under the same rules as one, the first one's games first."""

    other = dataclasses.replace(other, opening=other.opening + one.opening.max() + 1)

    def both(name: str) -> Any:
        parts: Sequence[Any] = getattr(one, name), getattr(other, name)
        return parts[0] + parts[1] if isinstance(parts[0], tuple) else np.concatenate(parts)

    names = ["seats", "rewards", "cells", "opening", "games"]
    if one.forfeits and other.forfeits:
        names.append("forfeits")
    return dataclasses.replace(one, **{name: both(name) for name in names})


def _win_rate(rewards: np.ndarray, players: int) -> float:
    """Mean share of a win: 1 for reward 1, 1 / P for 0, 0 for -1 / (P - 1)."""
    return float(((rewards > 0) + (rewards == 0) / players).mean())
