"""A run's directory: may it be used, and what lies in it beside checkpoints."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from train import checkpoint
from train.config import RunConfig, config_from_dict
from train.errors import UsageError

CONFIG_FILE, RESULT_FILE, GAME_FILE = "config.json", "evaluation.json", "game.txt"


def check_directory(directory: Path, config: RunConfig, *, resume: bool) -> None:
    """Refuse to overwrite a run, or to go on with one that another config made.

    Raises:
      UsageError: which, and what to do.
    """
    if not resume:
        if directory.exists():
            raise UsageError(
                f"{directory}: exists already; add --resume to go on with it, or choose --name"
            )
        return
    if not directory.is_dir():
        raise UsageError(f"{directory}: nothing to resume; leave --resume out to start")
    if not has_checkpoint(directory):
        return
    meta = checkpoint.read_meta(directory, checkpoint.RESUME)
    saved = config_from_dict(meta["config"], where=f"{directory}: saved config")
    for field in ("seed", "rules", "network", "search", "selfplay", "replay", "learner"):
        old, new = getattr(saved, field), getattr(config, field)
        if old != new:
            raise UsageError(f"{directory}: cannot resume: {_difference(field, old, new)}")
    if meta["iteration"] > config.iterations:
        raise UsageError(
            f"{directory}: has {meta['iteration']} iterations already, more than "
            f"iterations = {config.iterations}"
        )


def _difference(field: str, old: Any, new: Any) -> str:
    """Which key of a config table differs, and how."""
    if dataclasses.is_dataclass(old) and dataclasses.is_dataclass(new):
        for inner in dataclasses.fields(old):
            a, b = getattr(old, inner.name), getattr(new, inner.name)
            if a != b:
                return _difference(f"{field}.{inner.name}", a, b)
    return f"the checkpoint was made with {field} = {old!r}, the config says {new!r}"


def has_checkpoint(directory: Path) -> bool:
    """Whether there is something to resume from: False also for a run that was stopped before its
    first checkpoint, which starts again.

    Raises:
      UsageError: the directory is not a run's.
    """
    if checkpoint.newest_iteration(directory, checkpoint.RESUME) is not None:
        return True
    if not (directory / CONFIG_FILE).is_file():
        raise UsageError(f"{directory}: no run of this program: it has no {CONFIG_FILE}")
    return False


def make_directory(directory: Path) -> None:
    """The directory and those above it.

    Raises:
      UsageError: it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}") from None


def write_json(path: Path, data: Any) -> None:
    """A file of indented JSON."""
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
