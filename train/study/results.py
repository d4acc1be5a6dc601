"""The results of a study on disk: JSON lines, a row for each thing that was finished.

    {"row": "budget",   "change": NAME, "digest": ..., "minutes": 10, "iterations": 74, ...}
    {"row": "training", "change": NAME, ..., "seed": 0, "seconds": 597.2, "run": PATH,
     "code": [{"version": "0.1.0", "git": {"revision": ..., "dirty": false}}], ...}
    {"row": "match",    "change": NAME, ..., "seed": 0, "against": NAME, "opening_plies": 2,
     "wins": 61, "draws": 3, "losses": 36, ...}
    {"row": "failure",  "change": NAME, ..., "seed": 0, "reason": ...}

A study that was interrupted reads what is there and does only the rest.
"""

import datetime
import json
from pathlib import Path
from typing import Any

from train.runtime.devices import machine
from train.runtime.errors import UsageError
from train.runtime.files import append_json_line, read_json_lines

Row = dict[str, Any]
BUDGET, TRAINING, MATCH, FAILURE = "budget", "training", "match", "failure"
_SHARED = {"change": str, "digest": str, "minutes": float, "where": str, "time": str}
_KEYS: dict[str, dict[str, type]] = {
    BUDGET: {"iterations": int, "seconds_an_iteration": dict},
    TRAINING: {"seed": int, "iterations": int, "seconds": float, "compile_seconds": float},
    MATCH: {"seed": int, "against": str, "wins": int, "draws": int, "losses": int},
    FAILURE: {"seed": int},
}
"""What is read of the rows of each kind; whole numbers are floats, too."""


class Results:
    """Rows of a file; more can be added.

    Raises:
      UsageError: a line is none of these rows, or the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[Row] = []
        for number, line in enumerate(read_json_lines(path), start=1):
            self.rows.append(_row_of(line, where=f"{path}: line {number}"))

    def find(self, kind: str, **wanted: Any) -> Row | None:
        """The row of a kind that has these entries."""
        items = wanted.items()
        for row in self.rows:
            if row["row"] == kind and all(row.get(key) == value for key, value in items):
                return row
        return None

    def add(self, kind: str, **entries: Any) -> Row:
        """Append a row, with the machine and the moment.

        Raises:
          UsageError: it cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        row = {"row": kind, **entries, "where": machine(), "time": now}
        append_json_line(self._path, row)
        self.rows.append(row)
        return row


def _row_of(line: str, *, where: str) -> Row:
    try:
        row = json.loads(line)
        for key, kind in (_SHARED | _KEYS[row["row"]]).items():
            if not isinstance(row[key], (int, float) if kind is float else kind):
                raise ValueError
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{where}: not a row of a study; remove the line, or choose another --out"
        ) from None
    return row
