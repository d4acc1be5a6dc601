"""The result of a match: games, outcomes and what is counted of them.

N games, two of each opening.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from wallgo_jax.game.rules import Rules

Z_95 = 1.959963984540054
"""Standard errors on either side that hold 95 % of a normal distribution."""


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """A match from the first player's side, game by game.

    Attributes:
      first: name of the first player.
      second: name of the second player.
      rules: what was played.
      outcome: int[N]: 1 won, 0 drawn, -1 lost by the first player. Games i and i + N / 2 are a
        pair: the same opening, colours changed. The last `unpaired` games are not counted in N
        here.
      first_is_red: bool[N].
      territory: int[N, 2] at the end: the first player's, the second's.
      games: public actions of each game.
      forfeits: of each game, who lost it without the rules and why, as a program that crashed or
        made an illegal move; empty texts for all other games, or no texts at all.
      unpaired: games at the end whose other of the pair is not over; only where a match stopped.
    """

    first: str
    second: str
    rules: Rules
    outcome: np.ndarray
    first_is_red: np.ndarray
    territory: np.ndarray
    games: tuple[tuple[int, ...], ...]
    forfeits: tuple[str, ...] = ()
    unpaired: int = 0

    @property
    def paired_outcome(self) -> np.ndarray:
        """`outcome` of the games whose pair is whole."""
        return self.outcome[: len(self.outcome) - self.unpaired]

    @property
    def wins(self) -> int:
        """Games that the first player won."""
        return int((self.outcome > 0).sum())

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int((self.outcome == 0).sum())

    @property
    def losses(self) -> int:
        """Games that the first player lost."""
        return int((self.outcome < 0).sum())

    @property
    def win_rate(self) -> float:
        """(W + D / 2) / N."""
        return (self.wins + self.draws / 2) / len(self.outcome)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson)."""
        return wilson_interval(self.win_rate, len(self.outcome))

    @property
    def pairs(self) -> np.ndarray:
        """int[N / 2]: wins less losses of the first player in the two games of each pair."""
        one, other = np.split(self.paired_outcome, 2)
        return one + other

    @property
    def territory_ratio(self) -> float:
        """The first player's cells over the second's, all games together; inf if it had none."""
        own, other = self.territory.sum(axis=0)
        return float(own) / float(other) if other else math.inf

    def win_rate_as(self, *, red: bool) -> float | None:
        """The first player's win rate in the games where it has this colour; None without any."""
        outcome = self.outcome[self.first_is_red == red]
        return float((outcome + 1).mean() / 2) if len(outcome) else None

    @property
    def red_win_rate(self) -> float:
        """Red's win rate, whoever plays it: above one half if opening is an advantage."""
        red = np.where(self.first_is_red, self.outcome, -self.outcome)
        return float((red + 1).mean() / 2)

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
    """Two matches of the same players under the same rules as one, pairs kept together; the first
    has no unpaired game."""
    assert one.unpaired == 0

    def both(a: Any, b: Any) -> Any:
        half_a, half_b = len(a) // 2, (len(b) - other.unpaired) // 2
        parts = a[:half_a], b[:half_b], a[half_a:], b[half_b:]
        return sum(parts, ()) if isinstance(a, tuple) else np.concatenate(parts)

    names = ["outcome", "first_is_red", "territory", "games"]
    if one.forfeits and other.forfeits:
        names.append("forfeits")
    joined = {name: both(getattr(one, name), getattr(other, name)) for name in names}
    return dataclasses.replace(one, **joined, unpaired=other.unpaired)


def keep_finished(result: MatchResult, is_over: np.ndarray) -> MatchResult:
    """A match without the games, bool[N], that are not over; whole pairs come first."""
    one, other = np.split(is_over, 2)
    pairs = np.flatnonzero(one & other)
    single = np.flatnonzero(is_over & ~np.tile(one & other, 2))
    order = np.concatenate([pairs, len(one) + pairs, single])
    return dataclasses.replace(
        result,
        outcome=result.outcome[order],
        first_is_red=result.first_is_red[order],
        territory=result.territory[order],
        games=tuple(result.games[place] for place in order),
        forfeits=tuple(result.forfeits[place] for place in order if result.forfeits),
        unpaired=len(single),
    )
