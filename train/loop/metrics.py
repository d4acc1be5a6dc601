"""Rows of metrics: JSON lines, TensorBoard's event file, and a line for the console."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorboardX

METRICS_FILE = "metrics.jsonl"


class MetricsWriter:
    """Appends a row for each iteration to `metrics.jsonl` and to TensorBoard's event file."""

    def __init__(self, directory: Path, *, from_iteration: int) -> None:
        self._path = directory / METRICS_FILE
        keep_rows_before(self._path, from_iteration)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = tensorboardX.SummaryWriter(
            str(directory / "tensorboard"), purge_step=from_iteration or None
        )

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; its `iteration` is the step in TensorBoard."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        rates = {f"win_rate/{name}": rate for name, rate in row.get("matches", {}).items()}
        for name, value in (dict(row) | rates).items():
            if name != "iteration" and isinstance(value, int | float):
                self._board.add_scalar(name, value, row["iteration"])

    def close(self) -> None:
        """Flush and close both files."""
        self._file.close()
        self._board.close()


def keep_rows_before(path: Path, iteration: int) -> None:
    """Drop the rows that a resumed run writes again, and a half-written last line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["iteration"] < iteration:
            kept.append(line)
    # In one step, so that a run killed meanwhile loses nothing.
    unnamed = path.with_name(f".{path.name}")
    unnamed.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    unnamed.replace(path)


def describe(row: Mapping[str, Any]) -> str:
    """The figures of a row in short, matches left out."""
    parts = [f"{row['positions_per_second']:.0f} pos/s"]
    if "games_per_second" in row:
        parts.insert(0, f"{row['games_per_second']:.1f} games/s")
    if row.get("policy_loss") is not None:
        parts.append(f"policy {row['policy_loss']:.3f}")
        parts.append(f"value {row['value_loss']:.3f}")
    if row.get("ownership_loss") is not None:
        parts.append(f"ownership {row['ownership_loss']:.3f}")
    for name in ("policy", "value", "ownership"):
        if row.get(f"validation_{name}_loss") is not None:
            parts.append(f"held back {name} {row[f'validation_{name}_loss']:.3f}")
    if row.get("policy_entropy") is not None:
        parts.append(f"entropy {row['policy_entropy']:.2f}")
    if row.get("mean_length") is not None:
        parts.append(f"{row['mean_length']:.1f} plies")
    return " · ".join(parts)


def describe_matches(row: Mapping[str, Any]) -> str:
    """The win rates of a row's matches; empty where it has none."""
    rates = row.get("matches", {}).items()
    return ", ".join(f"{rate:.0%} against {name}" for name, rate in rates)
