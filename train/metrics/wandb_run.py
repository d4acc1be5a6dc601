"""A run mirrored by Weights & Biases, which is an extra."""

import importlib
import importlib.util
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train.metrics.rows import Row
from train.metrics.tags import scalars_of
from train.runtime.errors import UsageError, one_line
from train.runtime.files import read_json, write_json

_ID_FILE = "wandb.json"


def check_wandb(project: str) -> None:
    """Refuse a project where the package is missing with a UsageError."""
    if project and importlib.util.find_spec("wandb") is None:
        raise UsageError("tracking.wandb needs wandb: pip install 'wallgo-jax[wandb]'")


class WandbRun:
    """Logs each row under the names that TensorBoard shows, with the iteration as the step.

    A resumed run goes on under the same id. Steps that it computes again have the same numbers, so
    the server keeps those that it has.
    """

    def __init__(
        self, directory: Path, config: Mapping[str, Any], *, project: str, name: str
    ) -> None:
        wandb = importlib.import_module("wandb")
        try:
            self._run = wandb.init(
                project=project,
                name=name,
                id=_id_of(directory),
                dir=str(directory),
                config=dict(config),
                resume="allow",
            )
        except wandb.errors.Error as error:
            raise UsageError(f"tracking.wandb: {one_line(error)}") from None

    def write(self, row: Row) -> None:
        """Log a row; its `iteration` is the step."""
        self._run.log(scalars_of(row), step=row["iteration"])

    def close(self) -> None:
        """Wait until all is handed over."""
        self._run.finish()


def _id_of(directory: Path) -> str:
    """The id of the run, drawn when it first starts."""
    path = directory / _ID_FILE
    if path.exists():
        fields = read_json(path)
        if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
            raise UsageError(f"{path}: holds no id of a run; remove it for a new one")
        return fields["id"]
    drawn = secrets.token_hex(6)
    write_json(path, {"id": drawn})
    return drawn
