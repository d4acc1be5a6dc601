"""Chess clocks: time for a whole game, and an increment after each move."""

import dataclasses
import time
from collections.abc import Callable
from typing import Annotated, NamedTuple

from pydantic import Field


class ClockSettings(NamedTuple):
    """Time of each player, as a page may choose it."""

    minutes: Annotated[float, Field(strict=True, ge=0.1, le=180)]
    increment: Annotated[float, Field(strict=True, ge=0, le=180)] = 0.0  # seconds


@dataclasses.dataclass(eq=False)
class Clocks:
    """The clocks of all players; at most one of them runs."""

    settings: ClockSettings  # time of each player
    seconds: list[float]  # of each player when the clocks last stopped; see `left`
    now: Callable[[], float] = time.monotonic  # returns the time in seconds
    running: int | None = None  # whose clock runs, or None
    _since: float = 0.0

    def left(self, player: int) -> float:
        """Seconds that a player has left, 0 once the time is over."""
        passed = self.now() - self._since if player == self.running else 0.0
        return max(0.0, self.seconds[player] - passed)

    def start(self, player: int) -> None:
        """Start a player's clock, and stop the one that runs."""
        if player != self.running:
            self.stop()
            self.running, self._since = player, self.now()

    def stop(self) -> None:
        """Stop the clock that runs."""
        if self.running is not None:
            self.seconds[self.running] = self.left(self.running)
        self.running = None
