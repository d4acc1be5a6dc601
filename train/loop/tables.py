"""What the functions of a run take of its config: tables, whose floats are leaves and all else is
static, and the rules of each board.

B boards, T plies of an iteration, R rows of the replay.
"""

import dataclasses
import functools
import typing
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from train.config import HeuristicsConfig, RunConfig
from train.data.config import SelfPlayConfig
from train.data.replay import ReplayState
from train.game import Rules, Variant, make_variant
from train.learning.config import LearnerConfig, LossWeights
from train.network import NetworkConfig
from train.runtime.devices import BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, Devices, devices_for
from train.runtime.errors import UsageError, usage_errors
from train.search.config import SearchConfig
from train.search.search import Search

Table = TypeVar("Table")

HOST = "host"
"""The `replay.memory` that is not the devices'."""
REPLAY_SPECS: Any = ReplayState._make((ROWS_BY_BOARD, EVERYWHERE, BY_BOARD))
"""Rows lie with the boards that played them, so writing and sampling transfer nothing."""


def register_table(table: type) -> None:
    """Register a dataclass of options with JAX.

    Fields that hold floats, or tables that are registered, are children; all others are static, and
    so must have a hash. Programs of two tables that differ in their floats alone are the same.
    """
    hints = typing.get_type_hints(table)
    children = [name for name, hint in hints.items() if _is_child(hint)]
    names = [field.name for field in dataclasses.fields(table)]
    jax.tree_util.register_dataclass(
        table,
        data_fields=[name for name in names if name in children],
        meta_fields=[name for name in names if name not in children],
    )
    _registered.add(table)


_registered: set[type] = set()


def _is_child(hint: object) -> bool:
    """Whether values of a type are a float, a float or None, or a table."""
    return hint in (float, float | None) or hint in _registered


def as_leaves(table: Table) -> Table:
    """The table with its floats as float32 on the host, of the type that programs take.

    A Python float is weakly typed, so that it would compile another program.
    """
    return jax.tree.map(np.float32, table)


class FrozenOpponent(NamedTuple):
    """The functions of a player that has seats in self-play and does not learn."""

    report: Any  # a `Search`
    evaluate: Any  # an `Evaluator`


@dataclasses.dataclass(frozen=True)
class ReplayPlace:
    """Where the replay lies and is sampled: with the boards on the run's devices, so that nothing
    is transferred, or in the host's memory."""

    devices: Devices
    host: Any = None  # the `jax.Device` that keeps it, None where those of the run do

    @property
    def parts(self) -> int:
        """Number of devices that keep a part of it."""
        return self.devices.count if self.host is None else 1

    def shardings(self, specs: Any) -> Any:
        """The shardings of arrays that lie where the replay does, by a spec for each array or
        branch."""
        if self.host is not None:
            return SingleDeviceSharding(self.host)
        return self.devices.shardings(specs)


@dataclasses.dataclass(frozen=True)
class PlayTables:
    """What self-play reads of a config; floats are leaves, all else is static."""

    search: SearchConfig
    selfplay: SelfPlayConfig
    network: NetworkConfig
    rules: Rules  # one of those that are learned
    has_root_value: bool  # whether plies keep the value that the search found
    teacher: Search | None  # of the first iterations
    opponent: FrozenOpponent | None
    devices: Devices


@dataclasses.dataclass(frozen=True)
class LearnTables:
    """What learning reads of a config; floats are leaves, all else is static."""

    learner: LearnerConfig
    network: NetworkConfig
    players: int
    grid: int  # side of the boards
    total_steps: int  # of the schedule of the learning rate
    newest: int  # rows of an iteration
    place: ReplayPlace


register_table(SearchConfig)
register_table(SelfPlayConfig)
register_table(LossWeights)
register_table(LearnerConfig)
register_table(PlayTables)
register_table(LearnTables)


class Tables(NamedTuple):
    """What the functions of a run read of its config."""

    play: PlayTables | None  # None where recorded games are learned
    learn: LearnTables
    rows: int  # R, a multiple of T, so that no iteration wraps round the end of the ring


def tables_of(config: RunConfig, devices: Devices | None = None, opponent: Any = None) -> Tables:
    """The tables of a run.

    Args:
      config: the run.
      devices: that share boards and samples; None for all of this process that can.
      opponent: the frozen `Player` of self-play; the run has one if its config names one.

    Raises:
      UsageError: boards or samples cannot be shared by the devices; several processes cannot share
        a host's replay; the teacher cannot play.
    """
    assert (opponent is None) == (not config.selfplay.opponent), "see load_opponent"
    options = config.selfplay
    numbers = {"selfplay_boards": options.boards, "learner_batch": config.learner.batch}
    devices = devices_for(**numbers) if devices is None else devices
    devices.check_divides(**numbers)
    host = jax.local_devices(backend="cpu")[0] if config.replay.memory == HOST else None
    if host is not None and jax.process_count() > 1:
        raise UsageError("replay.memory = 'host' is for one process")
    play = PlayTables(
        search=config.search,
        selfplay=options,
        network=config.network,
        rules=config.rules,
        has_root_value=config.learner.value_mix is not None,
        teacher=make_teacher(config) if options.bootstrap_iterations else None,
        opponent=None if opponent is None else FrozenOpponent(opponent.report, opponent.evaluate),
        devices=devices,
    )
    rows = -(-config.replay.positions // (options.boards * options.plies)) * options.plies
    learn = _learn_tables(config, ReplayPlace(devices, host))
    return Tables(as_leaves(play), learn, rows)


def tables_of_fit(config: RunConfig) -> Tables:
    """The tables of a run that learns recorded games, on all devices that can share its samples."""
    devices = devices_for(learner_batch=config.learner.batch)
    return Tables(None, _learn_tables(config, ReplayPlace(devices)), 0)


def _learn_tables(config: RunConfig, place: ReplayPlace) -> LearnTables:
    tables = LearnTables(
        learner=config.learner,
        network=config.network,
        players=config.rules.players,
        grid=config.grid_side,
        total_steps=config.iterations * config.learner.steps,
        newest=config.selfplay.plies,
        place=place,
    )
    return as_leaves(tables)


def make_teacher(config: RunConfig) -> Search:
    """The player of the first iterations; the same for equal arguments, so that runs share it.

    Raises:
      UsageError: there is no such player, it needs weights, or it cannot play the rules.
    """
    return _make_teacher(config.selfplay.bootstrap_player, config.learned, config.heuristics)


@functools.cache
def _make_teacher(name: str, learned: tuple[Rules, ...], heuristics: HeuristicsConfig) -> Search:
    # Loaded where a teacher plays: all kinds of players.
    from train.players import registry
    from train.players.names import read_name

    with usage_errors("selfplay.bootstrap_player"):
        # All but the exact player are the same for all rules.
        first, *_ = [registry.make_teacher(name, x, heuristics=heuristics) for x in learned]
        if len(learned) > 1 and read_name(name).kind == "exact":
            raise UsageError(f"player {name!r}: solves one rule set, not several at once")
    return first


def rule_set_of_boards(config: RunConfig) -> np.ndarray:
    """int[B]: the number of each board's rule set.

    Boards are shared in proportion to the weights, at least one each, and dealt in turn, so that
    any run of neighbouring boards, such as a device's, has nearly the same shares.
    """
    boards = config.selfplay.boards
    weights = np.array([each.weight for each in config.rule_sets])
    # One each, the rest by largest remainders.
    exact = np.maximum(weights / weights.sum() * boards, 1.0)
    while exact.sum() > boards + 1e-9:
        spare = exact > 1.0
        exact[spare] *= 1 - (exact.sum() - boards) / exact[spare].sum()
        exact = np.maximum(exact, 1.0)
    counts = np.floor(exact + 1e-9).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: boards - counts.sum()]] += 1
    assert counts.sum() == boards
    place = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner[np.argsort(place, kind="stable")]


def rules_of_board(config: RunConfig, board: int) -> Rules:
    """The rules that a board plays."""
    return config.learned[int(rule_set_of_boards(config)[board])]


def variants_of(config: RunConfig) -> Variant:
    """The rules of each board, NumPy arrays [B]: in one grid, with room for the most stones."""
    # In NumPy: nothing is on a device until each process places its own part.
    variants = [
        make_variant(rules, grid=config.grid_side, stones=config.stones) for rules in config.learned
    ]
    boards = rule_set_of_boards(config)

    def lay_out(*leaves: Any) -> np.ndarray:
        if len(leaves) == 1:
            return np.broadcast_to(np.asarray(leaves[0]), (len(boards), *np.shape(leaves[0])))
        return np.stack(leaves)[boards]

    return jax.tree.map(lay_out, *variants)
