"""How a trained network was made: entries of its card, from the directory of its run."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from train.checkpoints.weights import TrainedNetwork
from train.loop.run_directory import RESULT_FILE, STAGES_FILE, STARTS_FILE, TRANSFER_FILE
from train.metrics.rows import METRICS_FILE, Row, elapsed_seconds, read_rows
from train.runtime.errors import UsageError


def provenance(trained: TrainedNetwork) -> dict[str, Any]:
    """What the run's directory tells of the weights, or, of exported ones, their card.

    Returns:
      JSON-ready entries: `run` and `iteration`; `starts`, each with time, versions and devices;
      `hours` (see `_hours`); `stages`, the runs that came before, oldest first; `transfer`, what a
      run with `init_from` took of the last of them, else None; `curve`, the short matches up to
      these weights; `evaluation`, the final matches, None where they were not of
      these weights; `last_metrics`, the row of metrics.
    """
    run = trained.run
    if run is None:
        return trained.about
    iteration, evaluation = trained.about["iteration"], _read(run / RESULT_FILE)
    # The matches of a run's end say nothing of its earlier weights.
    is_of_these = evaluation is not None and evaluation.get("iterations") == iteration
    path = run / METRICS_FILE
    rows = read_rows(path) if path.exists() else []
    rows = [row for row in rows if row["iteration"] <= iteration]
    is_whole = bool(rows) and rows[-1]["iteration"] == iteration
    return {
        **trained.about,
        "starts": (_read(run / STARTS_FILE) or {}).get("starts"),
        "hours": _hours(rows) if is_whole else None,
        "stages": stages_of(run),
        "transfer": _read(run / TRANSFER_FILE),
        "curve": _curve(rows),
        "evaluation": evaluation if is_of_these else None,
        "last_metrics": rows[-1] if is_whole else None,
    }


def stages_of(run: Path) -> list[dict[str, Any]]:
    """The runs whose weights a run began with, one after the other, oldest first.

    Raises:
      UsageError: its list of them cannot be read.
    """
    return _read(run / STAGES_FILE) or []


def code_of(run: Path) -> list[dict[str, Any]]:
    """The code that a run was trained by: of each start the `version` of the package and `git`, the
    revision, None where it is not known; what is the same again is left out.

    Raises:
      UsageError: its list of starts cannot be read.
    """
    found: list[dict[str, Any]] = []
    for start in (_read(run / STARTS_FILE) or {}).get("starts") or []:
        code = {"version": start["versions"]["wallgo-jax"], "git": start.get("git")}
        found += [] if code in found else [code]
    return found


def code_in_words(code: Iterable[Mapping[str, Any]]) -> str:
    """What `code_of` finds as text; several where a run was interrupted and went on by another."""
    told = []
    for each in code:
        git = each["git"]
        revision = f" at {git['revision'][:12]}" if git else ""
        told.append(f"{each['version']}{revision}{' with changes' if git and git['dirty'] else ''}")
    return " then ".join(told) or "not recorded"


def _hours(rows: list[Row]) -> dict[str, float]:
    """Hours of `training` (self-play and learning), of `compiling`, and of `all`, which has saving
    and short matches besides."""
    return {
        "training": sum(map(_training_seconds, rows)) / 3600,
        "compiling": sum(row.get("compile_seconds") or 0.0 for row in rows) / 3600,
        "all": elapsed_seconds(rows)[-1] / 3600,
    }


def _curve(rows: list[Row]) -> list[dict[str, Any]]:
    """Each iteration with short matches, with the hours of training up to it."""
    found, seconds = [], 0.0
    for row in rows:
        seconds += _training_seconds(row)
        if row.get("matches"):
            point = {"iteration": row["iteration"], "hours": seconds / 3600}
            found.append(point | {key: row.get(key) for key in ("matches", "intervals_95")})
    return found


def _training_seconds(row: Row) -> float:
    return (row.get("selfplay_seconds") or 0.0) + (row.get("learn_seconds") or 0.0)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
