"""A sequential test's hypotheses and error rates, read from text."""

import dataclasses
import math

_MAX_ELO = 2000.0


@dataclasses.dataclass(frozen=True)
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

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -_MAX_ELO <= self.elo0 < self.elo1 <= _MAX_ELO:
            raise ValueError(
                f"sprt: elo0 ({self.elo0:g}) must be below elo1 ({self.elo1:g}), both within "
                f"±{_MAX_ELO:g}"
            )
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(f"sprt: {name} ({getattr(self, name):g}) must be in 0 to 0.5")

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
      ValueError: in one line, what is wrong.
    """
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 4) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"sprt: {text!r} is not ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA, such as 0,20")
    return Sprt(*numbers)
