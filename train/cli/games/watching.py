"""How commands show games and stop them: a bar, and an answer to Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from train.runtime.interrupts import StopRequest, interrupts

if TYPE_CHECKING:
    from train.api.games import PlayedMatch, Watch, Watcher
    from train.ratings.pool import PoolProgress as Progress
    from train.runtime.display import Display


class Watching:
    """A bar for games, whose context gives the interface what follows them.

    Args:
      display: the console.
      kept: what is over and kept where a signal stops the games, in words.
      line: a line that is printed for each match of a tournament.
      on_result: called with each match of a tournament, and whether it is the first.
    """

    def __init__(
        self,
        display: Display,
        kept: str,
        *,
        line: Callable[..., str] | None = None,
        on_result: Callable[[PlayedMatch, bool], None] = lambda result, is_first: None,
    ) -> None:
        self._display, self._kept = display, kept
        self._line, self._on_result = line, on_result
        self._request: StopRequest | None = None
        self.total = 0  # games

    @property
    def is_stopped(self) -> bool:
        """Whether a signal came."""
        return self._request is not None and self._request()

    @contextlib.contextmanager
    def __call__(self, title: str, games: int) -> Iterator[Watch]:
        """Show a bar of this many games."""
        from train.api.games import Watch

        display, began, count, self.total = self._display, 0.0, 0, games
        with (
            display,
            display.match(title, games) as task,
            interrupts(f"{self._kept} are kept", show=display.note) as request,
        ):
            self._request = request

            def on_progress(done: int) -> None:
                if done > 0 and self._line is None:
                    request.keeps_work()
                task(done)

            def begin(_: Any) -> None:
                nonlocal began
                began = task.seconds
                task.compile()

            def note(result: PlayedMatch) -> None:
                nonlocal count
                if self._line is not None:
                    display.say(self._line(result, seconds=task.seconds - began))
                self._on_result(result, count == 0)
                count += 1
                request.keeps_work()

            yield Watch(on_progress, request, begin, note, keeps_finished=True)


def watch_pool(display: Display) -> Watcher:
    """Shows the games of a pool and the newest checkpoint's rating so far: live on a terminal,
    elsewhere in ten lines."""

    @contextlib.contextmanager
    def watching(title: str, budget: int) -> Iterator[Watch]:
        from train.api.games import Watch
        from train.arena.report import forfeit_lines

        # The pool takes the interrupt; each finished pairing is in the cache already.
        kept = "finished pairings are kept, the games of the one being played are not"
        with display, display.task(title, budget, "games") as task, interrupts(kept):
            said = -1

            def begin(progress: Progress) -> None:
                nonlocal said
                is_rated = progress.ratings is not None
                figures = _newest(progress) if is_rated else "connecting all players"
                task.keep(figures)
                task.compile()
                tenth = 10 * progress.games // budget
                if not display.is_live and tenth > said:
                    said = tenth
                    print(f"{progress.games} of {budget} games: {figures}", file=sys.stderr)

            def note(result: PlayedMatch) -> None:
                for line in forfeit_lines(result):
                    display.say(line)

            yield Watch(task, on_begin=begin, on_result=note)

    return watching


def _newest(progress: Progress) -> str:
    """The last checkpoint's rating, or the best player's where there is no run."""
    from train.arena.result import Z_95

    ratings = progress.ratings
    assert ratings is not None
    places = [place for place, name in enumerate(ratings.names) if name in progress.newest]
    place = places[-1] if places else int(ratings.elo.argmax())
    error = Z_95 * float(ratings.covariance[place, place]) ** 0.5
    return f"{ratings.names[place]} at {ratings.elo[place]:.0f} ± {error:.0f}"
