"""Rows of metrics as JSON lines: `metrics.jsonl`, a row an iteration."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.runtime.files import replace_text

METRICS_FILE = "metrics.jsonl"
BY_RULES = "by_rules"
"""Figures of self-play by rule set, in the rows of a run of several: name -> figure -> number."""
MATCHES_BY_RULES = ("matches_by_rules", "intervals_by_rules", "elo_by_rules")
"""Win rates, their intervals and Elo points above each opponent, by rule set and opponent."""

Row = dict[str, Any]
"""Figures of an iteration by name, as they are written.

`iteration` is the number of iterations done, that one included: 1 to N, as the console counts and
checkpoints are named. `wall_time` is the moment of writing in seconds since 1970,
`elapsed_seconds` the time that the run has taken up to there over all its starts. The times of the
parts (`selfplay_seconds`, `learn_seconds`) and all figures a second leave out `compile_seconds`,
the compiler's. A row has `matches`, `intervals_95`, `win_rate` and `opponent` only where short
matches were played after that iteration.
"""


def read_rows(path: Path) -> list[Row]:
    """Read all whole rows; a half-written last line and damaged ones are passed over.

    Raises:
      OSError: the file cannot be read.
    """
    rows = []
    # A damaged byte costs its row, of which a resumed run tells; it does not stop the reading.
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and isinstance(row.get("iteration"), int):
            rows.append(row)
    return rows


def keep_rows(path: Path, done: int) -> list[Row]:
    """Drop the rows after `done` iterations, which a resumed run writes again.

    Returns:
      The rows that are kept.
    """
    if not path.exists():
        return []
    kept = [row for row in read_rows(path) if row["iteration"] <= done]
    replace_text(path, as_lines(kept))
    return kept


def elapsed_seconds(rows: Sequence[Row]) -> list[float]:
    """Seconds that the run had taken by each row; where older rows do not say, their parts' sum."""
    found, total = [], 0.0
    for row in rows:
        parts = (row.get(name) or 0.0 for name in ("selfplay_seconds", "learn_seconds"))
        total = row.get("elapsed_seconds", total + sum(parts))
        found.append(total)
    return found


def flat_figures(row: Row) -> dict[str, Any]:
    """The figures of a row by one name each.

    The win rate of a short match is `win_rate/OPPONENT`, its 95 % interval `low/OPPONENT` and
    `high/OPPONENT`; a figure of one rule set of several is `NAME/FIGURE`, such as
    `NAME/low/OPPONENT` and `NAME/elo/OPPONENT`. A figure that a row lacks is left out.
    """
    flat = {name: value for name, value in row.items() if not isinstance(value, dict)}
    flat |= _of_matches("", row.get("matches"), row.get("intervals_95"))
    for name, figures in row.get(BY_RULES, {}).items():
        flat |= {f"{name}/{figure}": value for figure, value in figures.items()}
    matches, intervals, points = (row.get(key, {}) for key in MATCHES_BY_RULES)
    for name in matches | intervals | points:
        flat |= _of_matches(f"{name}/", matches.get(name), intervals.get(name))
        flat |= {f"{name}/elo/{other}": elo for other, elo in points.get(name, {}).items()}
    return {name: value for name, value in flat.items() if value is not None}


def _of_matches(
    prefix: str, rates: dict[str, float] | None, intervals: dict[str, Sequence[float]] | None
) -> dict[str, float]:
    figures = {f"{prefix}win_rate/{other}": rate for other, rate in (rates or {}).items()}
    for other, (low, high) in (intervals or {}).items():
        figures |= {f"{prefix}low/{other}": low, f"{prefix}high/{other}": high}
    return figures


def sum_of(rows: Sequence[Row], before: int = 0) -> int:
    """CRC-32 of rows as they are written, after that of the rows before them."""
    return zlib.crc32(as_lines(rows).encode(), before)


def as_lines(rows: Sequence[Row]) -> str:
    """Rows as text, a JSON object a line."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)
