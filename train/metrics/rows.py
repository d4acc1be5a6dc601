"""Rows of metrics, one an iteration: JSON lines (`metrics.jsonl`), CSV, figures of the console."""

import csv
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.runtime.errors import UsageError
from train.runtime.fields import MAX_WHOLE
from train.runtime.files import reading, replace_bytes, replace_text
from wallgo_jax.formats.option_names import argument

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
the compiler's. `reanalyse_surprise`, where a run searches its replay again, is how far the new
policies are from the network's, in nats; the seconds count as self-play's. A row has `matches`,
`intervals_95`, `win_rate` and `opponent` only where short matches were played after that iteration.
"""


def read_rows(path: Path) -> list[Row]:
    """Read all whole rows; a half-written last line and damaged ones are passed over.

    Raises:
      UsageError: the file cannot be read.
    """
    rows = []
    # A damaged byte costs its row, of which a resumed run tells; it does not stop the reading.
    with reading(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        iteration = row.get("iteration") if isinstance(row, dict) else None
        if isinstance(iteration, int) and 0 <= iteration <= MAX_WHOLE:
            rows.append(row)
    return rows


def metrics_of(run: Path) -> list[Row]:
    """The metrics of a run so far.

    Raises:
      UsageError: there are none.
    """
    path = run / METRICS_FILE
    rows = read_rows(path)
    if not rows:
        raise UsageError(f"{path}: has no iteration yet")
    return rows


def positions_after(run: Path | str, iterations: Sequence[int]) -> list[float]:
    """Positions that a run had played by the end of each of these iterations.

    Raises:
      UsageError: its metrics do not say.
    """
    rows = metrics_of(Path(run))
    if not all(isinstance(row.get("positions"), int | float) for row in rows):
        path = Path(run) / METRICS_FILE
        named = argument("axis", "positions")
        raise UsageError(f"{path}: has no positions played, which {named} needs")
    return [sum(row["positions"] for row in rows if row["iteration"] <= n) for n in iterations]


def keep_rows(path: Path, done: int) -> list[Row]:
    """Drop the rows after `done` iterations, which a resumed run writes again.

    Returns:
      The rows that are kept.
    """
    if not path.exists():
        return []
    rows = [row for row in read_rows(path) if row["iteration"] <= done]
    replace_text(path, as_lines(rows))
    return rows


def elapsed_seconds(rows: Sequence[Row]) -> list[float]:
    """Seconds that the run had taken by each row; a damaged one has those of the row before."""
    seconds, total = [], 0.0
    for row in rows:
        total = row.get("elapsed_seconds", total)
        seconds.append(total)
    return seconds


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


SELFPLAY_FORMATS = {
    "games_per_second": "{:.1f} games/s",
    "loss": "loss {:.3f}",
    "learner_win_rate": "learner wins {:.1%}",
    "policy_loss": "policy loss {:.3f}",
    "value_loss": "value loss {:.3f}",
    "mean_length": "{:.1f} plies a game",
    "positions_per_second": "{:.0f} positions/s",
    "ownership_loss": "ownership loss {:.3f}",
    "policy_entropy": "entropy {:.2f}",
    "red_win_rate": "red wins {:.0%}",
}
"""A format of each figure by its name, the most important first."""
FIT_FORMATS = {
    "loss": "loss {:.3f}",
    "validation_policy_loss": "held-out policy loss {:.3f}",
    "validation_value_loss": "held-out value loss {:.3f}",
    "policy_loss": "policy loss {:.3f}",
    "value_loss": "value loss {:.3f}",
    "positions_per_second": "{:.0f} positions/s",
    "validation_accuracy": "held-out accuracy {:.1%}",
    "ownership_loss": "ownership loss {:.3f}",
}


def describe_matches(row: Mapping[str, Any]) -> str:
    """The win rates of a row's matches and when they were played; empty where it has none."""
    rates = [f"{rate:.0%} against {name}" for name, rate in row.get("matches", {}).items()]
    return f"{', '.join(rates)} (iteration {row['iteration']})" if rates else ""


def write_csv(path: Path, runs: Mapping[str, Sequence[Row]]) -> None:
    """Write a line for each iteration of each run, a column for each of its `flat_figures`.

    Raises:
      UsageError: the file cannot be written.
    """
    lines = [{"run": name, **flat_figures(row)} for name, rows in runs.items() for row in rows]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(lines)
    replace_bytes(path, text.getvalue().encode())
