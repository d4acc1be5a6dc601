"""Rows of several runs as one table of comma-separated values."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.metrics.rows import MATCHES_BY_RULES, Row
from train.metrics.tags import by_rules
from train.runtime.files import replace_bytes, writing


def write_csv(path: Path, runs: Mapping[str, Sequence[Row]]) -> None:
    """Write a line for each iteration of each run, a column for each figure.

    The win rate of a short match is `win_rate/OPPONENT`, its 95 % interval `low/OPPONENT` and
    `high/OPPONENT`; a figure of one rule set of several is `NAME/FIGURE`, such as
    `NAME/low/OPPONENT`. A figure that a row lacks is empty.

    Raises:
      UsageError: the file cannot be written.
    """
    lines = [{"run": name, **_flat(row)} for name, rows in runs.items() for row in rows]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(lines)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, text.getvalue().encode())


def _flat(row: Row) -> dict[str, Any]:
    flat = {name: value for name, value in row.items() if not isinstance(value, dict)}
    for opponent, rate in row.get("matches", {}).items():
        flat[f"win_rate/{opponent}"] = rate
    flat |= _limits(row.get("intervals_95", {})) | by_rules(row)
    for name, intervals in row.get(MATCHES_BY_RULES[1], {}).items():
        flat |= {f"{name}/{limit}": value for limit, value in _limits(intervals).items()}
    return flat


def _limits(intervals: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The intervals of win rates as columns of their own."""
    found = {}
    for opponent, (low, high) in intervals.items():
        found |= {f"low/{opponent}": low, f"high/{opponent}": high}
    return found
