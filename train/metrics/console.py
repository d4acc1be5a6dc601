"""The figures of a row that the console shows."""

from collections.abc import Mapping
from typing import Any

from train.runtime.display import Column

WIN_RATE = "win rate"
"""Heading of the column that only runs with matches have."""
LEARNER_WINS = "learner wins"
"""Heading of the column that only runs with a frozen opponent have."""

_ITERATION = Column("iteration", "d", "iteration", 9, 0, "")
_LOSSES = (
    Column("loss", ".3f", "loss", 6, 1, "loss {}"),
    Column("policy_loss", ".3f", "policy", 6, 5, "policy {}"),
    Column("value_loss", ".3f", "value", 6, 6, "value {}"),
)
_OWNERSHIP = Column("ownership_loss", ".3f", "ownership", 6, 9, "ownership {}")
_POSITIONS = Column("positions_per_second", ".0f", "positions/s", 8, 7, "{} positions/s")

SELFPLAY_COLUMNS = (
    _ITERATION,
    *_LOSSES,
    _OWNERSHIP,
    Column("policy_entropy", ".2f", "entropy", 6, 10, "entropy {}"),
    Column("mean_length", ".1f", "plies", 5, 4, "{} plies a game"),
    Column("red_win_rate", ".0%", "red wins", 5, 11, "red wins {}"),
    Column("learner_win_rate", ".1%", LEARNER_WINS, 7, 3, "learner wins {}"),
    Column("games_per_second", ".1f", "games/s", 8, 0, "{} games/s"),
    _POSITIONS,
    Column("selfplay_seconds", ".1f", "play, s", 7, 12, ""),
    Column("learn_seconds", ".1f", "learn, s", 7, 13, ""),
    Column("win_rate", ".1%", WIN_RATE, 7, 2, ""),
)
FIT_COLUMNS = (
    _ITERATION,
    *_LOSSES,
    _OWNERSHIP,
    Column("validation_policy_loss", ".3f", "held-out policy", 6, 2, "held-out policy {}"),
    Column("validation_value_loss", ".3f", "held-out value", 6, 3, "held-out value {}"),
    Column("validation_accuracy", ".1%", "accuracy", 6, 8, "held-out accuracy {}"),
    _POSITIONS,
)


def describe_matches(row: Mapping[str, Any]) -> str:
    """The win rates of a row's matches and when they were played; empty where it has none."""
    rates = [f"{rate:.0%} against {name}" for name, rate in row.get("matches", {}).items()]
    return f"{', '.join(rates)} (iteration {row['iteration']})" if rates else ""
