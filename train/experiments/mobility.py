"""Reach and implicit passes, measured over many games instead of single examples.

A win chance is that of the best play that a search finds. Because the best play is chosen by its
value, leaving any best play out costs something; the column of other best plays says how much.

The games are the player's own, without the placements. Intervals are over these games, all of one
training.

If the side to move loses, but would win if the opponent had to move, then a pass would turn the
game. On the solved board such positions are counted exactly.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis.late_positions import legal_slots
from train.experiments import lab, plays
from train.experiments.plays import BURDEN, GAIN, HARDLY, LEAD, POSITIONS, THIRDS, TURNS, Plays
from train.experiments.selfplay_games import OwnGames, selfplay
from train.experiments.size import SOLVED
from train.experiments.tables import Estimate, Table, over_games
from train.metrics.intervals import Curve, curves_figure
from train.players.basic import Player
from train.review.player import make_analysis_player
from train.runtime.host import batches, fetch
from train.search.report import make_reporting_search
from train.solver.exact_player import tables_of
from train.solver.positions import reachable_levels
from train.solver.tablebase import value_of
from wallgo_jax.game.state import State

_AHEAD = tuple(f"ahead_{turns}" for turns in range(1, TURNS + 1))
_ENDS = ("mean", "low", "high")
_REACH = [["plays", "when"], *([key, key, "plain"] for key in _AHEAD)]
_REACH += [["legal actions, winner less loser", "legal_ahead", "plain"]]
_KINDS = [["kind", "kind"], ["plays", "when"], ["number", "plays"], ["possible, %", "possible"]]
_KINDS += [["played, %", "chosen"], ["where possible, %", "chosen_where_possible"]]
_KINDS += [["wins after it, %", "points_after"], ["after others there", "points_otherwise"]]
_SEARCHED = [["plays", "when"], ["positions", "positions"]]
_SEARCHED += [["best play gives up territory, %", "best_gives_up"]]
_SEARCHED += [["best play passes, %", "best_passes"], ["of these", "passing"]]
_SEARCHED += [["points lost without such plays", "cost", "points"]]
_SEARCHED += [["lost 10 points or more, %", "costs_a_tenth"]]
_SEARCHED += [["lost without another best play", "control", "points"]]
_SEARCHED += [["moving first loses, %", "moving_loses"]]
Mean = Callable[[np.ndarray, np.ndarray], Estimate]
"""(values [N], where bool[N]) -> their mean, over games."""


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    player: str = "pretrained:wallzero-4stone-v2"
    """A network, whose games against itself are looked at."""
    simulations: int = 64
    """Simulations of its moves in those games."""
    games: int = 1024
    searched_games: int = 64
    """Games whose moves are searched again."""
    search_simulations: int = 256
    """Simulations of those searches."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Look at games of the player against itself, and search some of them again."""
    scale = work.scale
    lab.check_network(scale.player)
    games = selfplay(work, scale.player, simulations=scale.simulations, games=scale.games)
    settings = {"games": games.actions, "thresholds": [TURNS, LEAD, GAIN, HARDLY]}
    key = {"digest": hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]}
    player = make_analysis_player(scale.player, games.rules, simulations=scale.simulations)
    searched_by = {
        "searched": scale.searched_games,
        "simulations": scale.search_simulations,
        "burden": BURDEN,
        "calibration": player.calibration._asdict(),
    }
    curves, kinds, searched, solved = (
        work.keep(name, known_by, make)
        for name, known_by, make in (
            ("reach-curves", key, lambda: _curves(games)),
            ("play-kinds", key, lambda: _kinds(games)),
            ("searched-plays", key | searched_by, lambda: _search(scale, games, player)),
            ("solved", {"rules": SOLVED.to_dict()}, _solved_turns),
        )
    )
    points = {row["play"]: [row[_AHEAD[-1]][x] for x in _ENDS] for row in curves["by_ply"]}
    figure = curves_figure(
        [Curve("", points)],
        title=f"{scale.player}@{scale.simulations}: how much farther the winner reaches",
        x_label="plays since the last placement",
        y_label="cells within 4 turns, winner less loser",
        level=0,
    )
    caption = f"{curves['games']:,} games, decided ones only; the band is the 95 % interval"
    work.save_figure("reach", figure, caption=caption)
    tables = {
        "reach": Table("Cells by which the winner's reach is larger", _REACH, curves["thirds"]),
        "kinds": Table("Kinds of plays in the games", _KINDS, kinds["rows"]),
        "searched": Table("Searched again", _SEARCHED, searched["rows"]),
        "solved": _solved_table(np.array(solved["counts"])),
    }
    return work.finish(tables, by_ply=curves["by_ply"])


def by_game(values: np.ndarray, game: np.ndarray, games: int) -> np.ndarray:
    """float[G]: the mean over each game's positions; NaN for a game without any."""
    counts = np.bincount(game, minlength=games)
    sums = np.bincount(game, values.astype(float), minlength=games)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _by_third(played: Plays, games: int) -> Iterator[tuple[str, np.ndarray, Mean]]:
    """For each third of a game its name, bool[N] the plays in it, and means over games."""

    def mean(values: np.ndarray, where: np.ndarray) -> Estimate:
        return over_games(by_game(values[where], played.game[where], games))

    for number, when in enumerate(THIRDS):
        yield when, played.third == number, mean


def _curves(games: OwnGames) -> dict[str, Any]:
    """The winner's lead in reach, by third of the game and by play."""
    played, count = plays.plays_of(games), len(games.plies)
    legal, cells = plays.reach_of(played.states)
    reward = games.rewards[:, 0][played.game]
    is_won, of_winner = reward != 0, (reward > 0) == (played.mover == 0)
    ahead = np.sign(reward)[:, None] * (cells[:, :, 0] - cells[:, :, 1])
    leads, thirds, by_ply = dict(zip(_AHEAD, ahead.T, strict=True)), [], []
    for when, here, mean in _by_third(played, count):
        here = here & is_won
        winner, loser = (
            by_game(legal[here & mask], played.game[here & mask], count)
            for mask in (of_winner, ~of_winner)
        )
        row = {"when": when} | {key: mean(lead, here) for key, lead in leads.items()}
        row["legal_ahead"] = over_games(winner - loser)
        means = {"legal_winner": winner, "legal_loser": loser}
        thirds.append(row | {key: float(np.nanmean(each)) for key, each in means.items()})
    number = np.asarray(played.states.position.ply) - len(games.rules.order)
    for play in range(int(number.max()) + 1):
        here = (number == play) & is_won
        if here.sum() >= max(10, count // 50):
            row = {"play": play, "games": int(here.sum())}
            row |= {key: over_games(lead[here]) for key, lead in leads.items()}
            row["legal_winner"] = over_games(legal[here & of_winner])
            row["legal_loser"] = over_games(legal[here & ~of_winner])
            by_ply.append(row)
    return {"thirds": thirds, "by_ply": by_ply, "games": count}


def _kinds(games: OwnGames) -> dict[str, Any]:
    """Frequencies of the kinds of plays in the games, and the results after them."""
    played = plays.plays_of(games)
    masks = plays.kinds_of(played.states)
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
                    "possible": {"kept": int(is_possible[here].sum()), "of": int(here.sum())},
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
    slot, *values = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    *chances, after = (player.calibration.chance(each, players=2) for each in values)
    return slot.astype(int), *chances, np.where(can_move, 1 - after, np.nan)


def _search(scale: Scale, games: OwnGames, player: Player) -> dict[str, Any]:
    """Search positions again: all plays, without implicit passes, without the best play, and with
    the other side to move."""
    played = plays.plays_of(games)
    some = played.game < scale.searched_games
    played = Plays(*jax.tree.map(lambda x: np.asarray(x)[some], played))
    count, (gives_up, passes) = len(played.slot), plays.kinds_of(played.states)
    how = scale.search_simulations, played.states, passes
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
    return {"rows": rows}


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


def _solved_table(counts: np.ndarray) -> Table:
    names, total = ("lost", "drawn", "won"), counts.sum()
    rows = []
    for name, row in zip(names, counts.tolist(), strict=True):
        cells = {to: f"{each:,} ({each / total:.1%})" for to, each in zip(names, row, strict=True)}
        rows.append({"now": name} | cells)
    columns = [["to move", "now"], *([f"{to} if the other had to move", to] for to in names)]
    title = f"3×3, one stone each, solved: all {total:,} positions after the placements"
    return Table(title, columns, rows)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
