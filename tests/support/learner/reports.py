"""Reports of searches that were not made, of positions with two players."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from train.search.report import LINE_PLIES, SearchReport
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import State


def report_of(
    state: State,
    action: int,
    value: float,
    *,
    network_value: float | None = None,
    line: Sequence[int] = (),
    **changes: Any,
) -> SearchReport:
    """A report of one board that knows one move, of three visits.

    Args:
      state: the position.
      action: the move, a public action.
      value: of it, for the player to move, and so of the position.
      network_value: before the search; the same by default.
      line: public actions; the move alone by default.
      changes: fields that differ.
    """
    mover, line = int(state.position.player), [action, *line[1:]]

    def shares(value: float) -> np.ndarray:
        return np.array([value, -value] if mover == 0 else [-value, value], np.float32)

    one, half = np.ones(1, np.float32), np.full(1, 0.5, np.float32)
    fields: dict[str, Any] = {
        "state": state,
        "actions": np.array([action], np.int32),
        "legal": one > 0,
        "action": np.array(action, np.int32),
        "prior": half,
        "visits": np.array([3], np.int32),
        "qvalues": np.float32(value) * one,
        "completed": np.float32(value) * one,
        "policy": half,
        "value": np.array(value, np.float32),
        "root_visits": np.array(4, np.int32),
        "values": shares(value),
        "best_values": shares(value),
        "network_values": shares(value if network_value is None else network_value),
        "slots": np.zeros(1, np.int32),
        "lines": np.array([[*line, *[NO_ACTION] * (LINE_PLIES - len(line))]], np.int32),
        "owners": None,
        "margin": None,
        "simulations": 3,
    }
    return SearchReport(**fields | changes)
