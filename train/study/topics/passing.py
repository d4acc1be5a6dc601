"""What implicit passes are worth: positions searched again with and without them.

N positions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from train.players.basic import Player
from train.review.positions import make_search_among
from train.runtime.host import fetch
from train.study.frame.means import Mean, by_game, mean_of
from train.study.frame.own_games import OwnGames, analyst_of
from train.study.frame.report import Table
from train.study.frame.work import Work
from train.study.topics.play_kinds import BURDEN, POSITIONS, kinds_of
from train.study.topics.plays import THIRDS, plays_of
from wallgo_jax.game import actions
from wallgo_jax.game.state import State


class _Searched(NamedTuple):
    """Searches of positions [N]; win chances are those of the player to move, by the best play."""

    slot: np.ndarray  # int[N], the best play
    best: np.ndarray  # float[N]
    without_passes: np.ndarray  # float[N]
    without_best: np.ndarray  # float[N]
    handed_over: np.ndarray  # float[N], where the other side had to move; NaN where it cannot


def _searches(
    analyst: Player,
    simulations: int,
    states: State,
    passes: np.ndarray,
    on_progress: Callable[[int], None],
) -> _Searched:
    search, legal = make_search_among(analyst, simulations), np.asarray(_legal_masks(states))
    position = states.position
    handed = State(states.variant, position._replace(player=1 - np.asarray(position.player)))
    can_move = np.asarray(_legal_masks(handed)).any(axis=1)
    found, count = [], len(legal)
    for first in range(0, count, POSITIONS):
        place, key = np.arange(first, first + POSITIONS) % count, jax.random.key(first)
        some, other = (jax.tree.map(lambda x: x[place], each) for each in (states, handed))  # noqa: B023
        everything = np.ones_like(legal[place])
        slot, value = fetch(search(analyst.variables, some, everything, key))
        but_best = everything.copy()
        but_best[np.arange(POSITIONS), slot] = False
        others = [
            search(analyst.variables, some, ~passes[place], key)[1],
            search(analyst.variables, some, but_best, key)[1],
            search(analyst.variables, other, everything, key)[1],
        ]
        found.append((slot, value, *fetch(others)))
        on_progress(min(first + POSITIONS, count))
    slot, *values = (np.concatenate(part)[:count] for part in zip(*found, strict=True))
    best, without_passes, without_best, after = (analyst.chance(each) for each in values)
    handed_over = np.where(can_move, 1 - after, np.nan)
    return _Searched(slot.astype(int), best, without_passes, without_best, handed_over)


def search_again(work: Work, games: OwnGames) -> dict[str, Any]:
    """Search positions again: all plays, without implicit passes, without the best play, and with
    the other side to move."""
    scale = work.scale.mobility
    analyst = analyst_of(scale.player, scale.simulations)
    played = plays_of(games)
    chosen = np.flatnonzero(played.game < scale.searched_games)
    states = jax.tree.map(lambda x: np.asarray(x)[chosen], played.states)
    kinds = kinds_of(states)
    with work.task("searching without implicit passes", len(chosen), "positions") as on_progress:
        found = _searches(
            analyst, scale.search_simulations, states, np.asarray(kinds.passes), on_progress
        )
    rows_of = np.arange(len(chosen)), found.slot
    game, third, count = played.game[chosen], played.third[chosen], scale.searched_games
    legal = np.asarray(_legal_masks(states))
    has_other = (legal & ~kinds.passes).any(axis=1)
    is_pass = kinds.passes[rows_of]
    lost = found.best - found.without_passes
    burden = found.handed_over - found.without_passes
    rows = []
    for number, when in enumerate(THIRDS):
        here = third == number
        passing = here & is_pass & has_other
        # Another best play that has an alternative: what it costs to lose a best play at all.
        plain = here & ~is_pass & (legal.sum(axis=1) > 1)
        told = passing & ~np.isnan(burden)

        def over(values: np.ndarray, mask: np.ndarray) -> Mean:
            return mean_of(by_game(values[mask], game[mask], count))

        rows.append(
            {
                "when": when,
                "positions": int(here.sum()),
                "best_gives_up": over(kinds.gives_up[rows_of], here),
                "best_passes": over(is_pass, here),
                "passing": int(passing.sum()),
                "cost": over(lost, passing),
                "costs_a_tenth": over(lost >= 0.1, passing),
                "control": over(found.best - found.without_best, plain),
                "moving_loses": over(burden >= BURDEN, told),
            }
        )
    return {"rows": rows, "games": count, "simulations": scale.search_simulations}


@jax.jit
def _legal_masks(states: State) -> jax.Array:
    return jax.vmap(actions.legal_slots)(states)


def table_of(searched: dict[str, Any]) -> Table:
    """The rows of `search_again` as a table."""
    rows = [
        (
            row["when"],
            f"{row['positions']:,}",
            Mean(*row["best_gives_up"]).share(),
            Mean(*row["best_passes"]).share(),
            f"{row['passing']:,}",
            Mean(*row["cost"]).text("%"),
            Mean(*row["costs_a_tenth"]).share(),
            Mean(*row["control"]).text("%"),
            Mean(*row["moving_loses"]).share(),
        )
        for row in searched["rows"]
    ]
    heads = (
        "plays",
        "positions",
        "best play gives up territory for reach",
        "best play is an implicit pass",
        "of these",
        "win chance lost without such plays",
        "lost 10 points or more",
        "lost without another best play",
        "moving first loses",
    )
    title = (
        f"Searched again with {searched['simulations']} simulations, {searched['games']} games "
        "(95 % over games)"
    )
    return Table(title, heads, tuple(rows))
