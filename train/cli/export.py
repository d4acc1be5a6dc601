"""A player's weights as a model in a folder of its own: what its card says."""

import json
from pathlib import Path
from typing import Any

from train.checkpoints import weights
from train.checkpoints.exported import write_model
from train.checkpoints.weights import TrainedNetwork
from train.loop.run_directory import RESULT_FILE, STARTS_FILE
from train.metrics.rows import METRICS_FILE, read_rows
from train.registry import load_network
from train.runtime.errors import UsageError


def export(player: str, out: Path) -> TrainedNetwork:
    """Write the weights of a trained player, with what is known of how they were made and how
    strong they are, and return them.

    Raises:
      UsageError: there are no such weights, or the folder cannot be written or is a run's.
    """
    trained = load_network(player)
    if weights.is_run(out):
        raise UsageError(f"{out}: is a run directory; export into a folder of its own")
    try:
        write_model(out, trained.variables, trained.config, _about(trained))
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
    return trained


def _about(trained: TrainedNetwork) -> dict[str, Any]:
    """What the run's directory tells, or, of weights that were exported before, their card."""
    run = trained.run
    if run is None:
        return trained.about
    iteration, evaluation = trained.about["iteration"], _read(run / RESULT_FILE)
    # The matches of a run's end say nothing of its earlier weights.
    is_of_these = evaluation is not None and evaluation.get("iterations") == iteration
    return {
        **trained.about,
        "starts": (_read(run / STARTS_FILE) or {}).get("starts"),
        "evaluation": evaluation if is_of_these else None,
        "last_metrics": _row(run / METRICS_FILE, iteration),
    }


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _row(path: Path, iteration: int) -> Any:
    """The row of metrics of an iteration, counted from 1; None where there is none."""
    rows = read_rows(path) if path.exists() else []
    return next((row for row in rows if row["iteration"] == iteration), None)
