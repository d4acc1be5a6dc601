"""Values become win chances: a fixed map, corrected by a calibration that was fitted to games.

A value is an expected reward: 1 for a win, -1 / (players - 1) for a loss, 0 for a draw. With two
players the chance of a value v is (1 + v) / 2, and a draw counts as half a win.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from train.runtime.errors import UsageError

CARD_KEY = "calibration"
"""Entry of a model's card that holds its calibration."""
_EDGE = 1e-6


class Calibration(NamedTuple):
    """Factors of log-odds that turn values into win chances; 1 leaves them as they are.

    One factor and no offset: the chances of the two sides add up to 1.
    """

    network: float = 1.0  # of the network's own values
    search: float = 1.0  # of values after a search
    simulations: int | None = None  # of the search that was fitted; None where nothing was


UNCALIBRATED = Calibration()


def win_chance(value: Any, *, players: int, factor: float = 1.0) -> np.ndarray:
    """The chance to win of values from one side, as an array of their shape.

    Args:
      value: expected rewards.
      players: in the game.
      factor: of the log-odds; read with two players only.
    """
    plain = ((players - 1) * np.asarray(value, np.float64) + 1) / players
    chance = np.clip(plain, 0.0, 1.0)
    if players != 2 or factor == 1.0:
        return chance
    inner = np.clip(chance, _EDGE, 1 - _EDGE)
    odds = factor * np.log(inner / (1 - inner))
    # What is certain stays certain.
    return np.where((chance == 0) | (chance == 1), chance, 1 / (1 + np.exp(-odds)))


def fit_factor(value: np.ndarray, outcome: np.ndarray) -> float:
    """The factor of log-odds of the least cross entropy; two players.

    Args:
      value: float[N] in [-1, 1].
      outcome: float[N]: 1, 0 or -1 from the same side.
    """
    from scipy.optimize import minimize_scalar

    chance = np.clip((1 + np.asarray(value, np.float64)) / 2, 1e-3, 1 - 1e-3)
    odds, target = np.log(chance / (1 - chance)), (1 + np.asarray(outcome, np.float64)) / 2

    def loss(log_factor: float) -> float:
        scaled = math.exp(log_factor) * odds
        return float(np.mean(np.logaddexp(0, scaled) - target * scaled))

    found: Any = minimize_scalar(loss, bounds=(math.log(0.05), math.log(20)), method="bounded")
    return math.exp(float(found.x))


def to_dict(calibration: Calibration) -> dict[str, Any]:
    """JSON-ready entries."""
    return calibration._asdict()


def from_dict(fields: Any, *, where: str) -> Calibration:
    """Read a calibration from JSON.

    Raises:
      UsageError: which entry is wrong.
    """
    if not isinstance(fields, Mapping):
        raise UsageError(f"{where}: no calibration of `python -m train calibrate`")
    for key in ("network", "search"):
        number = fields.get(key)
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        if not is_number or not 0 < float(number or 0) < math.inf:
            raise UsageError(f"{where}: calibration: {key} {number!r} is not a number above 0")
    simulations = fields.get("simulations")
    if simulations is not None and not isinstance(simulations, int):
        raise UsageError(f"{where}: calibration: simulations {simulations!r} is no whole number")
    return Calibration(float(fields["network"]), float(fields["search"]), simulations)
