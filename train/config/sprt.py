"""A sequential test's hypotheses and error rates, read from text."""

import math
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from train.runtime.errors import usage_errors
from train.runtime.fields import Real

_Elo = Annotated[Real, Field(ge=-2000, le=2000)]
_Chance = Annotated[Real, Field(gt=0, lt=0.5)]


@dataclass(frozen=True)
class Sprt:
    """A test whether the first player is `elo1` points stronger (H1) or only `elo0` (H0).

    Attributes:
      elo0: lead under H0, in Elo points.
      elo1: lead under H1, in Elo points, above `elo0`.
      alpha: chance to accept H1 where H0 holds.
      beta: chance to accept H0 where H1 holds.

    Raises:
      ValueError: in one line, which number is wrong and what is allowed.
    """

    elo0: _Elo
    elo1: _Elo
    alpha: _Chance = 0.05
    beta: _Chance = 0.05

    def __post_init__(self) -> None:
        if self.elo0 >= self.elo1:
            raise ValueError(f"elo0 ({self.elo0:g}) must be below elo1 ({self.elo1:g})")

    @property
    def lower(self) -> float:
        """Log-likelihood ratio at or below which H0 is accepted."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """Log-likelihood ratio at or above which H1 is accepted."""
        return math.log((1 - self.beta) / self.alpha)


def parse_sprt(text: str) -> Sprt:
    """A test from `ELO0,ELO1` or `ELO0,ELO1,ALPHA,BETA`.

    Raises:
      UsageError: in one line, what is wrong.
    """
    with usage_errors("sprt"):
        words = text.split(",")
        if len(words) not in (2, 4):
            raise ValueError(f"{text!r} is not ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA, such as 0,20")
        numbers: dict[str, Any] = dict(zip(("elo0", "elo1", "alpha", "beta"), words, strict=False))
        return Sprt(**numbers)
