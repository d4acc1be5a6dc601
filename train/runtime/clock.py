"""Estimates how long a run or a match will still take."""

import time
from collections import deque
from collections.abc import Callable

_RECENT = 20  # iterations or matches whose mean stands for those to come

Now = Callable[[], float]


class RunClock:
    """Elapsed and remaining time of a run.

    Remaining are the iterations, saving included, and the games of all matches, those at the end
    included, once the first match has told how long a game takes. The time of the compiler is no
    part of either, since it does not come again.
    """

    def __init__(
        self,
        total: int,
        *,
        games_after: Callable[[int], int] = lambda done: 0,
        before: float = 0.0,
        now: Now = time.monotonic,
    ) -> None:
        """Start the clock.

        Args:
          total: iterations of the run.
          games_after: games of the matches that follow the figures of the iteration with that
            number.
          before: seconds that earlier starts of the run have taken.
          now: seconds of a clock that never goes back.
        """
        self._total, self._games_after, self._now = total, games_after, now
        self._started = now() - before
        self._iterations: deque[float] = deque(maxlen=_RECENT)
        self._matches: deque[tuple[int, float]] = deque(maxlen=_RECENT)
        self._played = 0  # games since the figures of the newest iteration
        self._done, self._noted = 0, now()

    def elapsed(self) -> float:
        """Seconds since the run began, those between its starts left out."""
        return self._now() - self._started

    def note_iteration(self, done: int, seconds: float) -> None:
        """Note the time of an iteration, compilation and matches left out."""
        self._iterations.append(seconds)
        self._done, self._noted, self._played = done, self._now(), 0

    def note_match(self, games: int, seconds: float) -> None:
        """Note the games of a match and its time, compilation left out."""
        self._matches.append((games, seconds))
        self._played += games

    def remaining(self, *, playing: tuple[int, float] = (0, 0.0)) -> float | None:
        """Seconds to the end of the run; None before the first iteration has ended, and after the
        last one where no match has told its time.

        Args:
          playing: games that the match under way has finished, and its seconds so far.
        """
        left = self._total - self._done
        games = max(0, self._games_after(self._done) - self._played - playing[0])
        played, took = (sum(x) for x in zip(*self._matches, playing, strict=True))
        if (left and not self._iterations) or (not left and games and not played):
            return None
        seconds = 0.0
        if left:
            # An iteration under way counts as far as it has come.
            mean = sum(self._iterations) / len(self._iterations)
            seconds += left * mean - min(self._now() - self._noted, mean)
        return seconds + (games * took / played if played else 0.0)


class TaskClock:
    """Remaining time of a task of known length, such as the games of a match.

    Attributes:
      is_compiling: whether nothing has been done since the last compilation began.
    """

    def __init__(self, total: int, *, now: Now = time.monotonic) -> None:
        self.total, self.done = total, 0
        self.is_compiling = True
        self._first: int | None = None
        self._now, self._active, self._since = now, 0.0, now()

    def compile(self) -> None:
        """Note that the compiler may be at work from here on."""
        self._active, self.is_compiling = self.seconds(), True

    def note(self, done: int) -> None:
        """Note what is done; the compiler is not at work any more."""
        if self.is_compiling:
            self.is_compiling, self._since = False, self._now()
        if self._first is None:
            self._first = done
        self.done = done

    def seconds(self) -> float:
        """Seconds so far, those of the compiler left out."""
        return self._active + (0.0 if self.is_compiling else self._now() - self._since)

    def remaining(self) -> float | None:
        """Seconds to the end at the speed so far; None before anything is done."""
        new = self.done - (self._first or 0)
        if new <= 0:
            return None
        return self.seconds() / new * (self.total - self.done)


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds, such as 1:02:03; unknown ones as dashes."""
    if seconds is None:
        return "-:--:--"
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
