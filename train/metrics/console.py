"""The figures of a row that the console shows."""

from collections.abc import Mapping
from typing import Any

SELFPLAY_FIGURES = {
    "games_per_second": "{:.1f} games/s",
    "loss": "loss {:.3f}",
    "learner_win_rate": "learner wins {:.1%}",
    "mean_length": "{:.1f} plies a game",
    "policy_loss": "policy {:.3f}",
    "value_loss": "value {:.3f}",
    "positions_per_second": "{:.0f} positions/s",
    "ownership_loss": "ownership {:.3f}",
    "policy_entropy": "entropy {:.2f}",
    "red_win_rate": "red wins {:.0%}",
}
"""A format of each figure by its name, the most important first."""
FIT_FIGURES = {
    "loss": "loss {:.3f}",
    "validation_policy_loss": "held-out policy {:.3f}",
    "validation_value_loss": "held-out value {:.3f}",
    "policy_loss": "policy {:.3f}",
    "value_loss": "value {:.3f}",
    "positions_per_second": "{:.0f} positions/s",
    "validation_accuracy": "held-out accuracy {:.1%}",
    "ownership_loss": "ownership {:.3f}",
}


def describe_matches(row: Mapping[str, Any]) -> str:
    """The win rates of a row's matches and when they were played; empty where it has none."""
    rates = [f"{rate:.0%} against {name}" for name, rate in row.get("matches", {}).items()]
    return f"{', '.join(rates)} (iteration {row['iteration']})" if rates else ""
