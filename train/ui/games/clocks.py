"""Chess clocks: time for a whole game, and an increment after each move."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field


class ClockSettings(NamedTuple):
    """Time of each player, as a page may choose it."""

    minutes: Annotated[float, Field(strict=True, ge=0.1, le=180)]
    increment: Annotated[float, Field(strict=True, ge=0, le=180)] = 0.0  # seconds


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
        left: Sequence[float] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set every clock; none runs.

        Args:
          settings: time of each player.
          players: number of clocks.
          left: seconds of each player; the full time by default.
          now: returns the time in seconds.
        """
        self.settings = settings
        self.running: int | None = None
        self._left = [60 * settings.minutes] * players if left is None else list(left)
        self._since, self._now = 0.0, now

    def left(self, player: int) -> float:
        """Seconds that a player has left, 0 once the time is over."""
        passed = self._now() - self._since if player == self.running else 0.0
        return max(0.0, self._left[player] - passed)

    def start(self, player: int) -> None:
        """Start a player's clock, and stop the one that runs."""
        if player != self.running:
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
