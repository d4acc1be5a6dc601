"""Options of learning: the optimizer, its schedule and the weights of the losses."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from train.functions import CustomLoss, CustomTargets
from train.runtime.fields import (
    STRICT,
    AtLeastOne,
    BelowOne,
    BelowOneOrOff,
    Count,
    NotNegative,
    Positive,
    Share,
    ShareOrOff,
)

_InnerShare = Annotated[BelowOne, Field(gt=0)]
MOST_FROZEN = 10**5
"""The most iterations for which a group can be frozen, so that its steps can be counted."""


@dataclasses.dataclass(frozen=True)
class LossWeights:
    """Weight of each head's loss in the sum; weights of heads that the network lacks are idle.

    Attributes:
      policy: weight of the policy loss, the cross-entropy with the search's policy [number].
      value: weight of the value loss, the squared error of the outcome, or its cross-entropy for
        `wdl` [number].
      ownership: weight of the ownership loss, the cross-entropy with each cell's owner at the end
        [number]. It is the mean over the cells.
      margin: weight of the margin loss, the squared error of the final lead in territory [number].
        The lead is a share of the board.
      reply: weight of the reply loss, the cross-entropy with the next ply's policy [number].
    """

    __pydantic_config__ = STRICT

    policy: NotNegative = 1.0
    value: NotNegative = 1.0
    ownership: NotNegative = 0.5
    margin: NotNegative = 1.0
    reply: NotNegative = 0.15


def parse_freeze(entries: Sequence[str]) -> dict[str, int]:
    """The iterations for which each group is frozen, from words GROUP=ITERATIONS.

    Raises:
      ValueError: a word is not of that form, or names a group again.
    """
    waits: dict[str, int] = {}
    for entry in entries:
        group, _, count = entry.partition("=")
        is_number = count.isdecimal() and 0 < int(count) <= MOST_FROZEN
        if not group or group in waits or not is_number:
            raise ValueError(
                f"{entry!r} is not GROUP=ITERATIONS, such as 'trunk=30', each group once, with "
                f"iterations from 1 to {MOST_FROZEN}"
            )
        waits[group] = int(count)
    return waits


def _check_freeze(entries: tuple[str, ...]) -> tuple[str, ...]:
    parse_freeze(entries)
    return entries


def _check_drops(shares: tuple[float, ...]) -> tuple[float, ...]:
    if list(shares) != sorted(shares):
        raise ValueError("must be in rising order")
    return shares


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """Options of learning.

    Attributes:
      batch: samples of a step [positions].
      steps: steps of an iteration [steps].
      optimizer: `adamw`, or `sgd` with momentum.
      momentum: momentum of `sgd` [0 to 1].
      learning_rate: peak learning rate [rate].
      schedule: after the warm-up: `cosine`, or `steps` (halved at each of `lr_drops`). `cosine`
        falls to `final_rate` of the peak, `steps` with its defaults is ResTNet's 0.02, 0.01, 0.005.
      final_rate: last learning rate of `cosine`, as a share of the peak [ratio].
      lr_drops: when `steps` halves the rate [shares of the run].
      warmup: steps of a linear warm-up [steps].
      weight_decay: weight decay of kernels; norms, biases and offset tables have none [rate]. It is
        decoupled for `adamw`, added to the gradient for `sgd`.
      max_grad_norm: gradients are clipped to this global norm [norm].
      symmetry: turn each sample by a random symmetry of the square.
      ema_decay: decay of the averaged weights in a step, which then play; 0 for no averaging [0 to
        1]. The first steps decay faster, by (1 + step) / (10 + step).
      value_mix: share of the value target that is the search's value of the root; the rest is the
        game's outcome [0 to 1]. Iterations of the bootstrap and recorded games teach outcomes
        alone. Beyond two players it mixes the value of the player to move.
      td_steps: the search's value for `value_mix` is read this many plies after the position; 0 for
        the position's own root [plies]. Where the game ends by then, the outcome counts alone.
      freeze: groups of parameters that do not change in the first iterations, each as
        GROUP=ITERATIONS, such as `["stem=30", "blocks=20"]` [list of groups]. Groups are `trunk`
        (stem and blocks), `stem`, `blocks`, `blocks.0` and so on, and heads by name (`policy`,
        `value` and so on). They thaw one by one as their iterations pass, which are counted by
        steps, as the learning rate's are.
      validation_every: iterations from one validation of self-play to the next; 0 for none
        [iterations]. A batch of the games that have just ended is evaluated before any step learns
        from them, by the weights that play; its losses are `validation_loss` and so on in the
        metrics.
      custom_loss: name of a function that Python passes, whose number is added to the loss; it
        cannot be set here (`docs/api.md`).
      custom_targets: name of a function that Python passes, which changes what is learned; it
        cannot be set here.
    """

    __pydantic_config__ = STRICT

    batch: AtLeastOne = 512
    steps: AtLeastOne = 32
    optimizer: Literal["adamw", "sgd"] = "adamw"
    momentum: BelowOne = 0.9
    learning_rate: Positive = 3e-3
    schedule: Literal["cosine", "steps"] = "cosine"
    final_rate: Share = 0.1
    lr_drops: Annotated[tuple[_InnerShare, ...], AfterValidator(_check_drops)] = (0.7, 0.9)
    warmup: Count = 50
    weight_decay: NotNegative = 1e-4
    max_grad_norm: Positive = 1.0
    symmetry: bool = True
    ema_decay: BelowOneOrOff = None
    value_mix: ShareOrOff = None
    td_steps: Count = 0
    validation_every: Count = 0
    weights: LossWeights = dataclasses.field(default_factory=LossWeights)
    custom_loss: CustomLoss = ""
    custom_targets: CustomTargets = ""
    freeze: Annotated[tuple[str, ...], AfterValidator(_check_freeze)] = ()

    @model_validator(mode="after")
    def _agree(self) -> "LearnerConfig":
        if self.td_steps > 0 and self.value_mix is None:
            raise ValueError("td_steps must be 0 where value_mix is 0")
        return self
