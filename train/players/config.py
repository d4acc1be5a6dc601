"""Options of the distance heuristics."""

import dataclasses

FORMULAS = ("ethen", "wjx")


@dataclasses.dataclass(frozen=True)
class HeuristicConfig:
    """Weights of a cell, seen from the player that is scored, and how players use the scores.

    Attributes:
      formula: `ethen` or `wjx`: weight of a cell that both sides reach, by its distances.
      sure_own: weight of a cell that only the player reaches.
      sure_other: weight of a cell that only the others reach.
      semi_sure_own: weight of a cell that the others are far from.
      semi_sure_other: weight of a cell that the player is far from.
      boundary: steps from which on a side is far from a cell.
      guess_weight: factor of the formula.
      stones_block: stones block the way as walls do.
      top_k: plies that the two-ply player answers.
      temperature: difference in score that makes a slot e times as likely in a search's prior.
      scale: score whose value in a search is tanh 1.
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
        if not 0 <= self.semi_sure_own <= self.sure_own <= 1:
            raise ValueError("semi_sure_own must be from 0 to sure_own, sure_own at most 1")
        if not -1 <= self.sure_other <= self.semi_sure_other <= 0:
            raise ValueError("semi_sure_other must be from sure_other to 0, sure_other at least -1")
        if not 1 <= self.boundary <= 20:
            raise ValueError("boundary must be from 1 to 20")
        if not 0 <= self.guess_weight <= 1:
            raise ValueError("guess_weight must be from 0 to 1")
        if self.top_k < 1:
            raise ValueError("top_k must be at least 1")
        if not 0.001 <= self.temperature <= 1000 or not 0.001 <= self.scale <= 1000:
            raise ValueError("temperature and scale must be from 0.001 to 1000")


@dataclasses.dataclass(frozen=True)
class HeuristicsConfig:
    """The heuristics that players name.

    Attributes:
      ethen: scores by the larger of the two distances.
      wjx: scores by the sum of the two distances.
    """

    ethen: HeuristicConfig = HeuristicConfig(formula="ethen")
    wjx: HeuristicConfig = HeuristicConfig(formula="wjx")
