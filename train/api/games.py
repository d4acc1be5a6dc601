"""Games between players: matches and tournaments."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from train.api.arguments import (
    ELIMINATION,
    ROUND_ROBIN,
    MatchArguments,
    Players,
    TournamentArguments,
    checked,
    takes,
    valid,
)
from train.api.players import AnyPlayer, Player, players_of
from train.api.results import PlayedMatch, Series, TournamentResult
from train.arena import match as match_lib
from train.arena import report
from train.arena import sprt as sprt_lib
from train.arena import tournament as tournament_lib
from train.arena.match import MatchOptions, fill_seats, games_of
from train.arena.match_openings import OpeningOptions, choose_opening
from train.arena.match_programs import check_opening
from train.arena.report import read_matches
from train.arena.tournament import Score, TournamentMatch
from train.config.sprt import parse_sprt
from train.ratings.pool import MAX_BATCH
from train.runtime.display import Display
from train.runtime.errors import UsageError, check_two_players, usage_errors
from train.runtime.files import check_writable
from train.runtime.host import callback_errors
from train.runtime.interrupts import Follower, Shown, follow
from train.runtime.showing import sparing
from wallgo_jax.game.rules import Rules


@takes(MatchArguments)
@callback_errors()
def match(
    first: AnyPlayer, second: AnyPlayer, *others: AnyPlayer, progress: Shown = False, **options: Any
) -> PlayedMatch:
    """Play a match; the games are those of `python -m train match` with the same options.

    Args:
      first: the player that the result is for.
      second: the player that it meets, with more than two seats at all others if no more are named.
      others: players of further seats.
      progress: show a bar.
      options: of `train.api.arguments.MatchArguments`: `games`, `batch`, `sprt`, `opening_plies`,
        `players_place`, `openings`, `records`, `rules`, `seed`, `config`, `transfer` and
        `move_seconds`; `python -m train match --help` says what each is.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    how, given = checked(MatchArguments, options), [first, second, *others]
    entrants = players_of(given, how)
    rules = entrants[0].rules
    with usage_errors():
        test = parse_sprt(how.sprt) if how.sprt else None
        opening = choose_opening(
            how.opening_plies, players_place=how.players_place, path=how.openings, rules=rules
        )
        seated = [player.registered for player in fill_seats(entrants, rules)]
        is_drawn = opening.positions is not None and not opening.positions.has_games
        if how.records is not None and is_drawn:
            raise ValueError("match: records need openings of games: a diagram has no plies")
    if test is not None:
        check_two_players(rules, "match: sprt")
    if rules.players > 2:
        _check_named_once(given, entrants)
    if how.records is not None:
        check_writable(Path(how.records))
    title = (" against " if rules.players == 2 else " · ").join(each.name for each in seated)
    total = games_of(seated, how.games)
    with follow(progress, title, total, answer="the games that are over are kept") as work:
        result = sprt_lib.play_in_rounds(
            seated,
            rules,
            MatchOptions(how.games, how.batch, opening, should_stop=work.should_stop),
            test,
            key=jax.random.key(how.seed),
            on_progress=work,
        )
    path = how.openings
    played = PlayedMatch(
        **vars(result),
        settings={
            "seed": how.seed,
            "opening_plies": opening.plies,
            "players_place": opening.players_place,
            "openings": str(path) if isinstance(path, str | Path) else None,
        },
        test=test,
        caption=f"seed {how.seed} · {opening.text}{_rounding(how.games, total)}",
        total=total,
        is_interrupted=work.should_stop(),
    )
    if how.records is not None:
        with sparing(how.records, "the result stands"):
            played.write(how.records)
    return played


def _rounding(games: int, total: int) -> str:
    """That a match has more games than were asked for, if it has."""
    if games == total:
        return ""
    return f" · {total} games, not {games}: each opening is played in every seating"


def seated_match(players: Sequence[AnyPlayer], **options: Any) -> PlayedMatch:
    """`match` of the players of a list, one for each seat, or two."""
    return match(*valid(Players, players=players), **options)


def series(files: Sequence[str | Path]) -> Series:
    """Read the matches that record files keep, such as the games that a person saved on the page.

    A series of WallZero's paper is a person's games against each level with each colour.

    Args:
      files: record files; games that are not over do not count.

    Raises:
      UsageError: a file cannot be read, or no game is over.
    """
    matches, unfinished = read_matches([Path(file) for file in files])
    if not matches:
        raise UsageError(f"series: none of {unfinished} games is over")
    return Series(tuple(PlayedMatch(**vars(match)) for match in matches), unfinished)


def _check_named_once(given: Sequence[AnyPlayer], entrants: Sequence[Player]) -> None:
    """Refuse two different players of one name, who would be one entrant."""
    first: dict[str, AnyPlayer] = {}
    for opponent, player in zip(given, entrants, strict=True):
        known = first.setdefault(player.name, opponent)
        if known is not opponent and not (isinstance(known, str) and isinstance(opponent, str)):
            raise UsageError(f"match: two different players are named {player.name!r}")


@takes(TournamentArguments)
@callback_errors()
def tournament(
    players: Sequence[AnyPlayer], *, progress: Shown = False, **options: Any
) -> TournamentResult:
    """Play a tournament; the games are those of `python -m train tournament`.

    Args:
      players: at least as many as the rules have seats; in an elimination the strongest first.
      progress: show a bar, and a line for each meeting.
      options: of `train.api.arguments.TournamentArguments`: `form`, `games`, `heats`, `records`,
        and, as in `match`, `opening_plies`, `rules`, `seed`, `config`, `transfer` and
        `move_seconds`; `python -m train tournament --help` says what each is.

    Raises:
      UsageError: as `match`, or a player stands there twice.
      KeyboardInterrupt: Ctrl-C came.
    """
    how = checked(TournamentArguments, options)
    entrants = players_of(valid(Players, players=players), how)
    rules, names = entrants[0].rules, [player.name for player in entrants]
    seats, registered = rules.players, [player.registered for player in entrants]
    with usage_errors("tournament"):
        if how.heats == 1 or (how.heats and how.form != ELIMINATION):
            raise ValueError("heats are of 2 or more, before an elimination")
        if how.form == ELIMINATION and seats > 2:
            raise ValueError(f"only a round robin has tables of {seats}")
        check_opening(rules, how.opening_plies)
        tournament_lib.check_entrants(names, seats)
        match_lib.check_players(registered, rules)
    if how.records is not None:
        check_writable(Path(how.records))
    each, size = games_of(registered[:seats], how.games), how.heats
    expected = math.comb(len(names), seats)
    if how.form == ELIMINATION:
        expected = (len(names) * (size - 1) // 2 if size else 0) + 2 * len(names) - 2
    result = TournamentResult(
        how.form,
        rules,
        settings={
            "seed": how.seed,
            "games_a_meeting": how.games,
            "heats": size,
            "opening_plies": how.opening_plies,
        },
        total=each * expected,
    )
    answer = "the meetings that are over are kept"
    with follow(progress, how.form, result.total, answer=answer) as work:
        meetings, stop = _Meetings(dict(zip(names, entrants, strict=True)), rules, how, work), None
        try:
            places = _play_form(how, names, each // math.factorial(seats), meetings)
        except (KeyboardInterrupt, UsageError) as error:
            if not (isinstance(progress, Display) and meetings.met):
                raise
            stop, places = error, {"standings": tournament_lib.standings(names, meetings.met)}
    over = {"meetings": tuple(meetings.met), "tables": tuple(meetings.results)}
    return dataclasses.replace(result, **over | places, stop=stop)


def seated_tournament(
    players: Sequence[AnyPlayer], *, games: int = 24, **options: Any
) -> TournamentResult:
    """`tournament` at tables of three or four."""
    return tournament(players, games=games, **options)


@dataclasses.dataclass
class _Meetings:
    """Plays the matches of a tournament one by one, and keeps those that are over; players who meet
    again play other openings."""

    players: Mapping[str, Player]
    rules: Rules
    how: TournamentArguments
    work: Follower
    before: Counter[frozenset[str]] = dataclasses.field(default_factory=Counter)  # openings
    met: list[TournamentMatch] = dataclasses.field(default_factory=list)
    results: list[PlayedMatch] = dataclasses.field(default_factory=list)

    def play(self, names: tuple[str, ...], openings: int) -> tuple[Score, ...]:
        """Play a match; KeyboardInterrupt if it is stopped."""
        work, games = self.work, openings * math.factorial(len(names))
        if work.should_stop():
            raise KeyboardInterrupt
        began, done = work.task.seconds, sum(len(result.games) for result in self.results)
        work.task.compile()
        opening = OpeningOptions(self.how.opening_plies)
        played = match_lib.play_meeting(
            [self.players[name].registered for name in names],
            self.rules,
            MatchOptions(games, min(games, MAX_BATCH), opening, should_stop=work.should_stop),
            seed=self.how.seed,
            before=self.before[frozenset(names)],
            on_progress=lambda more: work.task(done + more),
        )
        if len(played.games) < games:
            raise KeyboardInterrupt
        self.before[frozenset(names)] += openings
        result = PlayedMatch(**vars(played))
        if self.how.records is not None:
            with sparing(
                self.how.records, "the tournament goes on, and some games are missing there"
            ):
                result.write(self.how.records, append=bool(self.results))
        self.results.append(result)
        scores = tournament_lib.scores_of(played)
        self.met.append(TournamentMatch("stopped", len(self.met) + 1, names, scores, None))
        work.display.say(report.match_line(result, seconds=work.task.seconds - began))
        work.should_stop.keeps_work()
        return scores


def _play_form(
    how: TournamentArguments, names: list[str], openings: int, meetings: _Meetings
) -> dict[str, Any]:
    """Play all meetings of a form; returns what its result says of them."""
    rules, play = meetings.rules, meetings.play
    if how.form == ROUND_ROBIN:
        met = tournament_lib.round_robin(names, play, openings=openings, seats=rules.players)
        return {"standings": tournament_lib.standings(names, met), "meetings": tuple(met)}
    groups, met, seeds, behind = [], [], names, []
    if how.heats:
        groups, met = tournament_lib.heats(names, play, size=how.heats, openings=openings)
        seeds, behind = tournament_lib.seeds_of(groups)
    bracket = tournament_lib.double_elimination(
        seeds, play, openings=openings, starts_behind=behind
    )
    by_place = {row.name: row for row in tournament_lib.standings(names, bracket.meetings)}
    return {
        "standings": [by_place[name] for name in bracket.places],
        "meetings": (*met, *bracket.meetings),
        "heats": groups,
        "elimination": bracket,
    }
