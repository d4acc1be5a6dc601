"""Games between players: matches and tournaments."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from train.api.checks import callback_errors, check_list, check_whole, key_of
from train.api.configs import AnyRules
from train.api.players import Opponent, Player, make_players
from train.api.progress import Follower, Shown, follow
from train.api.results import FORMS, PlayedMatch, Series, TournamentResult
from train.arena import match as match_lib
from train.arena import report
from train.arena import sprt as sprt_lib
from train.arena import tournament as tournament_lib
from train.arena.match import MatchOptions, fill_seats, games_of
from train.arena.match_programs import check_opening
from train.arena.openings import OpeningOptions, Positions, choose_opening
from train.arena.report import read_matches
from train.arena.tournament import Score, TournamentMatch
from train.config.sprt import parse_sprt
from train.ratings.pool import MAX_BATCH
from train.runtime.display import Display
from train.runtime.errors import UsageError, usage_errors
from wallgo_jax.game.rules import Rules

ROUND_ROBIN, ELIMINATION = FORMS


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
    progress: Shown = False,
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
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    given = [first, second, *others]
    entrants = make_players(given, rules)
    played, key = entrants[0].rules, key_of("match", seed)
    check_whole("match", games=games, batch=batch, opening_plies=opening_plies)
    with usage_errors():
        test = parse_sprt(str(sprt)) if sprt else None
        opening = choose_opening(
            opening_plies, players_place=players_place, path=openings, rules=played
        )
        how = MatchOptions(games, batch, opening)
        seated = [player.registered for player in fill_seats(entrants, played)]
    if played.players > 2:
        _check_named_once(given, entrants)
        if test is not None:
            raise UsageError(
                f"match: sprt is a test of two players, the rules are for {played.players}; leave "
                "it out and read the interval"
            )
    title = (" against " if played.players == 2 else " · ").join(each.name for each in seated)
    total = games_of(seated, games)
    with follow(progress, title, total, answer="the games that are over are kept") as work:
        result = sprt_lib.play_until_decided(
            seated,
            played,
            dataclasses.replace(how, should_stop=work.should_stop),
            test,
            key=key,
            on_progress=work,
        )
    settings = {
        "seed": seed,
        "opening_plies": opening.plies,
        "players_place": opening.players_place,
        "openings": str(openings) if isinstance(openings, str | Path) else None,
    }
    return PlayedMatch(
        **vars(result),
        settings=settings,
        test=test,
        caption=f"seed {seed} · {opening.text}",
        total=total,
        is_interrupted=work.should_stop(),
    )


def seated_match(players: Sequence[Opponent], **options: Any) -> PlayedMatch:
    """`match` of the players of a list, one for each seat, or two."""
    check_list("seated_match", players, 2)
    return match(*players, **options)


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


def _check_named_once(given: Sequence[Opponent], entrants: Sequence[Player]) -> None:
    """Refuse two different players of one name, who would be one entrant."""
    first: dict[str, Opponent] = {}
    for opponent, player in zip(given, entrants, strict=True):
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
    records: str | Path | None = None,
    progress: Shown = False,
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
      records: file that each meeting's games are written to once it is over.
      progress: show a bar, and a line for each meeting.

    Raises:
      UsageError: as `match`, or a player stands there twice.
      KeyboardInterrupt: Ctrl-C came.
    """
    check_list("tournament", players, 2)
    entrants = make_players(list(players), rules)
    played, names = entrants[0].rules, [player.name for player in entrants]
    seats, registered = played.players, [player.registered for player in entrants]
    key_of("tournament", seed)
    check_whole("tournament", games=games, heats=heats, opening_plies=opening_plies)
    if form not in FORMS:
        raise UsageError(f"tournament: form {form!r} is not one of {', '.join(FORMS)}")
    if heats and (form != ELIMINATION or heats < 2):
        raise UsageError("tournament: heats are of 2 or more, and before an elimination")
    if form == ELIMINATION and seats > 2:
        raise UsageError(f"tournament: only a round robin has tables of {seats}")
    with usage_errors():
        how = MatchOptions(games, min(games, MAX_BATCH), OpeningOptions(opening_plies))
        check_opening(played, opening_plies)
        tournament_lib.check_entrants(names, seats)
        match_lib.check_players(registered, played)
    each, orders = games_of(registered[:seats], games), math.factorial(seats)
    settings = dict(seed=seed, games_a_meeting=games, heats=heats, opening_plies=opening_plies)
    expected = math.comb(len(names), seats)
    if form == ELIMINATION:
        expected = (len(names) * (heats - 1) // 2 if heats else 0) + 2 * len(names) - 2
    total = each * expected
    with follow(progress, form, total, answer="the meetings that are over are kept") as work:
        by_name, path = dict(zip(names, entrants, strict=True)), Path(records) if records else None
        meetings, stop = _Meetings(by_name, played, how, seed, work, path), None
        result = TournamentResult(form, played, settings=settings, total=total)
        try:
            places = _play_form(form, names, each // orders, heats, meetings)
        except (KeyboardInterrupt, UsageError) as error:
            if not (isinstance(progress, Display) and meetings.met):
                raise
            places, stop = (
                {"standings": tuple(tournament_lib.standings(names, meetings.met))},
                error,
            )
        over = {"meetings": tuple(meetings.met), "tables": tuple(meetings.results)}
        return dataclasses.replace(result, **over | places, stop=stop)


def seated_tournament(
    players: Sequence[Opponent], *, games: int = 24, **options: Any
) -> TournamentResult:
    """`tournament` at tables of three or four."""
    return tournament(players, games=games, **options)


@dataclasses.dataclass
class _Meetings:
    """Plays the matches of a tournament one by one, and keeps those that are over; players who meet
    again play other openings."""

    players: Mapping[str, Player]
    rules: Rules
    how: MatchOptions
    seed: int
    work: Follower
    records: Path | None
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
        more = {"games": games, "batch": min(games, MAX_BATCH), "should_stop": work.should_stop}
        played = match_lib.play_meeting(
            [self.players[name].registered for name in names],
            self.rules,
            dataclasses.replace(self.how, **more),
            seed=self.seed,
            before=self.before[frozenset(names)],
            on_progress=lambda more: work.task(done + more),
        )
        if len(played.games) < games:
            raise KeyboardInterrupt
        self.before[frozenset(names)] += openings
        result = PlayedMatch(**vars(played))
        if self.records is not None:
            result.write(self.records, append=bool(self.results))
        self.results.append(result)
        scores = tournament_lib.scores_of(played)
        self.met.append(TournamentMatch("stopped", len(self.met) + 1, names, scores, None))
        work.display.say(report.match_line(result, seconds=work.task.seconds - began))
        work.should_stop.keeps_work()
        return scores


def _play_form(
    form: str, names: list[str], openings: int, heats: int, meetings: _Meetings
) -> dict[str, Any]:
    """Play all meetings of a form; returns what its result says of them."""
    rules, play = meetings.rules, meetings.play
    if form == ROUND_ROBIN:
        met = tournament_lib.round_robin(names, play, openings=openings, seats=rules.players)
        return {"standings": tuple(tournament_lib.standings(names, met)), "meetings": tuple(met)}
    groups, met, seeds, behind = [], [], names, []
    if heats:
        groups, met = tournament_lib.heats(names, play, size=heats, openings=openings)
        seeds, behind = tournament_lib.seeds_of(groups)
    bracket = tournament_lib.double_elimination(
        seeds, play, openings=openings, starts_behind=behind
    )
    by_place = {row.name: row for row in tournament_lib.standings(names, bracket.meetings)}
    return {
        "standings": tuple(by_place[name] for name in bracket.places),
        "meetings": (*met, *bracket.meetings),
        "heats": tuple(map(tuple, groups)),
        "elimination": bracket,
    }
