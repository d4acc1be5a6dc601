"""Measures how often a player keeps the proven result in late positions of real games."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.table import Table
from rich.text import Text

from train.analysis.late_positions import LatePosition, plies_left, read_late
from train.data.record_dataset import RecordedGames, make_examples
from train.players.basic import Player
from train.players.registry import make_player
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.solver.reachable import batches
from train.solver.values import LOSS
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

_BINS = ((1, 2), (3, 4), (5, 6), (7, 8), (9, 12), (13, 16), (17, 999))


@dataclasses.dataclass(frozen=True)
class LateAccuracy:
    """A player's choices in proven positions.

    Attributes:
      player: its name.
      value: int8[N], proven value for the player to move.
      left: int16[N], plies that the recorded game went on for.
      can_err: bool[N], whether some legal play loses value.
      kept: bool[N], whether the player's choice keeps the value.
      given_away: float32[N], cells of the best margin that the choice gives away; NaN where the
        margins of the plays were not proven.
    """

    player: str
    value: np.ndarray
    left: np.ndarray
    can_err: np.ndarray
    kept: np.ndarray
    given_away: np.ndarray


@dataclasses.dataclass(frozen=True)
class LatePositions:
    """Proven positions as states.

    Attributes:
      rules: of all of them.
      states: [N], on the host.
      best: bool[N, A], the plays that keep the value.
      value: int8[N], for the player to move.
      left: int16[N], plies that the recorded game went on for.
      margins: float32[N, A], lead at the end after each legal play; NaN elsewhere, and in the rows
        of positions without proven margins.
    """

    rules: Rules
    states: State
    best: np.ndarray
    value: np.ndarray
    left: np.ndarray
    margins: np.ndarray


def load_late(path: Path) -> LatePositions:
    """Read a file of late positions and replay its games.

    Raises:
      UsageError: what is wrong with the file.
    """
    numbered = [(n, game) for n, game in enumerate(read_late(path), start=1) if game.proven]
    if not numbered:
        raise UsageError(f"{path}: no proven position")
    places = tuple(f"{path}, game {number}" for number, _ in numbered)
    games = [game for _, game in numbered]
    rules = games[0].record.rules
    for game, place in zip(games, places, strict=True):
        if game.record.rules != rules:
            raise UsageError(f"{place}: its rules differ from those of the first game")
    recorded = RecordedGames(tuple(game.record for game in games), places)
    examples = fetch(make_examples(recorded))
    of_game = np.concatenate([np.full(len(game.proven), i) for i, game in enumerate(games)])
    found = [(game, each) for game in games for each in game.proven]
    proven = [each for _, each in found]
    at = np.searchsorted(examples.game, of_game) + [each.ply for each in proven]
    states = State(
        jax.tree.map(lambda x: x[of_game], examples.variant),
        jax.tree.map(lambda x: x[at], examples.position),
    )
    told = [f"{places[g]}, ply {each.ply}" for g, each in zip(of_game, proven, strict=True)]
    legal = fetch(_legal(states))
    return LatePositions(
        rules=rules,
        states=states,
        best=_best(proven, legal, told),
        value=np.array([each.value for each in proven], np.int8),
        left=np.array([plies_left(game, each.ply) for game, each in found], np.int16),
        margins=_margins(proven, legal, told),
    )


def _best(
    positions: Sequence[LatePosition], legal: np.ndarray, places: Sequence[str]
) -> np.ndarray:
    """bool[N, A]: the plays that keep the value; refuses those that no legal play can be."""
    best = np.zeros_like(legal)
    for row, (position, slots, place) in enumerate(zip(positions, legal, places, strict=True)):
        wrong = set(position.best) - set(np.flatnonzero(slots).tolist())
        if wrong:
            raise UsageError(f"{place}: 'best' has slot {min(wrong)}, which is not legal")
        best[row, list(position.best)] = True
        if position.value == LOSS and (best[row] != slots).any():
            raise UsageError(f"{place}: is lost, so 'best' must have all {slots.sum()} legal plays")
    return best


def _margins(
    positions: Sequence[LatePosition], legal: np.ndarray, places: Sequence[str]
) -> np.ndarray:
    """float32[N, A], see `LatePositions`."""
    margins = np.full(legal.shape, np.nan, np.float32)
    for row, (position, slots, place) in enumerate(zip(positions, legal, places, strict=True)):
        if position.margins is not None:
            if len(position.margins) != slots.sum():
                raise UsageError(
                    f"{place}: {len(position.margins)} margins, but {slots.sum()} legal plays"
                )
            margins[row, slots] = position.margins
    return margins


def late_accuracy(
    name: str | Player, late: LatePositions, *, batch: int, seed: int = 0, is_quiet: bool = False
) -> LateAccuracy:
    """Measure a player of `train.players.registry` in proven positions; shows progress.

    Raises:
      UsageError: an unknown player.
    """
    player = make_player(name, late.rules)
    display = Display(is_quiet=is_quiet)
    with display, display.task(player.name, len(late.value), "positions") as task:
        return late_kept(player, late, batch=batch, key=jax.random.key(seed), on_progress=task)


def late_kept(
    player: Player,
    late: LatePositions,
    *,
    batch: int,
    key: jax.Array,
    on_progress: Any = lambda done: None,
) -> LateAccuracy:
    """Measure a player in proven positions.

    Args:
      player: to measure.
      late: L positions.
      batch: positions that it is asked about at once.
      key: of its draws.
      on_progress: called with the number of positions done.
    """
    kept, can_err, given_away = [], [], []
    done = 0
    rows = {"states": late.states, "best": late.best, "margins": late.margins}
    for index, (part, own) in enumerate(batches(rows, min(batch, len(late.value)))):
        states, best = part["states"], part["best"]
        slots = fetch(player.act(player.variables, states, jax.random.fold_in(key, index)))
        legal = fetch(_legal(states))
        margins = part["margins"]
        # A row of NaN has no margins; NaN in another row is an illegal play.
        most = np.where(np.isnan(margins), -np.inf, margins).max(axis=1)
        given_away.append((most - margins[np.arange(len(best)), slots])[:own])
        kept.append(best[np.arange(len(best)), slots][:own])
        can_err.append((legal & ~best).any(axis=1)[:own])
        done += own
        on_progress(done)
    return LateAccuracy(
        player.name,
        late.value,
        late.left,
        np.concatenate(can_err),
        np.concatenate(kept),
        np.concatenate(given_away),
    )


@jax.jit
def _legal(states: State) -> jax.Array:
    return jax.vmap(actions.legal_slots)(states)


def late_table(result: LateAccuracy) -> Table:
    """Positions and the share in which the result is kept, by plies left."""
    table = Table(
        title=Text(f"{result.player} keeps the proven result"),
        caption="late positions of recorded games, by plies that the game went on for; cells: "
        "mean margin given away where all margins are proven",
        caption_justify="left",
    )
    for heading in ("plies left", "all", "kept", "where one can err", "kept", "margins", "cells"):
        table.add_column(heading, justify="left" if heading == "plies left" else "right")
    for group, figures in late_record(result)["positions"].items():
        if figures["total"]:
            total, strict = figures["total"], figures["total_where_one_can_err"]
            table.add_row(
                group,
                f"{total:,}",
                _percent(figures["kept"]),
                f"{strict:,}",
                _percent(figures["kept_where_one_can_err"]),
                f"{figures['total_with_margins']:,}",
                "-" if figures["given_away"] is None else f"{figures['given_away']:.2f}",
            )
    return table


def players_table(results: Sequence[LateAccuracy]) -> Table:
    """Several players in the same positions: the share kept where one can err, by plies left."""
    records = [late_record(result)["positions"] for result in results]
    groups = [name for name, figures in records[0].items() if figures["total_where_one_can_err"]]
    table = Table(
        title="proven results kept where one can err, by plies left",
        caption="cells: mean margin given away where all margins are proven",
        caption_justify="left",
    )
    table.add_column("player", overflow="fold")
    for heading in (*groups, "cells"):
        table.add_column(heading, justify="right")
    for result, figures in zip(results, records, strict=True):
        shares = [_percent(figures[name]["kept_where_one_can_err"]) for name in groups]
        away = figures["all"]["given_away"]
        table.add_row(Text(result.player), *shares, "-" if away is None else f"{away:.2f}")
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def late_record(result: LateAccuracy) -> dict[str, Any]:
    """The table as JSON-ready figures."""
    left = result.left
    groups = {"all": left > 0}
    for first, last in _BINS:
        name = f"{first} to {last}" if last < 999 else f"{first} and more"
        groups[name] = (left >= first) & (left <= last)
    return {
        "player": result.player,
        "positions": {name: _figures(result, where) for name, where in groups.items()},
    }


def _figures(result: LateAccuracy, where: np.ndarray) -> dict[str, Any]:
    strict = where & result.can_err
    known = where & ~np.isnan(result.given_away)
    return {
        "total": int(where.sum()),
        "kept": float(result.kept[where].mean()) if where.any() else None,
        "total_where_one_can_err": int(strict.sum()),
        "kept_where_one_can_err": float(result.kept[strict].mean()) if strict.any() else None,
        "total_with_margins": int(known.sum()),
        "given_away": float(result.given_away[known].mean()) if known.any() else None,
    }
