"""Options of the distance heuristics."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from train.runtime.fields import STRICT, AtLeastOne, Share

_Cost = Annotated[float, Field(ge=-1, le=0)]
_Scale = Annotated[float, Field(ge=0.001, le=1000)]


@dataclass(frozen=True, config=STRICT)
class HeuristicConfig:
    """Weights of a cell, seen from the player that is scored, and how players use the scores.

    Attributes:
      formula: `ethen` (larger of the two distances) or `wjx` (their sum). It weighs a cell that
        both sides reach by its distances.
      sure_own: a cell that only this side reaches [cells].
      sure_other: a cell that only the other side reaches [cells].
      semi_sure_own: a cell that the other side is far from [cells].
      semi_sure_other: a cell that this side is far from [cells].
      boundary: distance from which a side is far [steps].
      guess_weight: factor of the formula [0 to 1].
      stones_block: distances go round stones, as round walls.
      top_k: plies that `two-ply:NAME` looks into [plies].
      temperature: search prior: score that makes a slot e times as likely [cells].
      scale: search value: score whose value is tanh 1 [cells].
    """

    formula: Literal["ethen", "wjx"] = "wjx"
    sure_own: Share = 0.9
    sure_other: _Cost = -0.85
    semi_sure_own: Share = 0.8
    semi_sure_other: _Cost = -0.75
    boundary: Annotated[int, Field(ge=1, le=20)] = 6
    guess_weight: Share = 0.9
    stones_block: bool = False
    top_k: AtLeastOne = 5
    temperature: _Scale = 1.0
    scale: _Scale = 10.0

    def __post_init__(self) -> None:
        if self.semi_sure_own > self.sure_own:
            raise ValueError("semi_sure_own must be from 0 to sure_own")
        if self.semi_sure_other < self.sure_other:
            raise ValueError("semi_sure_other must be from sure_other to 0")


@dataclass(frozen=True, config=STRICT)
class HeuristicsConfig:
    """The heuristics that players name.

    Attributes:
      ethen: scores by the larger of the two distances.
      wjx: scores by the sum of the two distances.
    """

    ethen: HeuristicConfig = HeuristicConfig(formula="ethen")
    wjx: HeuristicConfig = HeuristicConfig(formula="wjx")
