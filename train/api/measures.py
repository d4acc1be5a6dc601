"""What a player knows and what its network sees: accuracy, parts, attention, owners."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.analysis import accuracy as accuracy_lib
from train.analysis import attention as attention_lib
from train.analysis import describe as describe_lib
from train.analysis import pictures
from train.analysis.accuracy import Accuracy, Sample
from train.analysis.describe import Description
from train.analysis.late_positions import LatePositions, load_late
from train.api.arguments import (
    SOLVED_RULES,
    AccuracyArguments,
    AtLeastOne,
    checked,
    takes,
    valid,
)
from train.api.configs import Source, make_config
from train.api.players import AnyPlayer, Player, make_player, rules_for
from train.api.results import Result
from train.api.states import States, batch_of
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, read_config
from train.metrics.intervals import Interval, intervals_figure
from train.players.networks import load_network
from train.runtime.errors import UsageError, usage_errors
from train.runtime.host import callback_errors
from train.runtime.interrupts import Shown, follow
from wallgo_jax import render
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import parse_cell


@dataclasses.dataclass(frozen=True, repr=False)
class PlayerAccuracy(Result, Accuracy):
    """How often a player keeps the value of the game, by groups of positions."""

    is_interrupted: bool = False
    kept = f"the positions solved so far count; {Result.kept}"

    def __repr__(self) -> str:
        row = self.rows()[0]
        return (
            f"<{self.player}: keeps the value in {row['kept']:.1%} of {row['total']:,} positions>"
        )

    def summary(self) -> dict[str, Any]:
        """What `accuracy --json` writes."""
        return self.record()

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each group of positions: how many, the share in which the value is kept, and
        both where one can err."""
        groups = self.summary()["positions"].items()
        return [{"positions": name} | figures for name, figures in groups if figures["total"]]

    def figure(self) -> Any:
        """The share kept in each group where one can err, as a figure of matplotlib."""
        shown = []
        for row in self.rows():
            total, kept = row["total_where_one_can_err"], row["kept_where_one_can_err"]
            if total:
                spread = row.get("interval_95_where_one_can_err", (kept, kept))
                shown.append(Interval(f"{row['positions']} ({total:,})", kept, *spread))
        return intervals_figure(
            shown,
            title=f"{self.player} keeps the value of the game",
            x_label="share of the positions in which one can err",
            is_share=True,
        )


@takes(AccuracyArguments)
@callback_errors()
def accuracy(player: AnyPlayer, *, progress: Shown = False, **options: Any) -> PlayerAccuracy:
    """Measure how often a player keeps the value of the game, as `python -m train accuracy` does.

    Args:
      player: to measure.
      progress: show a bar.
      options: of `train.api.arguments.AccuracyArguments`: `positions`, `min_walls`, `late`,
        `batch`, `rules`, `seed` and `config`; `python -m train accuracy --help` says what each is.
        The rules are by default those that the player has learned, else a 3x3 board with one stone
        each.

    Raises:
      UsageError: a player, rules or number is not allowed.
    """
    how, late = checked(AccuracyArguments, options), None
    if how.late is not None:
        if how.rules or how.positions:
            raise UsageError("accuracy: late has rules and positions of its own, leave those out")
        late = how.late if isinstance(how.late, LatePositions) else load_late(Path(how.late))
    rules = late.rules if late else rules_for([player], how.rules, default=SOLVED_RULES)
    player = make_player(player, rules, heuristics=read_config(how.config).heuristics)
    measured = player.registered
    plain: dict[str, Any] = {"batch": how.batch, "seed": how.seed, "is_quiet": not progress}
    if late is not None:
        return PlayerAccuracy(**vars(accuracy_lib.late_accuracy(measured, late, **plain)))
    if not how.positions:
        return PlayerAccuracy(**vars(accuracy_lib.value_accuracy(measured, rules, **plain)))
    answer = "the positions solved so far count"
    with follow(progress, player.name, how.positions, "positions", answer=answer) as work:
        sampled = accuracy_lib.sampled_accuracy(
            measured,
            rules,
            Sample(how.positions, how.min_walls, how.seed),
            batch=how.batch,
            on_progress=work,
            should_stop=work.should_stop,
        )
    return PlayerAccuracy(**vars(sampled), is_interrupted=work.should_stop())


def describe(
    target: Source | None = None, *, batch: int = 256, measure: bool = False
) -> Description:
    """Describe a network part by part: shapes, parameters, multiply-adds, and its speed here.

    Args:
      target: a TOML file, a trained player's name, or a config.
      batch: boards of an evaluation whose speed is measured.
      measure: measure the speed, which takes some seconds.

    Raises:
      UsageError: the target cannot be read, or the batch is below 1.
    """
    batch = valid(AtLeastOne, batch=batch)
    if target is None or isinstance(target, RunConfig | Mapping):
        return describe_lib.describe(make_config(target), batch=batch, measure=measure)
    return describe_lib.describe(target, batch=batch, measure=measure)


class AttentionMaps(NamedTuple):
    """What a cell attends to in each T block and head."""

    raw: np.ndarray  # float32[T, heads, H, W], each map of sum 1
    blocks: tuple[int, ...]  # places of the T blocks in the trunk, from 1
    cell: int
    state: State
    name: str

    @property
    def maps(self) -> np.ndarray:
        """float32[T, heads, H, W]: each map rescaled to 0 to 1."""
        return pictures.normalised(self.raw)

    def svg(self, *, theme: str = "light") -> str:
        """A row of boards for each T block."""
        return pictures.svg(
            pictures.attention_picture(
                self.raw, self.blocks, self.state, self.cell, name=self.name, theme=theme
            )
        )

    def _repr_html_(self) -> str:
        return self.svg()


def attention(player: str | Player, state: States, cell: str) -> AttentionMaps:
    """What a cell attends to, in each T block and head of a player's network.

    Args:
      player: a trained one, or its name.
      state: one board.
      cell: such as `C3`.

    Raises:
      UsageError: the network has no T block, or there is no such cell.
    """
    trained, game = _network_and_state(player, state)
    with usage_errors():
        index = parse_cell(cell, grid=game.grid)
    config = trained.config.network
    raw = attention_lib.raw_attention(config, trained.variables, game, index)
    return AttentionMaps(raw, attention_lib.attention_blocks(config), index, game, trained.name)


class OwnershipMap(NamedTuple):
    """The final owners that a network or a heuristic expects."""

    owners: np.ndarray  # float32[P + 1, H, W] chances, player 0 first, nobody last
    state: State

    @property
    def evaluation(self) -> np.ndarray:
        """float32[P, H, W] from -1 to 1: each player's share of a cell less those of the others."""
        return attention_lib.board_evaluation(self.owners)

    def svg(self, *, theme: str = "light") -> str:
        """The board with player 0's evaluation as heat."""
        heat, label = self.evaluation[0].ravel(), "Red's share less the others'"
        return render.svg(self.state, heat=heat, heat_label=label, theme=theme)

    def _repr_html_(self) -> str:
        return self.svg()


def ownership(player: str | Player, state: States) -> OwnershipMap:
    """Who will own each cell, as a player's network predicts, or a heuristic.

    Args:
      player: a trained one, or its name, or `wjx` or `ethen`.
      state: one board.

    Raises:
      UsageError: the network has no ownership head, a heuristic's game is not one of two players,
        or the board has a rim.
    """
    if isinstance(player, str) and (heuristic := attention_lib.named_heuristic(player)):
        game = _one_board(state, read_rules(SOLVED_RULES))
        return OwnershipMap(attention_lib.heuristic_ownership(heuristic, game), game)
    trained, game = _network_and_state(player, state)
    owners = attention_lib.predicted_ownership(trained.config.network, trained.variables, game)
    return OwnershipMap(owners, game)


def _network_and_state(player: str | Player, state: States) -> tuple[TrainedNetwork, State]:
    trained = player.trained if isinstance(player, Player) else load_network(player)
    smallest = min(trained.config.learned, key=lambda rules: (rules.size, rules.stones))
    return trained, _one_board(state, smallest)


def _one_board(state: States, smallest: Rules) -> State:
    batch, is_one = batch_of(state, smallest)
    if not is_one:
        raise UsageError("state: is a batch; one board is drawn")
    return jax.tree.map(lambda x: np.asarray(x)[0], batch)
