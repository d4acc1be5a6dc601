"""Players rated in one pool."""

import functools
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.api.checks import callback_errors, check_list, check_whole, key_of
from train.api.configs import AnyRules
from train.api.players import Opponent, make_players, rules_for
from train.api.progress import Follower, Shown, follow
from train.api.results import RatedPool
from train.arena import match as match_lib
from train.arena.host_match import is_external
from train.arena.match import MatchOptions
from train.arena.match_programs import check_opening
from train.arena.openings import OpeningOptions
from train.arena.report import forfeit_lines
from train.arena.result import Z_95, MatchResult
from train.players import registry
from train.players.external import MOVE_SECONDS
from train.ratings import pool
from train.ratings.pool import Entrant, PoolProgress
from train.ratings.results_cache import ResultsCache
from train.runtime.display import Display
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import names_of_runs
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.rules import Rules

MINUTES = 10.0
MEAN = ""
"""The `zero` of a pool whose mean rating is 0."""


@callback_errors()
def elo(
    players: Sequence[Opponent | Path | Entrant],
    *,
    rules: AnyRules | None = None,
    budget: int | None = None,
    minutes: float = MINUTES,
    games: int = 40,
    simulations: int = 64,
    checkpoints: int = 0,
    zero: str | None = None,
    opening_plies: int = 2,
    seed: int = 0,
    cache: str | Path | None = None,
    transfer: bool = False,
    progress: Shown = False,
) -> RatedPool:
    """Rate players in one pool, as `python -m train elo` does.

    Args:
      players: of the pool, the weakest first; a `Path` is a run's directory and stands for its
        checkpoints, an `Entrant` is one as it is.
      rules: as in `match`.
      budget: games in all, those of the cache included; by default, as `minutes` have room for.
      minutes: to play for, more where the games that connect all players take longer. Each call
        plays on for as long.
      games: each time that a pairing is chosen, or a table where the rules have more seats, rounded
        as in `match`.
      simulations: of the checkpoints; 0 for their raw policy.
      checkpoints: most checkpoints of a run, at least 2; 0 for all.
      zero: name of the player whose rating is 0; by default the first one's that is no run's, else
        the mean is 0, as with an empty name.
      opening_plies: as in `match`.
      seed: random seed.
      cache: file that keeps games between calls; None keeps none. Players of a name and weights
        are the same in every process, a function in this one alone.
      transfer: let networks that are named play rules that they have not learned.
      progress: show a bar with the newest rating.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
      KeyboardInterrupt: Ctrl-C came; the games of finished pairings are in the cache's file.
    """
    check_list("elo", players, 1)
    key_of("elo", seed)
    check_whole("elo", games=games, budget=budget or 0, opening_plies=opening_plies)
    check_whole("elo", 0, MAX_SIMULATIONS, simulations=simulations)
    check_whole("elo", 2, checkpoints=checkpoints or 2)
    if not 0 < minutes < math.inf:
        raise UsageError(f"elo: minutes ({minutes}) must be above 0")
    named = [each for each in players if not isinstance(each, Path | Entrant)]
    named += [str(each) for each in players if isinstance(each, Path)]
    played = rules_for(named, rules)
    entrants = _entrants(players, played, simulations, checkpoints, transfer)
    zero = _zero_of(entrants, zero)
    how: dict[str, Any] = {"games": games, "opening_plies": opening_plies}
    with usage_errors():
        MatchOptions(games, max(games, 1), OpeningOptions(opening_plies))
        check_opening(played, opening_plies)
        match_lib.check_players([each.player for each in entrants if each.player], played)
    terms = pool.settings_of(played, opening_plies=opening_plies, seed=seed) | _seconds_of(entrants)
    answer = "finished pairings are kept, the games of the one being played are not"
    with (
        tempfile.TemporaryDirectory() as folder,
        follow(progress, "elo", budget or 0, answer=answer) as work,
    ):
        batches = _Batches(work, budget, 60 * minutes, played, seed=seed, **how)
        measured = pool.measure(
            entrants,
            ResultsCache(Path(cache or Path(folder) / pool.CACHE_FILE), terms),
            batches.play,
            seats=played.players,
            games=games,
            budget=budget,
            is_over=batches.is_over,
            anchor=zero or None,
            on_progress=batches.begin,
        )
    if measured.is_interrupted and not isinstance(progress, Display):
        raise KeyboardInterrupt
    settings = {"seed": seed, "simulations": simulations, "opening_plies": opening_plies}
    length = {"minutes": minutes} if budget is None else {}
    settings |= {"budget": budget, "games_a_pairing": games} | length
    return RatedPool(measured, played, settings)


def _zero_of(entrants: Sequence[Entrant], zero: str | None) -> str:
    """The name of the player whose rating is 0, or `MEAN`."""
    if zero is None:
        return next((entrant.name for entrant in entrants if entrant.run is None), MEAN)
    names = [entrant.name for entrant in entrants]
    if zero and zero not in names:
        raise UsageError(f"elo: zero {zero!r} is not one of {', '.join(names)}")
    return zero


def _entrants(
    players: Sequence[Opponent | Path | Entrant],
    rules: Rules,
    simulations: int,
    checkpoints: int,
    transfer: bool,
) -> list[Entrant]:
    """Those of the runs, then the others, each in the order that they are given."""
    runs = [player for player in players if isinstance(player, Path)]
    singles = [each for each in players if not isinstance(each, Path | Entrant)]
    make = functools.partial(registry.make_player, transfer=transfer)
    entrants = [
        entrant
        for run, name in zip(runs, names_of_runs(runs), strict=True)
        for entrant in pool.entrants_of_run(
            run, rules, name=name, simulations=simulations, count=checkpoints, make_player=make
        )
    ]
    entrants += [each for each in players if isinstance(each, Entrant)]
    others = make_players(singles, rules, transfer=transfer) if singles else []
    return entrants + [Entrant(each.name, each.identity, each.registered) for each in others]


def _seconds_of(entrants: Sequence[Entrant]) -> dict[str, Any]:
    """The time of a program's moves, which decides games, where it is not the default. Games of
    pools without a program do not depend on it."""
    programs = [each.player for each in entrants if each.player and is_external(each.player)]
    seconds = {program.act.seconds for program in programs} - {MOVE_SECONDS}  # type: ignore
    return {"move_seconds": seconds.pop()} if seconds else {}


class _Batches:
    """Plays a pool's batches, says how long they will take, and shows games and the newest
    checkpoint's rating so far: live on a terminal, elsewhere in ten lines."""

    def __init__(
        self, work: Follower, budget: int | None, seconds: float, rules: Rules, **how: int
    ) -> None:
        self._work, self._budget, self._seconds, self._games = work, budget, seconds, how["games"]
        self._began, self._played, self._before, self._said = time.monotonic(), 0, 0, -1
        self._play = pool.make_play(rules, **how, on_games=self._show)

    def begin(self, progress: PoolProgress) -> None:
        """Show the state before a batch."""
        games, task, say = progress.games, self._work.task, self._work.display.say
        task(games)
        figures = _newest(progress) if progress.ratings else "connecting all players"
        task.keep(figures)
        seconds, total = self._rest(progress)
        task.compile(total)
        if self._played == 1:
            say(f"about {max(1, round(seconds / 60))} min more, about {total - games} games")
        elif not self._played and self._budget is None:
            say(f"about {self._seconds / 60:g} min; --minutes or --budget GAMES changes that")
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
