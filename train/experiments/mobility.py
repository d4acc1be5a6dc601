"""Reach and implicit passes, measured over games in place of single examples.

A win chance is that of a search's best play. The best play is chosen for its value, so that taking
any best play away costs something: the column of other best plays says how much.

The games are the player's own, placements left out. The intervals count them; all are of one
training.

A position in which the side to move is lost and would be won if the other had to move is one in
which a pass would turn the game; the solved board counts them exactly.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.late_positions import legal_slots
from train.experiments import plays
from train.experiments.lib import stats
from train.experiments.lib.pages import Picture, Report, paragraphs
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import (
    SelfplayGames,
    Work,
    analysis_player,
    check_network,
    selfplay_games,
)
from train.experiments.plays import BURDEN, GAIN, HARDLY, LEAD, POSITIONS, THIRDS, TURNS, Plays
from train.experiments.size import SOLVED
from train.metrics.intervals import Curve, curves_figure
from train.players.basic import Player
from train.runtime.display import Table
from train.runtime.host import batches, fetch
from train.search.report import make_reporting_search
from train.solver.exact_player import tables_of
from train.solver.positions import reachable_levels
from train.solver.tablebase import value_of
from wallgo_jax.formats.docstrings import docstring_of
from wallgo_jax.game.state import State

_AHEAD = tuple(f"ahead_{turns}" for turns in range(1, TURNS + 1))
_INTERVALS = "(95 % over games)"
Mean = Callable[[np.ndarray, np.ndarray], Estimate]
"""(values [N], where bool[N]) -> their mean, over games."""


def report(work: Work) -> Report:
    """Look at games of the player against itself, and search some of them again."""
    scale = work.scale.mobility
    check_network(scale.player)
    games = selfplay_games(work, scale.player, simulations=scale.simulations, games=scale.games)
    settings = {
        "games": [list(record.actions) for record in games.recorded.records],
        "thresholds": [TURNS, LEAD, GAIN, HARDLY],
    }
    digest = {"digest": hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]}
    player = analysis_player(scale.player, scale.simulations)
    searched_by = {
        "searched": scale.searched_games,
        "simulations": scale.search_simulations,
        "burden": BURDEN,
        "calibration": player.calibration._asdict(),
    }
    curves, kinds, searched, solved = (
        work.cached(name, known_by, make)
        for name, known_by, make in (
            ("reach-curves", digest, lambda: _curves(work, games)),
            ("play-kinds", digest, lambda: _kinds(work, games)),
            ("searched-plays", digest | searched_by, lambda: _search(work, games, player)),
            ("solved", {"rules": SOLVED.to_dict()}, _solved_turns),
        )
    )
    figure = curves_figure(
        [Curve("", {row["play"]: Estimate(*row[_AHEAD[-1]]) for row in curves["by_ply"]})],
        title=f"{scale.player}@{scale.simulations}: how much farther the winner reaches",
        x_label="plays since the last placement",
        y_label="cells within 4 turns, winner less loser",
        level=0,
    )
    caption = f"{curves['games']:,} games, decided ones only; the band is the 95 % interval"
    return Report(
        title="Reachability control and passing",
        text=paragraphs(docstring_of(plays))[1:],
        tables=[
            _curve_table(curves),
            _kind_table(kinds),
            _searched_table(searched),
            _solved_table(np.array(solved["counts"])),
        ],
        pictures=[Picture("reach", caption, figure)],
        data={"mobility": curves, "plays": kinds, "searched": searched, "solved": solved},
    )


def _by_third(played: Plays, games: int) -> Iterator[tuple[str, np.ndarray, Mean]]:
    """For each third of a game its name, bool[N] the plays in it, and means over games."""

    def mean(values: np.ndarray, where: np.ndarray) -> Estimate:
        return stats.over_games(stats.by_game(values[where], played.game[where], games))

    for number, when in enumerate(THIRDS):
        yield when, played.third == number, mean


def _curves(work: Work, games: SelfplayGames) -> dict[str, Any]:
    """The winner's lead in reach, by third of the game and by play."""
    played, count = plays.plays_of(games), len(games.plies)
    with work.task("mobility", len(played.slot), "positions"):
        legal, cells = plays.reach_of(played.states)
    reward = games.rewards[:, 0][played.game]
    is_won, of_winner = reward != 0, (reward > 0) == (played.mover == 0)
    ahead = np.sign(reward)[:, None] * (cells[:, :, 0] - cells[:, :, 1])
    leads, thirds, by_ply = dict(zip(_AHEAD, ahead.T, strict=True)), [], []
    for when, here, mean in _by_third(played, count):
        here = here & is_won
        winner, loser = (
            stats.by_game(legal[here & mask], played.game[here & mask], count)
            for mask in (of_winner, ~of_winner)
        )
        row = {"when": when} | {key: mean(lead, here) for key, lead in leads.items()}
        row["legal_ahead"] = stats.over_games(winner - loser)
        means = {"legal_winner": winner, "legal_loser": loser}
        thirds.append(row | {key: float(np.nanmean(each)) for key, each in means.items()})
    number = np.asarray(played.states.position.ply) - len(games.rules.order)
    for play in range(int(number.max()) + 1):
        here = (number == play) & is_won
        if here.sum() >= max(10, count // 50):
            row = {"play": play, "games": int(here.sum())}
            row |= {key: stats.over_games(lead[here]) for key, lead in leads.items()}
            row["legal_winner"] = stats.over_games(legal[here & of_winner])
            row["legal_loser"] = stats.over_games(legal[here & ~of_winner])
            by_ply.append(row)
    return {"thirds": thirds, "by_ply": by_ply, "games": count}


def _kinds(work: Work, games: SelfplayGames) -> dict[str, Any]:
    """Frequencies of the kinds of plays in the games, and the results after them."""
    played = plays.plays_of(games)
    with work.task("kinds of plays", len(played.slot), "positions") as on_progress:
        masks = plays.kinds_of(played.states, on_progress)
    chosen, rows = (np.arange(len(played.slot)), played.slot.astype(int)), []
    points = (1 + games.rewards[played.game, played.mover].clip(-1, 1)) / 2
    names = ("gives up territory for reach", "implicit pass")
    for name, mask in zip(names, masks, strict=True):
        is_kind, is_possible = mask[chosen], np.asarray(mask.any(axis=1))
        for when, here, mean in _by_third(played, len(games.plies)):
            possible = here & is_possible
            rows.append(
                {
                    "kind": name,
                    "when": when,
                    "plays": int(here.sum()),
                    "possible": float(is_possible[here].mean()),
                    "chosen": mean(is_kind, here),
                    "chosen_where_possible": mean(is_kind, possible),
                    "points_after": mean(points, here & is_kind),
                    "points_otherwise": mean(points, possible & ~is_kind),
                }
            )
    return {"rows": rows}


def _searches(
    player: Player,
    simulations: int,
    states: State,
    passes: np.ndarray,
    on_progress: Callable[[int], Any],
) -> tuple[np.ndarray, ...]:
    """Searches of positions [N]: int[N] the best play, and float[N] win chances of the player to
    move: by it, without passes, without it, and where the other side had to move, NaN where it
    cannot."""
    how = {"simulations": simulations, "symmetries": player.symmetries}
    search = make_reporting_search(player.evaluate, player.search, **how)

    @jax.jit
    def best_of(states: State, allowed: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        report = search(player.variables, states, key, allowed)
        return report.slots[:, 0], report.qvalues[jnp.arange(len(allowed)), report.slots[:, 0]]

    position = states.position
    handed = State(states.variant, position._replace(player=1 - np.asarray(position.player)))
    can_move = np.asarray(legal_slots(handed)).any(axis=1)
    parts, count = [], len(passes)
    for first in range(0, count, POSITIONS):
        place, key = np.arange(first, first + POSITIONS) % count, jax.random.key(first)
        some, other = (jax.tree.map(lambda x: x[place], each) for each in (states, handed))  # noqa: B023
        everything = np.ones_like(passes[place])
        slot, value = fetch(best_of(some, everything, key))
        but_best = everything.copy()
        but_best[np.arange(POSITIONS), slot] = False
        asked = (some, ~passes[place]), (some, but_best), (other, everything)
        others = [best_of(*each, key)[1] for each in asked]
        parts.append((slot, value, *fetch(others)))
        on_progress(min(first + POSITIONS, count))
    slot, *values = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    *chances, after = (player.calibration.chance(each, players=2) for each in values)
    return slot.astype(int), *chances, np.where(can_move, 1 - after, np.nan)


def _search(work: Work, games: SelfplayGames, player: Player) -> dict[str, Any]:
    """Search positions again: all plays, without implicit passes, without the best play, and with
    the other side to move."""
    scale, played = work.scale.mobility, plays.plays_of(games)
    some = played.game < scale.searched_games
    played = Plays(*jax.tree.map(lambda x: np.asarray(x)[some], played))
    count, (gives_up, passes) = len(played.slot), plays.kinds_of(played.states)
    with work.task("searching without implicit passes", count, "positions") as on_progress:
        how = scale.search_simulations, played.states, passes, on_progress
        slot, chance, without_passes, without_best, handed_over = _searches(player, *how)
    best, legal = (np.arange(count), slot), np.asarray(legal_slots(played.states))
    is_pass, has_other = passes[best], (legal & ~passes).any(axis=1)
    lost, burden = chance - without_passes, handed_over - without_passes
    rows = []
    for when, here, mean in _by_third(played, scale.searched_games):
        passing = here & is_pass & has_other
        # Another best play that has an alternative: what it costs to lose a best play at all.
        plain = here & ~is_pass & (legal.sum(axis=1) > 1)
        rows.append(
            {
                "when": when,
                "positions": int(here.sum()),
                "best_gives_up": mean(gives_up[best], here),
                "best_passes": mean(is_pass, here),
                "passing": int(passing.sum()),
                "cost": mean(lost, passing),
                "costs_a_tenth": mean(lost >= 0.1, passing),
                "control": mean(chance - without_best, plain),
                "moving_loses": mean(burden >= BURDEN, passing & ~np.isnan(burden)),
            }
        )
    return {"rows": rows, "games": scale.searched_games, "simulations": scale.search_simulations}


def _solved_turns() -> dict[str, Any]:
    """Exact counts on 3×3 of positions by the value to move and the value if it were the other's
    turn."""
    values = jax.jit(jax.vmap(functools.partial(value_of, tables_of(SOLVED))))
    counts = np.zeros((3, 3), np.int64)
    for level in reachable_levels(SOLVED):
        in_play = np.asarray(level.position.ply) >= len(SOLVED.order)
        level = jax.tree.map(lambda x, at=in_play: np.asarray(x)[at], level)
        for some, count in batches(level, 1 << 13):
            position = some.position
            other = State(some.variant, position._replace(player=1 - position.player))
            # Both to the player of now, in the second the other had to move.
            now, then = (fetch(values(each))[:count].astype(int) for each in (some, other))
            np.add.at(counts, (now + 1, 1 - then), 1)
    return {"counts": counts.tolist()}


def _curve_table(curves: dict[str, Any]) -> Table:
    rows = [
        [
            row["when"],
            *(Estimate(*row[key]).text() for key in _AHEAD),
            f"{row['legal_winner']:.1f}, {row['legal_loser']:.1f}",
            Estimate(*row["legal_ahead"]).text(),
        ]
        for row in curves["thirds"]
    ]
    heads = ["plays", *(key.replace("ahead_", "reach ") for key in _AHEAD)]
    heads += ["legal actions: winner, loser", "difference"]
    title = "Cells by which the winner's reach is larger, and its legal actions"
    return Table(f"{title} {_INTERVALS}", heads, rows)


def _kind_table(kinds: dict[str, Any]) -> Table:
    keys = ("chosen", "chosen_where_possible", "points_after", "points_otherwise")
    rows = [
        [row["kind"], row["when"], f"{row['plays']:,}", stats.percent(row["possible"])]
        + [Estimate(*row[key]).share() for key in keys]
        for row in kinds["rows"]
    ]
    heads = ["kind", "plays", "number", "possible in", "played", "played where possible"]
    heads += ["wins after it", "wins after another play there"]
    return Table(f"Kinds of plays in the games {_INTERVALS}", heads, rows)


def _searched_table(searched: dict[str, Any]) -> Table:
    rows = []
    for row in searched["rows"]:
        cost, control = (Estimate(*row[key]).share(least=-1) for key in ("cost", "control"))
        keys = "best_gives_up", "best_passes", "costs_a_tenth", "moving_loses"
        gives_up, passes, tenth, loses = (Estimate(*row[key]).share() for key in keys)
        first = [row["when"], f"{row['positions']:,}", gives_up, passes, f"{row['passing']:,}"]
        rows.append([*first, cost, tenth, control, loses])
    heads = ["plays", "positions", "best play gives up territory for reach"]
    heads += ["best play is an implicit pass", "of these", "win chance lost without such plays"]
    heads += ["lost 10 points or more", "lost without another best play", "moving first loses"]
    title = f"Searched again with {searched['simulations']} simulations, {searched['games']} games"
    return Table(f"{title} {_INTERVALS}", heads, rows)


def _solved_table(counts: np.ndarray) -> Table:
    names, total = ("lost", "drawn", "won"), counts.sum()
    rows = [
        [name, *(f"{each:,} ({stats.percent(each / total)})" for each in row)]
        for name, row in zip(names, counts, strict=True)
    ]
    heads = ("to move", *(f"{name} if the other had to move" for name in names))
    title = f"3×3, one stone each, solved: all {total:,} positions after the placements"
    return Table(title, heads, rows)
