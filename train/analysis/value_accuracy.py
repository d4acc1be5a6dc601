"""Measures how often a player keeps the value of the game, in every position of a solved board."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from rich.table import Table
from rich.text import Text

from train.players.basic import Player
from train.players.registry import make_player
from train.runtime.compiled import CompiledFunction
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.memory import MemoryEstimate, check_fits, device_memory, tree_bytes
from train.solver.reachable import batches, reachable_levels
from train.solver.tablebase import (
    Tables,
    check_tables,
    make_tables,
    optimal_slots,
    value_of,
)
from train.solver.values import DRAW, LOSS, WIN
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import State

DEFAULT_BATCH = 512
_VALUES = {"won": WIN, "drawn": DRAW, "lost": LOSS}


@dataclasses.dataclass(frozen=True)
class ValueAccuracy:
    """A player's choices in every reachable position before the end of the game.

    Attributes:
      player: its name.
      rules: of the board.
      value: int8[N], value of the game in each position for the player to move.
      can_err: bool[N], whether some legal action loses value.
      kept: bool[N], whether the player's choice keeps the value.
      ply: int16[N], plies before each position.
    """

    player: str
    rules: Rules
    value: np.ndarray
    can_err: np.ndarray
    kept: np.ndarray
    ply: np.ndarray

    def share(self, where: np.ndarray) -> tuple[int, float | None]:
        """The number of those positions, and the share in which the player keeps the value, None
        where there are no such positions."""
        total = int(where.sum())
        return total, float(self.kept[where].mean()) if total else None


def value_accuracy(
    name: str | Player,
    rules: Rules,
    *,
    batch: int = DEFAULT_BATCH,
    seed: int = 0,
    is_quiet: bool = False,
) -> ValueAccuracy:
    """Measure a player of `train.players.registry` in every position; shows progress.

    Raises:
      UsageError: an unknown player, rules without tables, or a batch below 1.
    """
    check_tables(rules)
    if batch < 1:
        raise UsageError(f"accuracy: batch ({batch}) must be at least 1")
    display = Display(is_quiet=is_quiet)
    with display:
        with display.task("solving the board", 1, "boards"):
            tables = make_tables(rules)
            levels = list(reachable_levels(rules, seed=seed))
        total = sum(len(level.position.ply) for level in levels)
        player = make_player(name, rules)
        # A batch larger than all that it can hold would only be padded.
        batch = min(batch, max(DEFAULT_BATCH, *(len(level.position.ply) for level in levels)))
        player = _compiled(player, levels, batch)
        with display.task(player.name, total, "positions") as task:
            return value_kept(
                player,
                rules,
                tables,
                levels,
                batch=batch,
                key=jax.random.key(seed),
                on_progress=task,
            )


def _compiled(player: Player, levels: list[State], batch: int) -> Player:
    """The player with its choices compiled for a batch, which is refused where it does not fit."""
    states = jax.tree.map(lambda x: jax.ShapeDtypeStruct((batch, *x.shape[1:]), x.dtype), levels[0])
    given = (player.variables, states, jax.random.key(0))
    act = CompiledFunction(jax.jit(player.act), lambda: given)
    held = [
        MemoryEstimate("positions", tree_bytes(states), ("batch",)),
        MemoryEstimate("weights", tree_bytes(player.variables), ("the size of the network",)),
    ]
    playing = MemoryEstimate("the player's choices", act.bytes, ("batch", "simulations"))
    check_fits(held, device_memory(), programs=[playing])
    return player._replace(act=act)


def value_kept(
    player: Player,
    rules: Rules,
    tables: Tables,
    levels: list[State],
    *,
    key: jax.Array,
    batch: int = DEFAULT_BATCH,
    on_progress: Callable[[int], None] = lambda done: None,
) -> ValueAccuracy:
    """Measure a player in every position of the levels.

    Args:
      player: the player.
      rules: of the board.
      tables: solution of the board.
      levels: positions [N] before the end of the game.
      key: split by level and batch.
      batch: positions at once.
      on_progress: called with the number of positions done so far.
    """
    found: list[Any] = []
    done = 0
    for depth, level in enumerate(levels):
        level_key = jax.random.fold_in(key, depth)
        for index, (states, own) in enumerate(batches(level, batch)):
            slots = player.act(player.variables, states, jax.random.fold_in(level_key, index))
            compared = fetch(_compare(tables, states, slots))
            found.append([column[:own] for column in (*compared, states.position.ply)])
            done += own
            on_progress(done)
    value, can_err, kept, ply = (np.concatenate(column) for column in zip(*found, strict=True))
    return ValueAccuracy(player.name, rules, value, can_err, kept, ply)


@jax.jit
def _compare(
    tables: Tables, states: State, slots: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """int8[B] values, bool[B] whether some slot loses value, bool[B] whether this slot keeps it."""

    def compare(state: State, slot: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        best = optimal_slots(tables, state)
        legal = actions.legal_slots(state)
        return value_of(tables, state), (legal & ~best).any(), best[slot]

    return jax.vmap(compare)(states, slots)


def accuracy_table(result: ValueAccuracy) -> Table:
    """Positions and the share in which the value is kept, all and by value."""
    table = Table(
        title=Text(f"{result.player} keeps the value of the game"),
        caption=f"rules {name_of(result.rules)} · every reachable position",
        caption_justify="left",
    )
    for heading in ("positions", "all", "kept", "where one can err", "kept"):
        table.add_column(heading, justify="left" if heading == "positions" else "right")
    for name, where in _groups(result).items():
        every, strict = result.share(where), result.share(where & result.can_err)
        table.add_row(name, *_cells(*every), *_cells(*strict))
    return table


def _cells(total: int, share: float | None) -> tuple[str, str]:
    return f"{total:,}", "-" if share is None else f"{share:.2%}"


def accuracy_record(result: ValueAccuracy) -> dict[str, Any]:
    """The table as JSON-ready figures, and the same by ply."""
    plies = {f"ply {ply}": result.ply == ply for ply in np.unique(result.ply)}
    return {
        "player": result.player,
        "rules": result.rules.to_dict(),
        "positions": {
            name: _figures(result, where) for name, where in (_groups(result) | plies).items()
        },
    }


def _groups(result: ValueAccuracy) -> dict[str, np.ndarray]:
    by_value = {name: result.value == value for name, value in _VALUES.items()}
    return {"all": np.ones(len(result.value), np.bool_)} | by_value


def _figures(result: ValueAccuracy, where: np.ndarray) -> dict[str, Any]:
    every, strict = result.share(where), result.share(where & result.can_err)
    return {
        "total": every[0],
        "kept": every[1],
        "total_where_one_can_err": strict[0],
        "kept_where_one_can_err": strict[1],
    }
