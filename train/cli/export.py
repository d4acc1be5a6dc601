"""A run's weights as a model that comes with the package: what its card says."""

import json
from pathlib import Path
from typing import Any

from train.checkpoints.pretrained import write_model
from train.checkpoints.weights import load_weights
from train.loop.run_directory import RESULT_FILE, STARTS_FILE
from train.metrics.rows import METRICS_FILE, read_rows
from train.runtime.errors import UsageError


def export(path: Path, out: Path) -> None:
    """Write the weights of a run, or of one of its checkpoints, with what its directory tells of
    how they were made and how strong they are.

    Raises:
      UsageError: there are no such weights, or the folder cannot be written.
    """
    config, variables = load_weights(path)
    directory = path if (path / STARTS_FILE).exists() else path.parents[1]
    about = {
        "run": config.name,
        "starts": (_read(directory / STARTS_FILE) or {}).get("starts"),
        "evaluation": _read(directory / RESULT_FILE),
        "last_metrics": _last_row(directory / METRICS_FILE),
    }
    try:
        write_model(out, variables, config, about)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from None


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _last_row(path: Path) -> Any:
    rows = read_rows(path) if path.exists() else []
    return rows[-1] if rows else None
