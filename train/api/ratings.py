"""Players rated in one pool."""

import functools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.api.arguments import EloArguments, checked, takes, valid
from train.api.players import AnyPlayer, players_of, rules_for
from train.api.results import RatedPool
from train.arena import match as match_lib
from train.arena.host_match import is_external
from train.arena.match_programs import check_opening
from train.arena.report import forfeit_lines
from train.arena.result import Z_95, MatchResult
from train.players import registry
from train.players.names import MOVE_SECONDS
from train.ratings import pool
from train.ratings.pool import Entrant, PoolProgress
from train.ratings.results_cache import ResultsCache
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import names_of_runs
from train.runtime.host import callback_errors
from train.runtime.interrupts import Follower, Shown, follow
from wallgo_jax.game.rules import Rules

MEAN = ""
"""The `zero` of a pool whose mean rating is 0."""


@takes(EloArguments)
@callback_errors()
def elo(
    players: Sequence[AnyPlayer | Path | Entrant], *, progress: Shown = False, **options: Any
) -> RatedPool:
    """Rate players in one pool, as `python -m train elo` does.

    Args:
      players: of the pool, the weakest first; a `Path` is a run's directory and stands for its
        checkpoints, an `Entrant` is one as it is.
      progress: show a bar with the newest rating.
      options: of `train.api.arguments.EloArguments`: `games`, `minutes`, `budget`, `simulations`,
        `checkpoints`, `zero`, `cache`, and, as in `match`, `opening_plies`, `rules`, `seed`,
        `config`, `transfer` and `move_seconds`; `python -m train elo --help` says what each is. In
        a cache players of a name and weights are the same in every process, a function in this one
        alone.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
      KeyboardInterrupt: Ctrl-C came; the games of finished pairings are in the cache's file.
    """
    how, players = checked(EloArguments, options), valid(list[Any], players=players)
    named = [each for each in players if not isinstance(each, Path | Entrant)]
    rules = rules_for(
        [*named, *(str(each) for each in players if isinstance(each, Path))], how.rules
    )
    entrants = _entrants(players, rules, how)
    zero = _zero_of(entrants, how.zero)
    check_opening(rules, how.opening_plies)
    match_lib.check_players([each.player for each in entrants if each.player], rules)
    terms = pool.settings_of(rules, opening_plies=how.opening_plies, seed=how.seed)
    answer = "finished pairings are kept, the games of the one being played are not"
    with (
        tempfile.TemporaryDirectory() as folder,
        follow(progress, "elo", how.budget or 0, answer=answer) as work,
    ):
        batches = _Batches(work, rules, how)
        cache = how.cache or Path(folder) / pool.CACHE_FILE
        measured = pool.measure(
            entrants,
            ResultsCache(cache, terms | _seconds_of(entrants)),
            batches.play,
            seats=rules.players,
            games=how.games,
            budget=how.budget,
            is_over=batches.is_over,
            anchor=zero or None,
            on_progress=batches.begin,
        )
    if measured.is_interrupted and not isinstance(progress, Display):
        raise KeyboardInterrupt
    settings = {
        key: getattr(how, key) for key in ("seed", "simulations", "opening_plies", "budget")
    }
    settings |= {"games_a_pairing": how.games}
    settings |= {"minutes": how.minutes} if how.budget is None else {}
    return RatedPool(measured, rules, settings, how.cache)


def _zero_of(entrants: Sequence[Entrant], zero: str | None) -> str:
    """The name of the player whose rating is 0, or `MEAN`."""
    if zero is None:
        return next((entrant.name for entrant in entrants if entrant.run is None), MEAN)
    names = [entrant.name for entrant in entrants]
    if zero and zero not in names:
        raise UsageError(f"elo: zero {zero!r} is not one of {', '.join(names)}")
    return zero


def _entrants(
    players: Sequence[AnyPlayer | Path | Entrant], rules: Rules, how: EloArguments
) -> list[Entrant]:
    """Those of the runs, then the others, each in the order that they are given."""
    runs = [player for player in players if isinstance(player, Path)]
    singles = [each for each in players if not isinstance(each, Path | Entrant)]
    make = functools.partial(registry.make_player, transfer=how.transfer)
    sizes: dict[str, Any] = {"simulations": how.simulations, "count": how.checkpoints}
    entrants = [
        entrant
        for run, name in zip(runs, names_of_runs(runs), strict=True)
        for entrant in pool.entrants_of_run(run, rules, name=name, make_player=make, **sizes)
    ]
    entrants += [each for each in players if isinstance(each, Entrant)]
    others = players_of(singles, how, rules)
    return entrants + [Entrant(each.name, each.identity, each.registered) for each in others]


def _seconds_of(entrants: Sequence[Entrant]) -> dict[str, Any]:
    """The time of a program's moves, which decides games, where it is not the default. Games of
    pools without a program do not depend on it."""
    programs = [each.player for each in entrants if each.player and is_external(each.player)]
    seconds = sorted({program.act.seconds for program in programs} - {MOVE_SECONDS})  # type: ignore
    return {"move_seconds": seconds[0] if len(seconds) == 1 else seconds} if seconds else {}


class _Batches:
    """Plays a pool's batches, says how long they will take, and shows games and the newest
    checkpoint's rating so far: live on a terminal, elsewhere in ten lines."""

    def __init__(self, work: Follower, rules: Rules, how: EloArguments) -> None:
        self._work, self._budget, self._seconds = work, how.budget, 60 * how.minutes
        self._games, self._began = how.games, time.monotonic()
        self._played, self._before, self._said = 0, 0, -1
        sizes = {"games": how.games, "opening_plies": how.opening_plies, "seed": how.seed}
        self._play = pool.make_play(rules, **sizes, on_games=self._show)

    def begin(self, progress: PoolProgress) -> None:
        """Show the state before a batch."""
        games, task, say = progress.games, self._work.task, self._work.display.say
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
        """Play a batch, and tell of games that were lost without the rules."""
        result = self._play(seated, number)
        self._played += 1
        for line in forfeit_lines(result):
            self._work.display.say(line)
        return result

    def _paces(self) -> tuple[float, float]:
        """Mean seconds of a batch's games, and of compiling before them."""
        took, playing = time.monotonic() - self._began, self._work.task.seconds
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
