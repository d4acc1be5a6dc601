"""Options of the distance heuristics."""

import dataclasses

FORMULAS = ("ethen", "wjx")


@dataclasses.dataclass(frozen=True)
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

    formula: str = "wjx"
    sure_own: float = 0.9
    sure_other: float = -0.85
    semi_sure_own: float = 0.8
    semi_sure_other: float = -0.75
    boundary: int = 6
    guess_weight: float = 0.9
    stones_block: bool = False
    top_k: int = 5
    temperature: float = 1.0
    scale: float = 10.0

    def __post_init__(self) -> None:
        if self.formula not in FORMULAS:
            raise ValueError(f"formula {self.formula!r} is not one of {', '.join(FORMULAS)}")
        if not 0 <= self.sure_own <= 1:
            raise ValueError("sure_own must be from 0 to 1")
        if not 0 <= self.semi_sure_own <= self.sure_own:
            raise ValueError("semi_sure_own must be from 0 to sure_own")
        if not -1 <= self.sure_other <= 0:
            raise ValueError("sure_other must be from -1 to 0")
        if not self.sure_other <= self.semi_sure_other <= 0:
            raise ValueError("semi_sure_other must be from sure_other to 0")
        if not 1 <= self.boundary <= 20:
            raise ValueError("boundary must be from 1 to 20")
        if not 0 <= self.guess_weight <= 1:
            raise ValueError("guess_weight must be from 0 to 1")
        if self.top_k < 1:
            raise ValueError("top_k must be at least 1")
        for key in ("temperature", "scale"):
            if not 0.001 <= getattr(self, key) <= 1000:
                raise ValueError(f"{key} must be from 0.001 to 1000")


@dataclasses.dataclass(frozen=True)
class HeuristicsConfig:
    """The heuristics that players name.

    Attributes:
      ethen: scores by the larger of the two distances.
      wjx: scores by the sum of the two distances.
    """

    ethen: HeuristicConfig = HeuristicConfig(formula="ethen")
    wjx: HeuristicConfig = HeuristicConfig(formula="wjx")
