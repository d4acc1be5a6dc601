"""Games between players: matches, tournaments, ratings."""

import contextlib
import dataclasses
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from train.api.common.tables import (
    callback_errors,
    check_whole,
    key_of,
    progress_bar,
)
from train.api.players import HasPlayer, MoveFunction, Player, make_players
from train.api.results import PlayedMatch, RatedPool, TournamentResult
from train.arena import match as match_lib
from train.arena import sprt as sprt_lib
from train.arena import tournament as tournament_lib
from train.arena.match import MatchOptions, fill_seats, games_of
from train.arena.match_programs import check_opening, never
from train.arena.openings import Positions, choose_opening
from train.arena.result import MatchResult
from train.arena.tournament import Score
from train.arena.tournament import TournamentMatch as Meeting
from train.config.sprt import parse_sprt
from train.ratings import pool
from train.ratings.pool import MAX_BATCH, Entrant
from train.ratings.pool import PoolProgress as Progress
from train.ratings.results_cache import ResultsCache
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import names_of_runs
from wallgo_jax.game.rules import Rules

Opponent = str | Player | MoveFunction | HasPlayer
"""A player by name, one that is made, or a function (states [B], key) -> slots int32[B]."""
ROUND_ROBIN, ELIMINATION = FORMS = ("round-robin", "double-elimination")
AnyRules = Rules | Mapping[str, Any] | str


def _ignore(_: Any) -> None:
    """Takes what nobody follows."""


class Watch(NamedTuple):
    """Follows games for a caller that shows them and may stop them."""

    on_progress: Callable[[int], None] = _ignore
    """Takes the number of games done."""
    should_stop: Callable[[], bool] = never
    on_begin: Callable[[Any], None] = _ignore
    """Called before each match of a tournament, and with the `Progress` before each of a pool."""
    on_result: Callable[[PlayedMatch], None] = _ignore
    """Called after each match of a tournament or a pool."""
    keeps_finished: bool = False
    """Whether a tournament that stops or fails is returned with the meetings that are over."""


Watcher = Callable[[str, int], AbstractContextManager[Watch]]
"""(title, number of games) -> a context of a `Watch`."""


@contextlib.contextmanager
def _watching(progress: bool | Watcher, title: str, games: int) -> Iterator[Watch]:
    """What follows the games: a bar if there is to be one, or the caller's own."""
    if callable(progress):
        with progress(title, games) as watch:
            yield watch
    else:
        with progress_bar(title, games, is_shown=progress) as on_progress:
            yield Watch(on_progress)


@callback_errors()
def match(
    first: Opponent,
    second: Opponent,
    *others: Opponent,
    games: int = 400,
    rules: AnyRules | None = None,
    batch: int = 400,
    opening_plies: int = 2,
    players_place: bool = False,
    openings: str | Path | Positions | None = None,
    seed: int = 0,
    sprt: str = "",
    progress: bool | Watcher = False,
) -> PlayedMatch:
    """Play a match; the games are those of `python -m train match` with the same options.

    Args:
      first: the player that the result is for.
      second: the player that it meets, with more than two seats at all others if no more are named.
      others: players of further seats.
      games: at least so many, rounded up so that each opening is played in every order of the
        players: half of them with each colour.
      rules: by default those that a trained player has learned, else `wallzero-4stone`.
      batch: games in parallel.
      opening_plies: random plies that all games of an opening start with.
      players_place: the players place all stones; the random plies come after.
      openings: file of positions to start from in place of random plies: the ends of recorded
        games, or diagrams; or the positions.
      seed: random seed.
      sprt: `ELO0,ELO1`: stop once a sequential test of two players has decided.
      progress: show a bar, or what follows the games.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    given = [first, second, *others]
    made = make_players(given, rules)
    played, key = made[0].rules, key_of("match", seed)
    check_whole("match", games=games, batch=batch, opening_plies=opening_plies)
    with usage_errors():
        test = parse_sprt(str(sprt)) if sprt else None
        opening = choose_opening(
            opening_plies, players_place=players_place, path=openings, rules=played
        )
        how = MatchOptions(games, batch, *opening)
        seated = [player.registered for player in fill_seats(made, played)]
    if played.players > 2:
        _check_named_once(given, made)
        if test is not None:
            raise UsageError(
                f"match: sprt is a test of two players, the rules are for {played.players}; leave "
                "it out and read the interval"
            )
    titled = [player.name for player in seated]
    title = (" against " if played.players == 2 else " · ").join(titled)
    with _watching(progress, title, games_of(seated, games)) as watch:
        found = sprt_lib.play_until_decided(
            seated,
            played,
            dataclasses.replace(how, should_stop=watch.should_stop),
            test,
            key=key,
            on_progress=watch.on_progress,
        )
    return PlayedMatch(**vars(found))


def seated_match(players: Sequence[Opponent], **options: Any) -> PlayedMatch:
    """`match` of the players of a list, one for each seat, or two."""
    _check_list("seated_match", players, 2)
    return match(*players, **options)


def _check_named_once(given: Sequence[Opponent], made: Sequence[Player]) -> None:
    """Refuse two different players of one name, who would be one entrant."""
    first: dict[str, Opponent] = {}
    for opponent, player in zip(given, made, strict=True):
        known = first.setdefault(player.name, opponent)
        if known is not opponent and not (isinstance(known, str) and isinstance(opponent, str)):
            raise UsageError(f"match: two different players are named {player.name!r}")


@callback_errors()
def tournament(
    players: Sequence[Opponent],
    *,
    rules: AnyRules | None = None,
    form: Literal["round-robin", "double-elimination"] = "round-robin",
    games: int = 2,
    heats: int = 0,
    opening_plies: int = 2,
    seed: int = 0,
    progress: bool | Watcher = False,
) -> TournamentResult:
    """Play a tournament; the games are those of `python -m train tournament`.

    Args:
      players: at least as many as the rules have seats; in an elimination the strongest first.
      rules: as in `match`.
      form: each player meets each, with more than two seats at every table of different players,
        or is out after two losses.
      games: of a meeting, rounded as in `match`.
      heats: players of a heat before an elimination, whose last start a loss behind; 0 for none.
      opening_plies: as in `match`.
      seed: random seed.
      progress: show a bar, or what follows the games.

    Raises:
      UsageError: as `match`, or a player stands there twice.
      KeyboardInterrupt: Ctrl-C came.
    """
    _check_list("tournament", players, 2)
    made = make_players(list(players), rules)
    played, names = made[0].rules, [player.name for player in made]
    seats, registered = played.players, [player.registered for player in made]
    key_of("tournament", seed)
    check_whole("tournament", games=games, heats=heats, opening_plies=opening_plies)
    if form not in FORMS:
        raise UsageError(f"tournament: form {form!r} is not one of {', '.join(FORMS)}")
    if heats and (form != ELIMINATION or heats < 2):
        raise UsageError("tournament: heats are of 2 or more, and before an elimination")
    if form == ELIMINATION and seats > 2:
        raise UsageError(f"tournament: only a round robin has tables of {seats}")
    with usage_errors():
        how = MatchOptions(games=games, batch=min(games, MAX_BATCH), opening_plies=opening_plies)
        check_opening(played, opening_plies)
        tournament_lib.check_entrants(names, seats)
        match_lib.check_players(registered, played)
    each, orders = games_of(registered[:seats], games), math.factorial(seats)
    total = each * _expected_meetings(len(names), seats, form, heats)
    with _watching(progress, form, total) as watch:
        meetings = _Meetings(dict(zip(names, made, strict=True)), played, how, seed, watch)
        try:
            return _played(form, names, each // orders, heats, meetings)
        except (KeyboardInterrupt, UsageError) as error:
            if not (watch.keeps_finished and meetings.met):
                raise
            rows = tournament_lib.standings(names, meetings.met)
            over = tuple(meetings.met), tuple(meetings.results)
            return TournamentResult(form, played, tuple(rows), *over, stop=error)


def seated_tournament(
    players: Sequence[Opponent], *, games: int = 24, **options: Any
) -> TournamentResult:
    """`tournament` at tables of three or four."""
    return tournament(players, games=games, **options)


class _Meetings:
    """Plays the matches of a tournament one by one, and keeps those that are over; players who meet
    again play other openings."""

    def __init__(
        self,
        players: Mapping[str, Player],
        rules: Rules,
        how: MatchOptions,
        seed: int,
        watch: Watch,
    ) -> None:
        self.rules, self._players, self._how = rules, players, how
        self._seed, self._watch = seed, watch
        self._before: Counter[frozenset[str]] = Counter()  # openings
        self.met: list[Meeting] = []
        self.results: list[PlayedMatch] = []

    def play(self, names: tuple[str, ...], openings: int) -> tuple[Score, ...]:
        """Play a match; KeyboardInterrupt if it is stopped."""
        watch, games = self._watch, openings * math.factorial(len(names))
        if watch.should_stop():
            raise KeyboardInterrupt
        watch.on_begin(names)
        done = sum(len(result.games) for result in self.results)
        found = match_lib.play_meeting(
            [self._players[name].registered for name in names],
            self.rules,
            dataclasses.replace(
                self._how,
                games=games,
                batch=min(games, self._how.batch),
                should_stop=watch.should_stop,
            ),
            seed=self._seed,
            before=self._before[frozenset(names)],
            on_progress=lambda more: watch.on_progress(done + more),
        )
        if len(found.games) < games:
            raise KeyboardInterrupt
        self._before[frozenset(names)] += openings
        self.results.append(PlayedMatch(**vars(found)))
        scores = tournament_lib.scores_of(found)
        self.met.append(Meeting("stopped", len(self.met) + 1, names, scores, None))
        watch.on_result(self.results[-1])
        return scores


def _played(
    form: str, names: list[str], openings: int, heats: int, meetings: _Meetings
) -> TournamentResult:
    """Play all meetings of a form."""
    rules, play = meetings.rules, meetings.play
    if form == ROUND_ROBIN:
        met = tournament_lib.round_robin(names, play, openings=openings, seats=rules.players)
        rows = tournament_lib.standings(names, met)
        return TournamentResult(form, rules, tuple(rows), tuple(met), tuple(meetings.results))
    groups, met, seeds, behind = [], [], names, []
    if heats:
        groups, met = tournament_lib.heats(names, play, size=heats, openings=openings)
        seeds, behind = tournament_lib.seeds_of(groups)
    found = tournament_lib.double_elimination(seeds, play, openings=openings, starts_behind=behind)
    by_place = {row.name: row for row in tournament_lib.standings(names, found.meetings)}
    return TournamentResult(
        form,
        rules,
        tuple(by_place[name] for name in found.places),
        (*met, *found.meetings),
        tuple(meetings.results),
        heats=tuple(map(tuple, groups)),
        elimination=found,
    )


def _expected_meetings(players: int, seats: int, form: str, heats: int) -> int:
    if form == ROUND_ROBIN:
        return math.comb(players, seats)
    return (players * (heats - 1) // 2 if heats else 0) + 2 * players - 2


@callback_errors()
def elo(
    players: Sequence[Opponent | Path],
    *,
    rules: AnyRules | None = None,
    budget: int = 4000,
    games: int = 40,
    simulations: int = 64,
    checkpoints: int = 0,
    zero: str | None = None,
    opening_plies: int = 2,
    seed: int = 0,
    cache: str | Path | None = None,
    progress: bool = False,
) -> RatedPool:
    """Rate players in one pool, as `python -m train elo` does.

    Args:
      players: of the pool, the weakest first; a `Path` is a run's directory and stands for its
        checkpoints.
      rules: as in `match`.
      budget: games in all, those of the cache included.
      games: each time that a pairing is chosen, or a table where the rules have more seats, rounded
        as in `match`.
      simulations: of the checkpoints; 0 for their raw policy.
      checkpoints: most checkpoints of a run, at least 2; 0 for all.
      zero: name of the player whose rating is 0; by default the first one's that is no run's, else
        the mean is 0.
      opening_plies: as in `match`.
      seed: random seed.
      cache: file that keeps games between calls; None keeps none. Players of a name and weights
        are the same in every process, a function in this one alone.
      progress: show a bar.

    Raises:
      UsageError: a player or a number is not allowed, or the budget is too small.
      KeyboardInterrupt: Ctrl-C came; the games of finished pairings are in the cache's file.
    """
    _check_list("elo", players, 1)
    runs = [player for player in players if isinstance(player, Path)]
    singles = [player for player in players if not isinstance(player, Path)]
    given: list[Opponent] = [*singles, *(str(run) for run in runs)]
    made = (
        make_players(given, rules)[: len(singles)]
        if rules is None
        else make_players(singles, rules)
    )
    played = made[0].rules if made else make_players(given[:1], rules)[0].rules
    check_whole("elo", simulations=simulations, checkpoints=checkpoints)
    check_checkpoints(checkpoints)
    entrants = [
        entrant
        for run, name in zip(runs, names_of_runs(runs), strict=True)
        for entrant in pool.entrants_of_run(
            run, played, name=name, simulations=simulations, count=checkpoints
        )
    ]
    own = [Entrant(player.name, player.identity, player.registered) for player in made]
    names = [entrant.name for entrant in (*own, *entrants)]
    if zero is not None and zero not in names:
        raise UsageError(f"elo: zero {zero!r} is not one of {', '.join(names)}")
    with contextlib.ExitStack() as stack:
        folder = "" if cache else stack.enter_context(tempfile.TemporaryDirectory())
        found = rate_pool(
            [*entrants, *own],
            played,
            games=games,
            budget=budget,
            zero=zero if zero is not None else (own[0].name if own else None),
            opening_plies=opening_plies,
            seed=seed,
            cache=Path(cache or Path(folder) / pool.CACHE_FILE),
            progress=progress,
        )
    if found.measured.is_interrupted:
        raise KeyboardInterrupt
    return found


def check_checkpoints(count: int) -> None:
    """Refuse a number of checkpoints that no curve has with a UsageError."""
    if count < 0 or count == 1:
        raise UsageError(f"elo: checkpoints ({count}) must be 0, or at least 2")


def rate_pool(
    entrants: Sequence[Entrant],
    rules: Rules,
    *,
    games: int,
    budget: int,
    zero: str | None,
    opening_plies: int,
    seed: int,
    cache: Path,
    terms: Mapping[str, Any] | None = None,
    progress: bool | Watcher = False,
) -> RatedPool:
    """Rate the entrants of a pool; Ctrl-C ends it with the batches that are over.

    Args:
      entrants: checkpoints by run and age, then the others, the weakest first.
      rules: to play.
      zero: name of the player whose rating is 0; None for the mean.
      cache: file that keeps the games.
      terms: what else decides the games, by names.
      progress: show a bar, or what follows the games.

    The rest is as in `elo`.
    """
    key_of("elo", seed)
    check_whole("elo", games=games, budget=budget, opening_plies=opening_plies)
    with usage_errors():
        MatchOptions(games=games, batch=max(games, 1), opening_plies=opening_plies)
        check_opening(rules, opening_plies)
        players = [entrant.player for entrant in entrants if entrant.player is not None]
        match_lib.check_players(players, rules)
    settings = pool.settings_of(rules, opening_plies=opening_plies, seed=seed)
    results, before = ResultsCache(cache, settings | dict(terms or {})), 0
    with _watching(progress, "elo", budget) as watch:

        def begin(found: Progress) -> None:
            nonlocal before
            before = found.games
            watch.on_progress(before)
            watch.on_begin(found)

        play_batch = pool.make_play(
            rules,
            games=games,
            opening_plies=opening_plies,
            seed=seed,
            on_games=lambda done: watch.on_progress(before + done),
        )

        def play(seated: Sequence[Entrant], number: int) -> MatchResult:
            result = play_batch(seated, number)
            watch.on_result(PlayedMatch(**vars(result)))
            return result

        return RatedPool(
            pool.measure(
                entrants,
                results,
                play,
                seats=rules.players,
                games=games,
                budget=budget,
                anchor=zero,
                on_progress=begin,
            )
        )


def _check_list(what: str, players: Any, least: int) -> None:
    if isinstance(players, str) or not isinstance(players, Sequence):
        raise UsageError(f"{what}: players must be a list, not {players!r}")
    if len(players) < least:
        raise UsageError(f"{what}: {len(players)} players are too few")
