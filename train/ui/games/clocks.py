"""Chess clocks: time for a whole game, and an increment after each move."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

MAX_MINUTES, MAX_INCREMENT = 180.0, 180.0


class ClockSettings(NamedTuple):
    """Time of each player."""

    minutes: float
    increment: float  # seconds


def read_clock(fields: object) -> ClockSettings | None:
    """Read the settings that a page sends; None means no clocks.

    Raises:
      ValueError: what is wrong with them.
    """
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise ValueError("clock: not an object with minutes and increment")
    limits = {"minutes": (0.1, MAX_MINUTES), "increment": (0.0, MAX_INCREMENT)}
    found = {}
    for key, (low, high) in limits.items():
        value = fields.get(key, 0)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            raise ValueError(f"clock: {key} is {value!r}, not a number from {low:g} to {high:g}")
        found[key] = float(value)
    return ClockSettings(**found)


class Clocks:
    """The clocks of all players; at most one of them runs.

    Attributes:
      settings: time of each player.
      running: whose clock runs, or None.
    """

    def __init__(
        self,
        settings: ClockSettings,
        players: int,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set every clock to the full time; none runs.

        Args:
          settings: time of each player.
          players: number of clocks.
          now: the time in seconds.
        """
        self.settings = settings
        self.running: int | None = None
        self._left = [60 * settings.minutes] * players
        self._since, self._now = 0.0, now

    def left(self, player: int) -> float:
        """Seconds that a player has left, 0 once the time is over."""
        passed = self._now() - self._since if player == self.running else 0.0
        return max(0.0, self._left[player] - passed)

    def set(self, player: int, seconds: float) -> None:
        """Set a clock that does not run."""
        self._left[player] = seconds

    def start(self, player: int) -> None:
        """Let a player's clock run, and stop the one that runs."""
        if player == self.running:
            return
        self.stop()
        self.running, self._since = player, self._now()

    def stop(self) -> None:
        """Stop the clock that runs."""
        if self.running is not None:
            self._left[self.running] = self.left(self.running)
        self.running = None

    def add_increment(self, player: int) -> None:
        """Give a player the time of a move played."""
        self._left[player] += self.settings.increment

    @property
    def flagged(self) -> int | None:
        """The player whose time is over while the clock runs, or None."""
        player = self.running
        return player if player is not None and self.left(player) <= 0 else None
