"""Measures how often a player keeps the value of the game in positions whose value is known: every
position of a solved board, sampled ones of a larger board, or proven late positions of games.

N positions, A slots, B positions at once.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from train.analysis.late_positions import LatePositions, pairs_of_plies
from train.arena.figures import wilson_interval
from train.metrics.intervals import Interval, intervals_figure
from train.players.basic import Player, act_by
from train.runtime.display import Display, Table
from train.runtime.host import batches, fetch
from train.runtime.results import Result
from train.search.search import Search
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import BY_SEARCH, BY_TABLES, DRAW, LOSS, WIN, board_of, check_solvable
from train.solver.positions import reachable_levels, sample_positions
from train.solver.tablebase import Tables, make_tables, optimal_slots, value_of
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_BATCH = 512
_VALUES = {"won": WIN, "drawn": DRAW, "lost": LOSS}
_WALLS = {
    "0 to 4 walls": (0, 4),
    "5 to 6 walls": (5, 6),
    "7 to 8 walls": (7, 8),
    "9 to 10 walls": (9, 10),
    "from 11 walls": (11, 999),
}
OnProgress = Callable[[int], Any]


@dataclasses.dataclass(frozen=True, repr=False)
class Accuracy(Result):
    """A player's choices in positions whose value is known.

    Attributes:
      player: its name.
      rules: of the positions.
      value: int8[N], value of each position for the player to move.
      can_err: bool[N], whether some legal play loses value.
      kept: bool[N], whether the player's choice keeps the value.
      by: what positions are grouped by: `ply`, `walls` or `plies left`.
      number: int[N], its number for each position.
      caption: which positions they are.
      about: how they were chosen, JSON-ready.
      given_away: float32[N], cells of the best margin that the choice gives away; NaN where the
        margins of the plays are not known; None where no margins are.
      agreed: float32[N], 1 where the player's value has the sign of the proven one, else 0; NaN
        where one of them is 0 or the player has no value; None where no margins are.
      is_interrupted: a signal ended the work.
    """

    player: str
    rules: Rules
    value: np.ndarray
    can_err: np.ndarray
    kept: np.ndarray
    by: str
    number: np.ndarray
    caption: str = "every reachable position"
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    given_away: np.ndarray | None = None
    agreed: np.ndarray | None = None
    is_interrupted: bool = False
    on_stop = f"the positions solved so far count; {Result.on_stop}"

    def __repr__(self) -> str:
        row = self.rows()[0]
        return (
            f"<{self.player}: keeps the value in {row['kept']:.1%} of {row['total']:,} positions>"
        )

    @property
    def is_exact(self) -> bool:
        """Whether the positions are all of a board, so that nothing is left to chance."""
        return self.by == "ply"

    def groups(self) -> dict[str, np.ndarray]:
        """bool[N] for each group of positions."""
        groups = {"all": np.ones(len(self.value), np.bool_)}
        if self.given_away is None:
            groups |= {name: self.value == value for name, value in _VALUES.items()}
        if self.is_exact:
            return groups | {f"ply {ply}": self.number == ply for ply in np.unique(self.number)}
        ranges = _WALLS if self.by == "walls" else pairs_of_plies(self.number)
        for name, (first, last) in ranges.items():
            groups[name] = (self.number >= first) & (self.number <= last)
        return groups

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each group of positions: how many, the share in which the value is kept, and
        both where one can err."""
        groups = self.summary()["positions"].items()
        return [{"positions": name} | figures for name, figures in groups if figures["total"]]

    def figure(self) -> "Figure":
        """The share kept in each group where one can err, as a figure of matplotlib."""
        shown = []
        for row in self.rows():
            total = row["total_where_one_can_err"]
            kept = row["kept_where_one_can_err"]
            if total:
                spread = row.get("interval_95_where_one_can_err", (kept, kept))
                shown.append(Interval(f"{row['positions']} ({total:,})", kept, *spread))
        return intervals_figure(
            shown,
            title=f"{self.player} keeps the value of the game",
            x_label="share of the positions in which one can err",
            is_share=True,
        )

    def summary(self) -> dict[str, Any]:
        """What `accuracy --json` writes: of each group how many, the share in which the value is
        kept, and both where one can err; of late positions the share in which the signs of values
        agree."""
        positions = {}
        for name, where in self.groups().items():
            figures: dict[str, Any] = {}
            for words, group in (("", where), ("_where_one_can_err", where & self.can_err)):
                share = _mean(self.kept[group])
                figures |= {f"total{words}": int(group.sum()), f"kept{words}": share}
                if not self.is_exact:
                    figures[f"interval_95{words}"] = _interval(self.kept[group])
            if self.given_away is not None:
                known = self.given_away[where & ~np.isnan(self.given_away)]
                figures |= {"total_with_margins": len(known), "given_away": _mean(known)}
            if self.agreed is not None:
                known = self.agreed[where & ~np.isnan(self.agreed)]
                figures |= {"total_with_values": len(known), "agreed": _mean(known)}
                figures["interval_95_agreed"] = _interval(known)
            positions[name] = figures
        rules = {"player": self.player, "rules": self.rules.to_dict()}
        return {**rules, **self.about, "positions": positions}

    def table(self) -> Table:
        """The figures for a terminal; of a solved board without those of each ply."""
        kept = "kept" if self.is_exact else "kept (95 %)"
        heads = ["positions", "all", kept, "where one can err", kept]
        if self.agreed is not None:
            heads = [self.by, "all", "can err", kept, "signs agree (95 %)", "cells (margins)"]
        rows = []
        for name, figures in self.summary()["positions"].items():
            if name.startswith("ply") or not (figures["total"] or self.is_exact):
                continue
            row = [name]
            for words in ("", "_where_one_can_err"):
                ends = figures.get(f"interval_95{words}")
                row += [f"{figures[f'total{words}']:,}", _shown(figures[f"kept{words}"], ends=ends)]
            if self.agreed is not None:
                # What is kept of all positions goes: where no play can err, all is.
                del row[2]
                row.append(_shown(figures["agreed"], ends=figures["interval_95_agreed"]))
                cells = _shown(figures["given_away"], ".2f")
                row.append(f"{cells} ({figures['total_with_margins']:,})")
            rows.append(row)
        caption = f"rules {name_of(self.rules)} · {self.caption}"
        return Table(f"{self.player} keeps the value of the game", heads, rows, caption)


def players_table(results: Sequence[Accuracy]) -> Table:
    """Several players in the same late positions: the share kept where one can err."""
    records = [result.summary()["positions"] for result in results]
    groups = [name for name, figures in records[0].items() if figures["total_where_one_can_err"]]
    rows = []
    for result, figures in zip(results, records, strict=True):
        shares = [_shown(figures[name]["kept_where_one_can_err"], ".1%") for name in groups]
        rows.append([result.player, *shares, _shown(figures["all"]["given_away"], ".2f")])
    title = "proven results kept where one can err, by plies left"
    caption = "cells: mean margin given away where all margins are proven"
    return Table(title, ("player", *groups, "cells"), rows, caption)


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _interval(values: np.ndarray) -> tuple[float, float] | None:
    return wilson_interval(float(values.mean()), len(values)) if len(values) else None


def _shown(
    figure: float | None, style: str = ".2%", *, ends: tuple[float, float] | None = None
) -> str:
    if figure is None:
        return "-"
    if ends is None:
        return format(figure, style)
    return "{:.1f}% ({:.1f}–{:.1f})".format(*(100 * part for part in (figure, *ends)))


def _choices(
    player: Player, states: State, *, batch: int, key: jax.Array
) -> Iterator[tuple[State, Any, int]]:
    """For each batch of states the batch, the slots int32[B] that a player chooses, and the number
    of its own entries."""
    for index, (part, count) in enumerate(batches(states, batch)):
        yield part, player.act(player.variables, part, jax.random.fold_in(key, index)), count


# Every position of a solved board.


def value_accuracy(
    player: Player,
    rules: Rules,
    *,
    batch: int = DEFAULT_BATCH,
    seed: int = 0,
    is_quiet: bool = False,
) -> Accuracy:
    """Measure a player in every position of a board; shows progress.

    Raises:
      UsageError: rules without tables.
    """
    check_solvable(rules, BY_TABLES)
    display = Display(is_quiet=is_quiet)
    with display:
        with display.task("solving the board", 1, "boards"):
            tables = make_tables(rules)
            levels = list(reachable_levels(rules, seed=seed))
        sizes = [len(level.position.ply) for level in levels]
        # A batch larger than all that it can hold would only be padded.
        batch, key = min(batch, max(DEFAULT_BATCH, *sizes)), jax.random.key(seed)
        player = player._replace(act=jax.jit(player.act))
        with display.task(player.name, sum(sizes), "positions") as task:
            return value_kept(player, rules, tables, levels, batch=batch, key=key, on_progress=task)


def value_kept(
    player: Player,
    rules: Rules,
    tables: Tables,
    levels: list[State],
    *,
    key: jax.Array,
    batch: int = DEFAULT_BATCH,
    on_progress: OnProgress = lambda done: None,
) -> Accuracy:
    """Measure a player in every position [N] of the levels, before the end of the game, on a board
    whose solution the tables are; the key is split by level and batch."""
    columns: list[Any] = []
    done = 0
    for depth, level in enumerate(levels):
        choices = _choices(player, level, batch=batch, key=jax.random.fold_in(key, depth))
        for states, slots, count in choices:
            compared = fetch(_compare(tables, states, slots))
            columns.append([column[:count] for column in (*compared, states.position.ply)])
            done += count
            on_progress(done)
    value, can_err, kept, ply = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Accuracy(player.name, rules, value, can_err, kept, "ply", ply)


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


# Sampled positions.


class SampleOptions(NamedTuple):
    """The sampled positions; see `train.solver.positions.sample_positions`."""

    positions: int  # number of positions
    min_walls: int  # fewest walls of a position
    seed: int  # random seed, that of the player's choices too


class SolvedPosition(NamedTuple):
    """The answer of alpha-beta search."""

    value: int  # for the player to move
    best: Collection[int]  # slots of the plays that keep it
    can_err: bool  # some play does not
    walls: int
    key: int  # equal for the same board turned


def solve_each(search: AlphaBeta, states: State) -> Iterator[SolvedPosition]:
    """The answers in states [N], one after the other."""
    for row in range(len(states.position.ply)):
        position = jax.tree.map(lambda x, row=row: x[row], states.position)
        board = board_of(position, search.size)
        value, best = search.solve(board)
        can_err, walls = len(best) < len(search.plays(board)), board.num_walls(search.size)
        yield SolvedPosition(value, best, can_err, walls, search.key(board))


def sampled_accuracy(
    player: Player,
    rules: Rules,
    sample: SampleOptions,
    *,
    batch: int,
    on_progress: OnProgress = lambda done: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Accuracy:
    """Measure a player in sampled positions, each solved by alpha-beta.

    Args:
      player: to measure.
      rules: of two players with one stone each, at most 4x4 cells.
      sample: which positions; fewer are measured where the work is stopped.
      batch: positions that the player chooses in at once.
      on_progress: called with the number of positions solved so far.
      should_stop: asked after each position.

    Raises:
      UsageError: rules that alpha-beta does not solve, or too few positions.
    """
    check_solvable(rules, BY_SEARCH)
    key = jax.random.key(sample.seed)
    states = sample_positions(rules, sample.positions, min_walls=sample.min_walls, seed=sample.seed)
    choices = _choices(player, states, batch=min(batch, sample.positions), key=key)
    slots = np.concatenate([fetch(slots)[:count] for _, slots, count in choices]).tolist()
    rows: list[Any] = []
    for each, slot in zip(solve_each(AlphaBeta(rules), states), slots, strict=True):
        rows.append((each.value, each.can_err, slot in each.best, each.walls))
        on_progress(len(rows))
        if should_stop():
            break
    value, can_err, kept, walls = (np.array(column) for column in zip(*rows, strict=True))
    stopped = "" if len(rows) == sample.positions else f"stopped after {len(rows):,} of "
    caption = (
        f"{stopped}{sample.positions:,} positions of random games with {sample.min_walls} or more "
        f"walls, seed {sample.seed} · 95 % intervals by Wilson"
    )
    about = {"sample": sample._asdict()}
    return Accuracy(player.name, rules, value, can_err, kept, "walls", walls, caption, about)


# Proven late positions of games.


def late_accuracy(
    player: Player, late: LatePositions, *, batch: int, seed: int = 0, is_quiet: bool = False
) -> Accuracy:
    """Measure a player in proven positions; shows progress."""
    count, slots, values = len(late.value), [], []
    batch, key, display = min(batch, count), jax.random.key(seed), Display(is_quiet=is_quiet)
    player = player._replace(act=_slots_and_values(player))
    with display, display.task(player.name, count, "positions") as on_progress:
        for _, chosen, size in _choices(player, late.states, batch=batch, key=key):
            slot, value = fetch(chosen)
            slots.append(slot[:size])
            values.append(value[:size])
            on_progress(sum(map(len, slots)))
    at = np.arange(count), np.concatenate(slots)
    signs = late.value * np.sign(np.concatenate(values))
    # A row of NaN has no margins; NaN in another row is an illegal play.
    most = np.where(np.isnan(late.margins), -np.inf, late.margins).max(axis=1)
    return Accuracy(
        player.name,
        late.rules,
        late.value,
        late.can_err,
        late.best[at],
        "plies left",
        late.left,
        "late positions of recorded games, by plies that the game went on for; signs: of the "
        "player's value and the proven one, neither 0; cells: mean margin given away where all "
        "margins are proven; intervals by Wilson",
        given_away=most - late.margins[at],
        agreed=np.where(signs == 0, np.nan, signs > 0),
    )


def _slots_and_values(player: Player) -> Callable[..., Any]:
    """A player's `act` that has, next to the slots, the values float32[B] behind them; values are 0
    where it has none."""
    if player.report is not None and player.act is act_by(player.report):
        return _searched(player.report)

    def act(variables: Any, states: State, key: jax.Array) -> tuple[jax.Array, np.ndarray]:
        slots = player.act(variables, states, key)
        return slots, np.zeros(len(slots), np.float32)

    return act


@functools.cache
def _searched(report: Search) -> Callable[..., Any]:
    """The same function for the same search, so that players share its program."""

    @jax.jit
    def act(variables: Any, states: State, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        result = report(variables, states, key)
        return result.slot, result.value

    return act
