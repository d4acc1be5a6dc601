"""Plays the batches of a pool, and shows how many are left."""

import time
from collections.abc import Sequence

from train.arena.figures import Z_95
from train.arena.report import forfeit_lines
from train.arena.result import MatchResult
from train.ratings import pool
from train.ratings.pool import Entrant, PoolProgress
from train.runtime.interrupts import Follower
from wallgo_jax.game.rules import Rules


class Batches:
    """Plays a pool's batches, says how long they will take, and shows games and the newest
    checkpoint's rating so far: live on a terminal, elsewhere in ten lines."""

    def __init__(
        self,
        work: Follower,
        rules: Rules,
        *,
        games: int,
        budget: int | None,
        minutes: float,
        opening_plies: int,
        seed: int,
    ) -> None:
        """Begin the time; the arguments are those of `train.elo`."""
        self._work = work
        self._games = games
        self._budget = budget
        self._seconds = 60 * minutes
        self._began = time.monotonic()
        self._played = 0
        self._before = 0
        self._said = -1
        self._play = pool.make_play(
            rules, games=games, opening_plies=opening_plies, seed=seed, on_games=self._show
        )

    def begin(self, progress: PoolProgress) -> None:
        """Show the state before a batch."""
        games = progress.games
        task = self._work.task
        say = self._work.display.say
        self._before = games
        task(games)
        figures = _newest(progress) if progress.ratings else "connecting all players"
        task.keep(figures)
        seconds, total = self._rest(progress)
        task.compile(total)
        if self._played == 1:
            say(f"about {max(1, round(seconds / 60))} min more, about {total - games} games")
        elif not self._played and self._budget is None:
            say(f"about {self._seconds / 60:g} min; other minutes, or a budget, change that")
            if progress.unconnected:
                least = f"at least the {progress.unconnected} games that connect all players"
                say(f"{least}; the first {self._games} tell how long they take")
        elif not self._played:
            say(f"{total - games} games; the first {self._games} tell how long they take")
        tenth = 10 * games // max(total, 1)
        if not self._work.display.is_live and self._played and tenth > self._said:
            self._said = tenth
            say(f"{games} of {total} games: {figures}")

    def is_over(self) -> bool:
        """Whether the time is over, where it limits the games."""
        took, (play, _) = time.monotonic() - self._began, self._paces()
        return self._budget is None and self._played > 0 and took + play > self._seconds

    def play(self, seated: Sequence[Entrant], number: int) -> MatchResult:
        """Play a batch, and print games lost by forfeit."""
        result = self._play(seated, number)
        self._played += 1
        for line in forfeit_lines(result):
            self._work.display.say(line)
        return result

    def _paces(self) -> tuple[float, float]:
        """Mean seconds of a batch's games, and of compiling before them."""
        took = time.monotonic() - self._began
        playing = self._work.task.seconds
        return playing / max(1, self._played), (took - playing) / max(1, self._played)

    def _rest(self, progress: PoolProgress) -> tuple[float, int]:
        """The seconds that are left, and the games in all, as far as the batches so far tell."""
        play, build = self._paces()
        needed = progress.games + progress.unconnected
        connect = progress.unconnected / self._games * (play + build)
        if self._budget is not None:
            others = max(0, self._budget - needed) / self._games
            return connect + others * play, self._budget
        left = max(0.0, self._seconds - (time.monotonic() - self._began) - connect)
        return connect + left, needed + (int(left / play) if play else 0) * self._games

    def _show(self, done: int) -> None:
        self._work.task(self._before + done)


def _newest(progress: PoolProgress) -> str:
    """The last checkpoint's rating, or the best player's where there is no run."""
    ratings = progress.ratings
    assert ratings is not None
    places = [place for place, name in enumerate(ratings.names) if name in progress.newest]
    place = places[-1] if places else int(ratings.elo.argmax())
    error = Z_95 * float(ratings.covariance[place, place]) ** 0.5
    return f"{ratings.names[place]} at {ratings.elo[place]:.0f} ± {error:.0f}"
