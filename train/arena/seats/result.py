"""The result of a match of three or four players: games, places, and what is counted of them.

G games, P seats, E entrants. A seat's score is its reward: 1 for the sole winner, -1 / (P - 1) for
each other seat, 0 for all in a draw. Its win rate counts a draw as 1 / P of a win, so that equal
players have 1 / P each.
"""

import dataclasses
import math

import numpy as np

from train.arena.result import Z_95, wilson_interval
from wallgo_jax.game.rules import Rules


@dataclasses.dataclass(frozen=True)
class SeatedResult:
    """A match of three or four players, game by game. Methods take an entrant's number.

    Attributes:
      names: of the E entrants, each once; figures are from the side of the first.
      rules: what was played.
      seats: int[G, P], the entrant at each seat.
      rewards: float[G, P], of each seat.
      territory: int[G, P] at the end.
      opening: int[G]; games of one opening differ in the seating alone.
      games: public actions of each game.
    """

    names: tuple[str, ...]
    rules: Rules
    seats: np.ndarray
    rewards: np.ndarray
    territory: np.ndarray
    opening: np.ndarray
    games: tuple[tuple[int, ...], ...]

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int((self.rewards.max(axis=1) <= 0).sum())

    @property
    def places(self) -> np.ndarray:
        """int[G, P] from 1: by reward, then by territory; equal seats share the better place."""
        one, other = self.rewards[:, :, None], self.rewards[:, None]
        more = self.territory[:, None] > self.territory[:, :, None]
        return 1 + ((other > one) | ((other == one) & more)).sum(axis=2)

    def seats_of(self, entrant: int) -> int:
        """Seats that an entrant holds in a game."""
        return int((self.seats[0] == entrant).sum())

    def wins(self, entrant: int) -> int:
        """Games that one of its seats won."""
        return int(((self.seats == entrant) & (self.rewards > 0)).sum())

    def losses(self, entrant: int) -> int:
        """Games that another entrant won."""
        return len(self.games) - self.draws - self.wins(entrant)

    def win_rate(self, entrant: int) -> float:
        """Share of the games that a seat of its wins, a draw counted as 1 / P."""
        seats = self.seats_of(entrant)
        own_draws = self.draws * seats / self.rules.players
        return (self.wins(entrant) + own_draws) / (len(self.games) * seats)

    def interval(self, entrant: int) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson, of the games that one of its seats wins)."""
        seats = self.seats_of(entrant)
        low, high = wilson_interval(self.win_rate(entrant) * seats, len(self.games))
        return low / seats, high / seats

    def decided_rate(self, entrant: int) -> float:
        """Share that it won of the games that somebody won; NaN where all were drawn."""
        decided = len(self.games) - self.draws
        return self.wins(entrant) / decided if decided else math.nan

    def decided_interval(self, entrant: int) -> tuple[float, float]:
        """95 % interval of `decided_rate` (Wilson)."""
        decided = len(self.games) - self.draws
        return wilson_interval(self.decided_rate(entrant) if decided else 0.0, decided)

    def win_rate_at(self, entrant: int, seat: int) -> float:
        """Its win rate in the games where it has this seat; NaN where it never has."""
        rewards = self.rewards[self.seats[:, seat] == entrant, seat]
        return _win_rates(rewards, self.rules.players) if len(rewards) else math.nan

    def seat_win_rate(self, seat: int) -> float:
        """Win rate of a seat, whoever has it: above 1 / P if it is an advantage."""
        return _win_rates(self.rewards[:, seat], self.rules.players)

    def reward(self, entrant: int) -> tuple[float, float]:
        """Mean reward of its seats, and half the width of a 95 % interval.

        Games of one opening hang together, so the openings' means are taken as the sample
        (normal approximation); the half width is NaN for fewer than two openings.
        """
        own = np.where(self.seats == entrant, self.rewards, 0.0).sum(axis=1)
        means = [own[self.opening == each].mean() for each in np.unique(self.opening)]
        means = np.array(means) / self.seats_of(entrant)
        if len(means) < 2:
            return float(means.mean()), math.nan
        return float(means.mean()), float(Z_95 * means.std(ddof=1) / math.sqrt(len(means)))

    def place_shares(self, entrant: int) -> list[float]:
        """Shares of its seats that came first, second and so on, [P]."""
        found = self.places[self.seats == entrant]
        return [float((found == place).mean()) for place in range(1, self.rules.players + 1)]

    def mean_territory(self, entrant: int) -> float:
        """Cells of one of its seats at the end."""
        return float(self.territory[self.seats == entrant].mean())

    @property
    def mean_length(self) -> float:
        """Plies a game."""
        return float(np.mean([len(game) for game in self.games]))

    @property
    def distinct_games(self) -> int:
        """Games that differ in at least one action."""
        return len(set(self.games))


def keep_finished(result: SeatedResult, is_over: np.ndarray) -> SeatedResult:
    """A match without the games, bool[G], that are not over."""
    order = np.flatnonzero(is_over)
    return dataclasses.replace(
        result,
        seats=result.seats[order],
        rewards=result.rewards[order],
        territory=result.territory[order],
        opening=result.opening[order],
        games=tuple(result.games[place] for place in order),
    )


def _win_rates(rewards: np.ndarray, players: int) -> float:
    """Mean share of a win: 1 for reward 1, 1 / P for 0, 0 for -1 / (P - 1)."""
    return float(((rewards > 0) + (rewards == 0) / players).mean())
