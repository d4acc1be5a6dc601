"""Measures how often a player keeps the value of the game in sampled positions of a board."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.table import Table
from rich.text import Text

from train.arena.result import wilson_interval
from train.players.basic import Player
from train.players.registry import make_player
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.solver.alphabeta import AlphaBeta, check_alphabeta
from train.solver.boards import board_of
from train.solver.reachable import batches
from train.solver.sampled import sample_positions
from train.solver.values import DRAW, LOSS, WIN
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import Position, State

_VALUES = {"won": WIN, "drawn": DRAW, "lost": LOSS}
_WALLS = ((0, 4), (5, 6), (7, 8), (9, 10), (11, 999))


@dataclasses.dataclass(frozen=True)
class Sample:
    """Which positions are sampled; see `train.solver.sampled.sample_positions`.

    Attributes:
      positions: number of positions.
      min_walls: fewest walls of a position.
      seed: random seed, that of the player's choices too.
    """

    positions: int
    min_walls: int
    seed: int

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise UsageError(f"accuracy: positions ({self.positions}) must be at least 1")
        if self.min_walls < 0:
            raise UsageError(f"accuracy: min_walls ({self.min_walls}) must not be negative")


@dataclasses.dataclass(frozen=True)
class SampledAccuracy:
    """A player's choices in sampled positions.

    Attributes:
      player: its name.
      rules: of the board.
      sample: which positions.
      value: int8[N], value of each position for the player to move. N is below that of the sample
        where the work was stopped.
      can_err: bool[N], whether some legal play loses value.
      kept: bool[N], whether the player's choice keeps the value.
      walls: int16[N], walls of each position.
    """

    player: str
    rules: Rules
    sample: Sample
    value: np.ndarray
    can_err: np.ndarray
    kept: np.ndarray
    walls: np.ndarray


def sampled_accuracy(
    name: str | Player,
    rules: Rules,
    sample: Sample,
    *,
    batch: int,
    on_progress: Callable[[int], None] = lambda done: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> SampledAccuracy:
    """Measure a player of `train.players.registry` in sampled positions of a board.

    Args:
      name: of the player, or the player.
      rules: of two players with one stone each, at most 4x4 cells.
      sample: which positions.
      batch: positions that the player chooses in at once.
      on_progress: called with the number of positions solved so far.
      should_stop: asked after each position.

    Raises:
      UsageError: an unknown player, rules that alpha-beta does not solve, or too few positions.
    """
    check_alphabeta(rules)
    player = make_player(name, rules)
    states = sample_positions(rules, sample.positions, min_walls=sample.min_walls, seed=sample.seed)
    slots = _choices(player, states, batch=batch, key=jax.random.key(sample.seed))
    search, found = AlphaBeta(rules), []
    for row, slot in enumerate(slots):
        position = jax.tree.map(lambda x, row=row: x[row], states.position)
        found.append(_solve(search, position, int(slot)))
        on_progress(len(found))
        if should_stop():
            break
    value, can_err, kept, walls = (np.array(column) for column in zip(*found, strict=True))
    return SampledAccuracy(player.name, rules, sample, value, can_err, kept, walls)


def _choices(player: Player, states: State, *, batch: int, key: jax.Array) -> np.ndarray:
    """int32[N]: the slots that a player chooses."""
    batch, parts = min(batch, len(states.position.ply)), []
    for index, (part, own) in enumerate(batches(states, batch)):
        chosen = player.act(player.variables, part, jax.random.fold_in(key, index))
        parts.append(fetch(chosen)[:own])
    return np.concatenate(parts)


def _solve(search: AlphaBeta, position: Position, slot: int) -> tuple[int, bool, bool, int]:
    """Value, whether one can err, whether the slot keeps the value, and walls of a position."""
    board = board_of(position, search.size)
    value, walls = search.value(board), board.num_walls(search.size)
    return value, search.can_err(board, value), search.keeps(board, slot, value), walls


def sampled_table(result: SampledAccuracy) -> Table:
    """Positions and the share in which the value is kept: all, by value and by walls."""
    sample, done = result.sample, len(result.value)
    stopped = "" if done == sample.positions else f"stopped after {done:,} of "
    caption = (
        f"rules {name_of(result.rules)} · {stopped}{sample.positions:,} positions of random games "
        f"with {sample.min_walls} or more walls, seed {sample.seed} · 95 % intervals by Wilson"
    )
    table = Table(
        title=Text(f"{result.player} keeps the value of the game"),
        caption=caption,
        caption_justify="left",
    )
    for heading in ("positions", "all", "kept", "95 %", "where one can err", "kept"):
        table.add_column(heading, justify="left" if heading == "positions" else "right")
    for name, figures in sampled_record(result)["positions"].items():
        if figures["total"]:
            low, high = figures["interval_95"]
            strict = figures["kept_where_one_can_err"]
            table.add_row(
                name,
                f"{figures['total']:,}",
                f"{figures['kept']:.2%}",
                f"{100 * low:.2f} to {100 * high:.2f}",
                f"{figures['total_where_one_can_err']:,}",
                "-" if strict is None else f"{strict:.2%}",
            )
    return table


def sampled_record(result: SampledAccuracy) -> dict[str, Any]:
    """The table as JSON-ready figures."""
    groups = {"all": np.ones(len(result.value), np.bool_)}
    groups |= {name: result.value == value for name, value in _VALUES.items()}
    for first, last in _WALLS:
        name = f"{first} to {last} walls" if last < 999 else f"from {first} walls"
        groups[name] = (result.walls >= first) & (result.walls <= last)
    return {
        "player": result.player,
        "rules": result.rules.to_dict(),
        "sample": dataclasses.asdict(result.sample),
        "positions": {name: _figures(result, where) for name, where in groups.items()},
    }


def _figures(result: SampledAccuracy, where: np.ndarray) -> dict[str, Any]:
    strict = where & result.can_err
    every, strict_kept = result.kept[where], result.kept[strict]
    return {
        "total": len(every),
        "kept": float(every.mean()) if len(every) else None,
        "interval_95": _interval(every),
        "total_where_one_can_err": len(strict_kept),
        "kept_where_one_can_err": float(strict_kept.mean()) if len(strict_kept) else None,
        "interval_95_where_one_can_err": _interval(strict_kept),
    }


def _interval(kept: np.ndarray) -> tuple[float, float] | None:
    return wilson_interval(float(kept.mean()), len(kept)) if len(kept) else None
