"""Reachability control and passing, measured over games in place of single examples.

`play_kinds` has the definitions.

G games, N positions, A slots, P = 2 players.
"""

import functools
from typing import Any

import jax
import numpy as np

from train.runtime.host import fetch
from train.solver.exact_player import tables_of
from train.solver.reachable import batches, reachable_levels
from train.solver.tablebase import value_of
from train.study.frame.means import Mean, by_game, mean_of
from train.study.frame.own_games import OwnGames, analyst_of, check_two_players, own_games
from train.study.frame.report import Picture, Report, Table, percent
from train.study.frame.work import Work
from train.study.topics import passing
from train.study.topics.game_size import SOLVED
from train.study.topics.play_kinds import (
    BURDEN,
    GAIN,
    HARDLY,
    LEAD,
    TURNS,
    kinds_of,
    reach_of,
)
from train.study.topics.plays import THIRDS, plays_of
from wallgo_jax.game.state import State


def report(work: Work) -> Report:
    """Look at games of the player against itself, and search some of them again."""
    scale = work.scale.mobility
    check_two_players("mobility", scale.player)
    games = own_games(work, scale.player, simulations=scale.simulations, games=scale.games)
    settings = {
        "games": [list(record.actions) for record in games.recorded.records],
        "thresholds": [TURNS, LEAD, GAIN, HARDLY],
        "by_ply": "split",
    }
    digest = {"digest": _digest(settings)}
    curves = work.pieces.keep("curves", digest, lambda: _curves(work, games))
    plays = work.pieces.keep("plays", digest, lambda: _plays(work, games))
    calibration = analyst_of(scale.player, scale.simulations).calibration
    searched_settings = digest | {
        "searched": scale.searched_games,
        "simulations": scale.search_simulations,
        "burden": BURDEN,
        "calibration": calibration._asdict(),
    }
    searched = work.pieces.keep(
        "searched", searched_settings, lambda: passing.search_again(work, games)
    )
    turns = work.pieces.keep("solved", {"rules": SOLVED.to_dict()}, _solved_turns)
    return Report(
        title="Reachability control and passing",
        text=_text(work, curves),
        tables=[
            _curve_table(curves),
            _play_table(plays),
            passing.table_of(searched),
            _solved_table(turns),
        ],
        pictures=[_picture(curves, f"{scale.player}@{scale.simulations}")],
        data={"mobility": curves, "plays": plays, "searched": searched, "solved": turns},
    )


def _digest(settings: dict[str, Any]) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]


def _curves(work: Work, games: OwnGames) -> dict[str, Any]:
    played, count = plays_of(games), len(games.plies)
    with work.task("mobility", len(played.slot), "positions"):
        reach = reach_of(played.states)
    winner = np.array(games.rewards[:, 0] > 0, dtype=np.bool_)
    is_won = games.rewards[:, 0] != 0
    sign = np.where(winner, 1, -1)[played.game]
    ahead = sign[:, None] * (reach.cells[:, :, 0] - reach.cells[:, :, 1])
    mover = np.asarray(played.states.position.player)
    of_winner = np.where(mover == 0, winner[played.game], ~winner[played.game])
    rows = []
    for third, name in enumerate(THIRDS):
        own = (played.third == third) & is_won[played.game]
        game = played.game[own]
        row: dict[str, Any] = {"when": name}
        for turns in range(TURNS):
            row[f"ahead_{turns + 1}"] = mean_of(by_game(ahead[own][:, turns], game, count))
        legal = {
            who: by_game(reach.legal[own & mask], played.game[own & mask], count)
            for who, mask in (("winner", of_winner), ("loser", ~of_winner))
        }
        row["legal_ahead"] = mean_of(legal["winner"] - legal["loser"])
        row["legal_winner"], row["legal_loser"] = (
            float(np.nanmean(legal[who])) for who in ("winner", "loser")
        )
        rows.append(row)
    ply = np.asarray(played.states.position.ply) - len(games.rules.order)
    won = is_won[played.game]
    by_ply = [
        {
            "play": int(number),
            "games": int(((ply == number) & won).sum()),
            **{
                f"ahead_{turns + 1}": mean_of(ahead[(ply == number) & won][:, turns])
                for turns in range(TURNS)
            },
            **{
                f"legal_{who}": mean_of(reach.legal[(ply == number) & won & mask])
                for who, mask in (("winner", of_winner), ("loser", ~of_winner))
            },
        }
        for number in range(int(ply.max()) + 1)
        if ((ply == number) & won).sum() >= max(10, count // 50)
    ]
    return {"thirds": rows, "by_ply": by_ply, "games": count}


def _plays(work: Work, games: OwnGames) -> dict[str, Any]:
    """How often the plays of the games are of each kind, and what follows."""
    played, count = plays_of(games), len(games.plies)
    with work.task("kinds of plays", len(played.slot), "positions") as on_progress:
        kinds = kinds_of(played.states, on_progress)
    own = np.arange(len(played.slot)), played.slot.astype(int)
    mover = np.asarray(played.states.position.player)
    reward = games.rewards[played.game, mover]
    points = (1 + reward.clip(-1, 1)) / 2
    rows = []
    for name, mask, wide in (
        (
            "gives up territory for reach",
            kinds.gives_up[own],
            np.asarray(kinds.gives_up.any(axis=1)),
        ),
        ("implicit pass", kinds.passes[own], np.asarray(kinds.passes.any(axis=1))),
    ):
        for third, when in enumerate(THIRDS):
            here = played.third == third
            possible = here & wide
            rows.append(
                {
                    "kind": name,
                    "when": when,
                    "plays": int(here.sum()),
                    "possible": float(wide[here].mean()),
                    "chosen": mean_of(by_game(mask[here], played.game[here], count)),
                    "chosen_where_possible": mean_of(
                        by_game(mask[possible], played.game[possible], count)
                    ),
                    "points_after": mean_of(
                        by_game(points[here & mask], played.game[here & mask], count)
                    ),
                    "points_otherwise": mean_of(
                        by_game(points[possible & ~mask], played.game[possible & ~mask], count)
                    ),
                }
            )
    return {"rows": rows}


def _solved_turns() -> dict[str, Any]:
    """Exact counts on 3×3 of positions by the value to move and the value if it were the other's
    turn."""
    tables = tables_of(SOLVED)
    values = jax.jit(jax.vmap(functools.partial(value_of, tables)))
    counts = np.zeros((3, 3), np.int64)
    for level in reachable_levels(SOLVED):
        in_play = np.asarray(level.position.ply) >= len(SOLVED.order)
        if not in_play.any():
            continue
        level = jax.tree.map(lambda x, keep=in_play: np.asarray(x)[keep], level)
        for some, own in batches(level, 1 << 13):
            position = some.position
            other = position._replace(player=1 - position.player)
            now = fetch(values(some))[:own]
            # The value to the player of now, if the other had to move.
            then = -fetch(values(State(some.variant, other)))[:own]
            np.add.at(counts, (now.astype(int) + 1, then.astype(int) + 1), 1)
    return {"counts": counts.tolist()}


def _curve_table(curves: dict[str, Any]) -> Table:
    rows = [
        (
            row["when"],
            *(Mean(*row[f"ahead_{turns}"]).text() for turns in range(1, TURNS + 1)),
            f"{row['legal_winner']:.1f}, {row['legal_loser']:.1f}",
            Mean(*row["legal_ahead"]).text(),
        )
        for row in curves["thirds"]
    ]
    heads = (
        "plays",
        *(f"reach {turns}" for turns in range(1, TURNS + 1)),
        "legal actions: winner, loser",
        "difference",
    )
    title = "Cells by which the winner's reach is larger, and its legal actions (95 % over games)"
    return Table(title, heads, tuple(rows))


def _play_table(plays: dict[str, Any]) -> Table:
    rows = [
        (
            row["kind"],
            row["when"],
            f"{row['plays']:,}",
            percent(row["possible"]),
            Mean(*row["chosen"]).share(),
            Mean(*row["chosen_where_possible"]).share(),
            Mean(*row["points_after"]).share(),
            Mean(*row["points_otherwise"]).share(),
        )
        for row in plays["rows"]
    ]
    heads = (
        "kind",
        "plays",
        "number",
        "possible in",
        "played",
        "played where possible",
        "wins after it",
        "wins after another play there",
    )
    return Table("Kinds of plays in the games (95 % over games)", heads, tuple(rows))


def _solved_table(turns: dict[str, Any]) -> Table:
    counts, names = np.array(turns["counts"]), ("lost", "drawn", "won")
    total = counts.sum()
    rows = [
        (
            name,
            *(f"{counts[now, then]:,} ({percent(counts[now, then] / total)})" for then in range(3)),
        )
        for now, name in enumerate(names)
    ]
    heads = ("to move", *(f"{name} if the other had to move" for name in names))
    title = f"3×3, one stone each, solved: all {total:,} positions after the placements"
    return Table(title, heads, tuple(rows))


def _text(work: Work, curves: dict[str, Any]) -> list[str]:
    scale = work.scale.mobility
    middle = Mean(*curves["thirds"][1][f"ahead_{TURNS}"])
    agrees = (
        "is larger" if middle.low > 0 else "is smaller" if middle.high < 0 else "does not differ"
    )
    return [
        f"{curves['games']:,} games of `{scale.player}` against itself at {scale.simulations} "
        "simulations, placements left out. Each definition was fixed before its figures were "
        "looked at. "
        "Reach within k turns: cells that a side's stones can enter, two steps a turn, over exits "
        "free of walls and stones, while nobody else moves. A play gives up territory for reach "
        f"if another play encloses at least {LEAD} cell more at once (own less the opponent's) and "
        f"the played one has at least {GAIN} cells more of reach within {TURNS} turns (likewise). "
        "An implicit pass changes both sides' reach within 4 turns and enclosed cells by at most "
        f"{HARDLY} cell in all.",
        "A win chance is that of a search's best play. Where an implicit pass is the best play, "
        "moving first loses if the best of the other plays has a win chance at least "
        f"{100 * BURDEN:.0f} points below that of the same position with the other side to move. "
        "The best play is chosen for its value, so that taking any best play away costs something: "
        "the column of other best plays says how much.",
        f"In the middle of a game the winner's reach within {TURNS} turns {agrees}.",
        "A position in which the side to move is lost and would be won if the other had to move is "
        "one in which a pass would turn the game; the solved board counts them exactly.",
        "The intervals count games; all games are of one training.",
    ]


def _picture(curves: dict[str, Any], name: str) -> Picture:
    from train.metrics.plot_style import COLOURS, GREY, new_plot

    rows = curves["by_ply"]
    figure, axes = new_plot(
        title=f"{name}: how much farther the winner reaches",
        x_label="plays since the last placement",
        y_label="cells within 4 turns, winner less loser",
    )
    plays, means = [row["play"] for row in rows], [Mean(*row[f"ahead_{TURNS}"]) for row in rows]
    axes.fill_between(
        plays,
        [mean.low for mean in means],
        [mean.high for mean in means],
        color=COLOURS[0],
        alpha=0.2,
        linewidth=0,
    )
    axes.plot(plays, [mean.value for mean in means], color=COLOURS[0])
    axes.axhline(0, color=GREY, linewidth=1)
    return Picture(
        "reach",
        f"{curves['games']:,} games, decided ones only; the band is the 95 % interval",
        figure,
    )
