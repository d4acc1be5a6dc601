"""Rows of several runs as one table of comma-separated values."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from train.metrics.rows import Row, flat_figures
from train.runtime.files import replace_bytes, writing


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
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, text.getvalue().encode())
