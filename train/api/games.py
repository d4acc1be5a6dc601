"""Games between players: matches and tournaments."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from train.api.arguments import (
    AnyPlayer,
    AnyRules,
    Files,
    Flag,
    Games,
    MoveSeconds,
    Openings,
    Progress,
    ReadFile,
    WrittenFile,
    arg,
)
from train.api.signatures import verb
from train.runtime.errors import UsageError, check_two_players, usage_errors
from train.runtime.fields import AtLeastOne, Count, Seed

if TYPE_CHECKING:
    from train.api.players import Player
    from train.arena.meetings import TournamentResult
    from train.arena.recorded import Series
    from train.arena.result import MatchResult


@verb
def match(
    first: AnyPlayer,
    second: Annotated[
        AnyPlayer | None,
        arg("[OPPONENT]", "(default: the one that ships, with PLAYER's budget)"),
    ] = None,
    *others: Annotated[AnyPlayer, arg("[OPPONENT ...]", "")],
    games: Games = 400,
    opening_plies: Count = 2,
    batch: AtLeastOne = 400,
    sprt: Annotated[str, arg("ELO0,ELO1", "(default: none)")] = "",
    players_place: Flag = False,
    openings: Openings | None = None,
    records: WrittenFile | None = None,
    searches: Flag = False,
    rules: AnyRules | None = None,
    seed: Seed = 0,
    config: ReadFile | None = None,
    transfer: Flag = False,
    move_seconds: MoveSeconds = 60.0,
    progress: Progress = False,
) -> MatchResult:
    """Play a match between two players, or between three or four where the rules have so many
    seats. Players are named as in docs/players.md.

    Args:
      first: player that the result is for.
      second: its opponent. With three or four seats and no further names, it plays all other seats.
      others: players of further seats.
      games: smallest number of games. It is rounded up so that each opening is played in every
        order of the players: half of the games with each colour.
      opening_plies: random plies with which all games of an opening start.
      batch: games played in parallel; a sequential test looks at the result after each batch.
      sprt: stop once a sequential test of two players has decided which of two Elo differences is
        likelier, such as 0,20.
      players_place: let the players place all stones before the random plies.
      openings: file of positions from which games start, in place of random plies: the last
        positions of recorded games, or diagrams. Each is played in every order of the players.
      records: file to write the games to, a JSON object a line; compressed if it ends in .gz.
      searches: search each position once more as its player does, and write what the search says
        into the records: the best actions with their shares and visits, and the value.
      rules: preset's name, JSON object, or file (JSON or TOML); Python also takes `Rules` and their
        fields.
      seed: random seed.
      config: TOML file of a run; its tables [heuristics] weigh the players ethen and wjx.
      transfer: let networks play rules that they were not trained on.
      move_seconds: seconds that a program (external:COMMAND) may take for a move; else it loses the
        game.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.

    Example:
      `train.match("search:runs/quickstart@64", "wjx", games=100).win_rate`
    """
    import jax

    from train.api.players import make_players, shipped_like
    from train.arena.match import MatchOptions, fill_seats, games_of, play_in_rounds
    from train.arena.match_openings import choose_opening
    from train.arena.report import game_records
    from train.config import read_config
    from train.config.sprt import parse_sprt
    from train.data.record_searches import Searcher, add_searches
    from train.runtime.files import check_writable, writing
    from train.runtime.interrupts import follow
    from train.runtime.showing import sparing
    from wallgo_jax.formats.records import write as write_records

    given = [first, *((second,) if second is not None else ()), *others]
    if len(given) == 1:
        if not isinstance(first, str):
            raise UsageError(
                "match: second: name an opponent: only a player given by name has a default one"
            )
        given.append(shipped_like(first, rules))
    entrants = make_players(
        given,
        rules,
        heuristics=read_config(config).heuristics,
        transfer=transfer,
        move_seconds=move_seconds,
    )
    played = entrants[0].rules
    with usage_errors():
        test = parse_sprt(sprt) if sprt else None
        opening = choose_opening(
            opening_plies, players_place=players_place, path=openings, rules=played
        )
        seated = [player.registered for player in fill_seats(entrants, played)]
        is_drawn = opening.positions is not None and not opening.positions.has_games
        if records is not None and is_drawn:
            raise ValueError(
                "match: records can be written only if the openings are recorded games: a diagram "
                "has no plies"
            )
        searchers = {
            each.name: Searcher(each.report, each.variables)
            for each in seated
            if searches and each.report is not None and each.simulations != 0
        }
        if searches and (records is None or not searchers):
            raise ValueError(
                "match: searches are written into records: name a file and a player that searches"
            )
    if test is not None:
        check_two_players(played, "match: sprt")
    if played.players > 2:
        _check_named_once(given, entrants)
    if records is not None:
        check_writable(Path(records))
    title = (" against " if played.players == 2 else " · ").join(each.name for each in seated)
    total = games_of(seated, games)
    with follow(progress, title, total, answer="the games that are over are kept") as work:
        result = play_in_rounds(
            seated,
            played,
            MatchOptions(games, batch, opening, should_stop=work.should_stop),
            test,
            key=jax.random.key(seed),
            on_progress=work,
        )
    result = dataclasses.replace(
        result,
        settings={
            "seed": seed,
            "opening_plies": opening.plies,
            "players_place": opening.players_place,
            "openings": None if openings is None else str(openings),
        },
        test=test,
        caption=f"seed {seed} · {opening.text}{_rounding(games, total)}",
        total=total,
        is_interrupted=work.should_stop(),
    )
    if records is not None:
        games_played = list(game_records(result))
        if searches:
            positions = sum(len(record.actions) for record in games_played)
            with follow(progress, "searches", positions) as work:
                games_played = add_searches(games_played, searchers, seed=seed, on_progress=work)
        with sparing(records, "the result stands"), writing(Path(records)):
            write_records(Path(records), games_played)
        written = {Path(records): f"{len(result.games)} games"}
        result = dataclasses.replace(result, written=written)
    return result


def _rounding(games: int, total: int) -> str:
    """That a match has more games than were asked for, if it has."""
    if games == total:
        return ""
    return f" · {total} games, not {games}: each opening is played in every seating"


def _check_named_once(given: Sequence[AnyPlayer], entrants: Sequence[Player]) -> None:
    """Refuse two different players of one name, who would be one entrant."""
    first: dict[str, AnyPlayer] = {}
    for opponent, player in zip(given, entrants, strict=True):
        known = first.setdefault(player.name, opponent)
        if known is not opponent and not (isinstance(known, str) and isinstance(opponent, str)):
            raise UsageError(f"match: two different players are named {player.name!r}")


@verb
def series(files: Annotated[Files, arg("FILE ...")]) -> Series:
    """Read the matches that record files keep, such as the games that a person saved on the page.

    A series of WallZero's paper is a person's games against each level with each colour.

    Args:
      files: record files; games that are not over do not count.

    Raises:
      UsageError: a file cannot be read, or no game is over.
    """
    from train.arena.recorded import read_series

    return read_series([Path(file) for file in files])


@verb
def tournament(
    players: Annotated[Sequence[AnyPlayer], Field(min_length=2), arg("PLAYER ...", "(required)")],
    *,
    form: Annotated[
        Literal["round-robin", "double-elimination"], arg(name="format")
    ] = "round-robin",
    games: Games = 2,
    heats: Count = 0,
    opening_plies: Count = 2,
    records: WrittenFile | None = None,
    rules: AnyRules | None = None,
    seed: Seed = 0,
    config: ReadFile | None = None,
    transfer: Flag = False,
    move_seconds: MoveSeconds = 60.0,
    progress: Progress = False,
) -> TournamentResult:
    """Play a tournament of any players, and rank them.

    Args:
      players: players, at least one for each seat of the rules, named as in docs/players.md. For an
        elimination without heats, name the strongest first.
      form: in a round robin each player meets each; in a double elimination a player is out after
        two losses. With three or four seats, each group of players meets.
      games: smallest number of games of a meeting. It is rounded up so that each opening is played
        in every order of the players.
      heats: number of players in each heat, which are played before an elimination and seed it; 0
        for no heats.
      opening_plies: random plies with which all games of an opening start.
      records: file to write the games to, a JSON object a line; compressed if it ends in .gz.
      rules: preset's name, JSON object, or file (JSON or TOML); Python also takes `Rules` and their
        fields.
      seed: random seed.
      config: TOML file of a run; its tables [heuristics] weigh the players ethen and wjx.
      transfer: let networks play rules that they were not trained on.
      move_seconds: seconds that a program (external:COMMAND) may take for a move; else it loses the
        game.
      progress: show a bar, and a line for each meeting.

    Raises:
      UsageError: as `match`, or a player stands there twice.
      KeyboardInterrupt: Ctrl-C came.

    Example:
      `train.tournament(["random", "greedy", "wjx"], games=10).table()`
    """
    from train.api.players import make_players
    from train.arena.match import check_players
    from train.arena.match_programs import check_opening
    from train.arena.meetings import TournamentOptions, check_form, play_tournament
    from train.config import read_config
    from train.runtime.files import check_writable

    entrants = make_players(
        players,
        rules,
        heuristics=read_config(config).heuristics,
        transfer=transfer,
        move_seconds=move_seconds,
    )
    played = entrants[0].rules
    file = None if records is None else Path(records)
    how = TournamentOptions(form, games, heats, opening_plies, seed, file)
    with usage_errors("tournament"):
        check_form([player.name for player in entrants], played, how)
        check_opening(played, opening_plies)
        check_players([player.registered for player in entrants], played)
    if file is not None:
        check_writable(file)
    named = {player.name: player.registered for player in entrants}
    return play_tournament(named, played, how, progress)
