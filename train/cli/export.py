"""The command that makes a player's weights a model in a folder of its own (`export`)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from train.cli import options
from train.runtime.errors import UsageError
from train.runtime.files import writing

if TYPE_CHECKING:
    from train.checkpoints.weights import TrainedNetwork


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a player's weights into a folder that is a player itself, with a card that says how
    they were made."""

    EXAMPLES = ("export runs/quickstart out/quickstart",)

    player: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN|PLAYER")]
    """Run, one of its checkpoints, or another trained player, named as in docs/players.md."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder to write; its name is the model's."""

    def run(self) -> int:
        """Returns the exit code."""
        trained = export(self.player, self.out)
        options.say_written(self.out, f"weights and card of {trained.source}")
        return 0


def export(player: str, out: Path) -> TrainedNetwork:
    """Write the weights of a trained player, with what is known of how they were made and how
    strong they are, and return them.

    Raises:
      UsageError: there are no such weights, or the folder cannot be written or is a run's.
    """
    from train.checkpoints import weights
    from train.checkpoints.exported import write_model
    from train.registry import load_network

    trained = load_network(player)
    if weights.is_run(out):
        raise UsageError(f"{out}: is a run directory; export into a folder of its own")
    with writing(out):
        write_model(out, trained.variables, trained.config, _about(trained))
    return trained


def _about(trained: TrainedNetwork) -> dict[str, Any]:
    """What the run's directory tells, or, of weights that were exported before, their card."""
    from train.loop.run_directory import RESULT_FILE, STARTS_FILE
    from train.metrics.rows import METRICS_FILE

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
    from train.metrics.rows import read_rows

    rows = read_rows(path) if path.exists() else []
    return next((row for row in rows if row["iteration"] == iteration), None)
