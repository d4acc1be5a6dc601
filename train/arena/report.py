"""Matches and tournaments as tables, lines and records."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from train.arena.figures import MatchFigures, wilson_interval
from train.arena.tournament import (
    FINAL,
    LOSERS,
    WINNERS,
    Elimination,
    Score,
    StandingsRow,
    TournamentMatch,
    score_between,
)
from train.runtime.display import Table
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import name_of
from wallgo_jax.notation import COLOURS

_ORDINALS = ("first", "second", "third", "fourth")
_BRACKETS = {WINNERS: "winners' bracket", LOSERS: "losers' bracket", FINAL: "final"}
_FIGURES_OF_MORE = ["win rate", "95 %", "places"]
_MOST_TOLD = 10


def match_table(
    results: Sequence[MatchFigures], *, caption: str, has_entrants: bool = False
) -> Table:
    """A table of matches of one player, a column for each match, figures from its side.

    Args:
      results: of the player, who is the first entrant of each.
      caption: stands below.
      has_entrants: of one match, a column for each entrant.
    """
    first = results[0]
    columns = {f"against {result.second}": result for result in results}
    if has_entrants:
        columns = {name: first.of(entrant) for entrant, name in enumerate(first.names)}
    title = f"{len(first.games)} games" if has_entrants else first.first
    figures = [_figures(each) for each in columns.values()]
    rows = [[name, *(column[name] for column in figures)] for name in figures[0]]
    return Table(f"{title} on {name_of(first.rules)}", ("", *columns), rows, caption)


def _figures(result: MatchFigures) -> dict[str, str]:
    players, (reward, error) = result.rules.players, result.reward
    cells, other = result.mean_territory
    ratio, places = result.territory_ratio, zip(_ORDINALS, result.place_shares, strict=False)
    of_more = {
        "seats": str(result.held),
        "won of those decided": _rate(result.decided_rate),
        "95 % interval of it": _interval(result.decided_interval),
        "reward": f"{reward:+.3f} ± {error:.3f}",
        **{f"{name} place": f"{share:.1%}" for name, share in places},
    }
    return {
        "games": str(len(result.games)),
        "won, drawn, lost": f"{result.wins}, {result.draws}, {result.losses}",
        "win rate" if players == 2 else f"win rate, draws 1/{players}": f"{result.win_rate:.2%}",
        "95 % interval": _interval(result.interval),
        **(of_more if players > 2 else {}),
        **{
            f"win rate as {colour}": _rate(result.win_rate_at(seat))
            for seat, colour in enumerate(COLOURS[:players])
        },
        "Red's win rate": f"{result.seat_win_rate(0):.2%}",
        "territory, cells": f"{cells:.1f} : {other:.1f}",
        "territory ratio": "-" if ratio is None else f"{ratio:.2f}",
        "plies a game": f"{result.mean_length:.1f}",
        "distinct games": str(result.distinct_games),
    }


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.2%}"


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.1%} to {ends[1]:.1%}"


def match_line(result: MatchFigures, *, seconds: float) -> str:
    """A match in one line: of two entrants the first one's win rate with its 95 % interval, of more
    the wins of each."""
    if len(result.names) > 2:
        wins = ", ".join(f"{name} {result.of(e).wins}" for e, name in enumerate(result.names))
        return f"{wins} won, {result.draws} drawn, {seconds:.1f} s"
    low, high = result.interval
    forfeited = f"{result.forfeited} of them by forfeit,  " if result.forfeited else ""
    return (
        f"{result.first} against {result.second}: {result.win_rate:.1%} ({100 * low:.1f} to "
        f"{high:.1%}), {result.wins} won, {result.draws} drawn, {result.losses} lost, "
        f"{forfeited}{seconds:.1f} s"
    )


def forfeit_lines(result: MatchFigures) -> list[str]:
    """A line for each way in which games were lost by forfeit, the most frequent first."""
    counted = Counter(filter(None, result.forfeits)).most_common()
    lines = [f"{text} ({count} games)" if count > 1 else text for text, count in counted]
    more = [f"and {len(lines) - _MOST_TOLD} more"] if len(lines) > _MOST_TOLD else []
    return lines[:_MOST_TOLD] + more


def game_records(result: MatchFigures) -> Iterator[Record]:
    """The games in the format of recorded games."""
    forfeits = result.forfeits or ("",) * len(result.games)
    for game, (actions, forfeit) in enumerate(zip(result.games, forfeits, strict=True)):
        yield Record(
            rules=result.rules,
            actions=actions,
            players=tuple(result.names[entrant] for entrant in result.seats[game]),
            # A game that was lost by forfeit is not over by the rules.
            result=None if forfeit else tuple(map(float, result.rewards[game])),
        )


def match_record(result: MatchFigures) -> dict[str, Any]:
    """A match as JSON-ready figures from the first entrant's side, territory of one seat.

    `territory_ratio` is None where the others had no territory at all, the win rate as a colour
    where there is no game with it. With more than two seats `entrants` has figures of each, of one
    seat, but for wins and losses.
    """
    players = result.rules.players
    colours = enumerate(map(str.lower, COLOURS[:players]))
    record: dict[str, Any] = {
        "first": result.first,
        "second": result.second,
        "rules": name_of(result.rules),
        "games": len(result.games),
        **_side_record(result),
        "territory": list(result.mean_territory),
        "territory_ratio": result.territory_ratio,
        "mean_length": result.mean_length,
        **{f"win_rate_as_{colour}": result.win_rate_at(seat) for seat, colour in colours},
        "red_win_rate": result.seat_win_rate(0),
        "distinct_games": result.distinct_games,
    }
    if players > 2:
        record["seat_win_rates"] = [result.seat_win_rate(seat) for seat in range(players)]
        entrants = map(result.of, range(len(result.names)))
        record["entrants"] = [_entrant_record(entrant) for entrant in entrants]
    if result.forfeited:
        record["forfeits"] = [text for text in result.forfeits if text]
    return record


def _side_record(result: MatchFigures) -> dict[str, Any]:
    """Figures that each entrant has."""
    figures = {name: getattr(result, name) for name in ("wins", "draws", "losses", "win_rate")}
    return figures | {"interval_95": list(result.interval)}


def _entrant_record(result: MatchFigures) -> dict[str, Any]:
    reward, error = result.reward
    return {
        "player": result.name,
        "seats": result.held,
        **_side_record(result),
        "decided_win_rate": result.decided_rate,
        "decided_interval_95": list(result.decided_interval),
        "reward": reward,
        "reward_interval_95": None if math.isnan(error) else [reward - error, reward + error],
        "places": result.place_shares,
        "territory": result.mean_territory[0],
        "win_rate_by_seat": [result.win_rate_at(seat) for seat in range(result.rules.players)],
    }


def standings_table(
    rows: Sequence[StandingsRow], meetings: Sequence[TournamentMatch], *, title: str, caption: str
) -> Table:
    """The places of players who met in rounds, with their totals: of two at a time also the points
    against each opponent in the order of places, of more the win rates and shares of places."""
    are_pairs, table = rows[0].seats == 2, []
    heads = ["", "player", "points", "won, drawn, lost", "territory", "largest region"]
    heads += [str(n + 1) for n in range(len(rows))] if are_pairs else _FIGURES_OF_MORE
    for place, row in enumerate(rows, start=1):
        score = row.score
        counts = f"{score.wins}, {score.draws}, {score.losses}", f"{score.own} : {score.other}"
        totals = *counts, f"{score.region / max(score.games, 1):.1f}"
        if are_pairs:
            against = [score_between(meetings, row.name, other.name) for other in rows]
            cells = ["" if score is None else _points(score) for score in against]
            cells[place - 1] = "·"
        else:
            low, high = wilson_interval(row.share, score.games)
            shares = " ".join(f"{count / score.games:.0%}" for count in score.places)
            cells = [f"{row.share:.1%}", f"{100 * low:.1f} to {100 * high:.1f}", shares]
        table.append([str(place), row.name, f"{row.points:.4g}", *totals, *cells])
    return Table(title, heads, table, caption)


def bracket_tree(played: Elimination, *, title: str, caption: str) -> Tree:
    """A double elimination, round by round, and its first places."""
    tree = Tree(Text(title))
    for bracket, name in _BRACKETS.items():
        met = [meeting for meeting in played.meetings if meeting.bracket == bracket]
        branch = tree.add(Text(name)) if met else tree
        for number, of_round in itertools.groupby(met, key=lambda meeting: meeting.round):
            twig = branch.add(Text(f"round {number}"))
            for meeting in of_round:
                twig.add(_meeting_line(meeting))
    places = tree.add(Text("places"))
    for place, name in enumerate(played.places, start=1):
        behind = "  (began in the losers' bracket)" if name in played.starts_behind else ""
        places.add(Text(f"{place}. {name}{behind}"))
    tree.add(Text(caption, style="dim"))
    return tree


def meeting_record(meeting: TournamentMatch) -> dict[str, Any]:
    """A meeting of two as JSON-ready figures."""
    first, second = meeting.players
    about = {"bracket": meeting.bracket, "round": meeting.round, "first": first, "second": second}
    return about | _score_record(meeting.scores[0]) | {"winner": meeting.winner}


def standing_record(row: StandingsRow) -> dict[str, Any]:
    """A row of a table as JSON-ready figures; with more than two at a table also the shares of
    places."""
    record = {"player": row.name, "points": row.points, **_score_record(row.score)}
    if row.seats > 2:
        games = row.score.games
        record |= {"games": games, "places": [count / games for count in row.score.places]}
    return record


def _score_record(score: Score) -> dict[str, Any]:
    counts = dict(zip(("wins", "draws", "losses"), score, strict=False))
    return counts | {"territory": [score.own, score.other], "largest_region": score.region}


def _points(score: Score) -> str:
    return f"{score.wins + score.draws / 2:g}"


def _meeting_line(meeting: TournamentMatch) -> Text:
    line, score = Text(), meeting.scores[0]
    for name, points in zip(meeting.players, map(_points, meeting.scores), strict=True):
        style = "bold" if name == meeting.winner else ""
        line.append(f"{' – ' if line else ''}{name} {points}", style=style)
    return line.append(f"   territory {score.own} : {score.other}   → {meeting.winner}")
