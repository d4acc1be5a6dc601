"""Values become win chances: a fixed map, corrected by factors that games have shown.

A value is an expected reward: 1 for a win, -1 / (players - 1) for a loss, 0 for a draw. With two
players the chance of a value v is (1 + v) / 2, and a draw counts as half a win.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
import pydantic

_EDGE = 1e-6
_Factor = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class Calibration(NamedTuple):
    """Factors of log-odds that turn values into win chances; 1 leaves them as they are.

    One factor and no offset: the chances of the two sides add up to 1.
    """

    network: _Factor = 1.0  # of the network's own values
    search: _Factor = 1.0  # of values after a search
    simulations: int | None = None  # of the search that was fitted; None where nothing was

    def chance(self, value: Any, *, players: int, is_searched: bool = True) -> np.ndarray:
        """The chance to win of values from one side; see `win_chance`."""
        return win_chance(
            value, players=players, factor=self.search if is_searched else self.network
        )


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
