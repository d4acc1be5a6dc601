"""What `match` and `tournament` do where the rules are for three or four players."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from train.cli.common import options
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from wallgo_jax.game.rules import Rules

if TYPE_CHECKING:
    from train.arena.openings import OpeningOptions
    from train.arena.seats.match import SeatOptions
    from train.arena.seats.result import SeatedResult
    from train.cli.games.match import Match
    from train.cli.games.tournament import Tournament
    from train.players.registry import Player
    from train.runtime.display import Display


def run_match(command: Match, names: Sequence[str], rules: Rules) -> int:
    """Play and show a match of three or four players; returns the exit code."""
    import jax

    from train.arena.seats import match
    from train.arena.seats.seating import fill_seats
    from train.runtime.display import Display

    options.check_seed("match", command.seed)
    if command.sprt:
        raise UsageError(
            f"match: --sprt is a test of two players, the rules are for {rules.players}; leave it "
            "out and read the interval"
        )
    try:
        seated = fill_seats(names, rules)
        how = match.SeatOptions(command.games, command.batch, *command.opening(rules))
    except ValueError as error:
        raise UsageError(str(error)) from None
    make = command.player_maker(rules)
    by_name = {name: make(name) for name in dict.fromkeys(seated)}
    players = [by_name[name] for name in seated]
    options.check_files(command.records, command.json, inputs=command.inputs)
    games, display = match.games_of(players, command.games), Display()
    with (
        display,
        display.match(" · ".join(player.name for player in players), games) as task,
        interrupts("the games that are over are kept", show=display.note) as is_interrupted,
    ):

        def on_progress(done: int) -> None:
            if done > 0:
                is_interrupted.keeps_work()
            task(done)

        result = match.play_seats(
            players,
            rules,
            dataclasses.replace(how, should_stop=is_interrupted),
            key=jax.random.key(command.seed),
            on_progress=on_progress,
        )
    _show(command, result, games, display, how.opening)
    return EXIT_INTERRUPTED if is_interrupted() else 0


def run_tournament(command: Tournament, rules: Rules) -> int:
    """Play and show a round robin of tables of three or four; returns the exit code."""
    from train.arena.seats import match, tournament
    from train.ratings.pool import MAX_BATCH
    from train.runtime.display import Display

    if command.format != "round-robin" or command.heats:
        raise UsageError(
            f"tournament: only a round robin has tables of {rules.players}; eliminations and heats "
            "are for two"
        )
    players = [*map(command.player_maker(rules), command.players)]
    try:
        match.check_players(players, rules)
        how = match.SeatOptions(
            command.games, min(max(command.games, 1), MAX_BATCH), command.opening_plies
        )
        # By the players' own names: a player may be called by several.
        tables = tournament.tables_of([player.name for player in players], rules.players)
    except ValueError as error:
        raise UsageError(str(error).replace("match: ", "tournament: ")) from None
    options.check_files(command.records, command.json, inputs=command.inputs)
    by_name = {player.name: player for player in players}
    seated = [[by_name[name] for name in table] for table in tables]
    display, results, failure = Display(), [], None
    try:
        _play_tables(command, seated, how, rules, results, display)
    except UsageError as error:
        failure = error
    if not results:
        raise failure or KeyboardInterrupt
    _show_tables(command, results, len(tables), rules, display)
    if failure:
        raise failure
    return EXIT_INTERRUPTED if len(results) < len(tables) else 0


def _play_tables(
    command: Tournament,
    tables: Sequence[Sequence[Player]],
    how: SeatOptions,
    rules: Rules,
    results: list[SeatedResult],
    display: Display,
) -> None:
    """Play tables until a signal comes, and add each that is over to the results."""
    from train.arena.match_programs import key_of_names
    from train.arena.seats import match

    games = match.games_of(tables[0], command.games)
    with (
        display,
        display.match(command.format, games * len(tables)) as task,
        interrupts("the tables that are over are kept", show=display.note) as request,
    ):
        for table in tables:
            began = task.seconds
            task.compile()
            result = match.play_seats(
                table,
                rules,
                dataclasses.replace(how, should_stop=request),
                key=key_of_names([player.name for player in table], command.seed),
                on_progress=lambda done: task(games * len(results) + done),
            )
            if len(result.games) < games:
                return
            display.say(report_line(result, seconds=task.seconds - began))
            if command.records is not None:
                options.write_seats(command.records, result, append=bool(results))
            results.append(result)
            request.keeps_work()


def _show_tables(
    command: Tournament,
    results: Sequence[SeatedResult],
    tables: int,
    rules: Rules,
    display: Display,
) -> None:
    """Print the standings after those of all tables that are over, and write what was asked for."""
    from train.arena.seats import tournament

    caption = (
        f"{len(results[0].games)} games a table · seed {command.seed} · "
        f"{command.opening_plies} random opening plies"
    )
    is_stopped = len(results) < tables
    if is_stopped:
        caption = f"stopped after {len(results)} of {tables} tables · {caption}"
    rows = tournament.standings(results)
    display.console.print(tournament.standings_table(rows, rules, caption=caption))
    if command.records is not None:
        options.say_written(command.records, "games")
    if command.json is not None:
        record = tournament.tournament_record(rows, results)
        asked = {"seed": command.seed, "opening_plies": command.opening_plies}
        options.write_json(command.json, asked | {"is_stopped": is_stopped} | record)


def report_line(result: SeatedResult, *, seconds: float) -> str:
    """A table of different players in one line: wins of each, and draws."""
    wins = ", ".join(f"{name} {result.wins(entrant)}" for entrant, name in enumerate(result.names))
    return f"{wins} won, {result.draws} drawn, {seconds:.1f} s"


def _show(
    command: Match, result: SeatedResult, games: int, display: Display, opening: OpeningOptions
) -> None:
    from train.arena.seats import report

    caption = f"seed {command.seed} · {opening.text}"
    if len(result.games) < games:
        caption = f"stopped after {len(result.games)} of {games} games · {caption}"
    display.console.print(report.seats_table(result, caption=caption))
    if command.records is not None:
        options.write_seats(command.records, result)
        options.say_written(command.records, f"{len(result.games)} games")
    if command.json is not None:
        asked = {
            "seed": command.seed,
            "opening_plies": opening.plies,
            "players_place": opening.players_place,
        }
        options.write_json(command.json, asked | report.seats_record(result))
