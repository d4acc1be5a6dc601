"""How weights were made: the runs before them, their code, hours, matches and metrics."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from train.checkpoints.weights import TrainedNetwork
from train.loop.run_directory import RESULT_FILE, STAGES_FILE, STARTS_FILE, TRANSFER_FILE
from train.metrics.rows import METRICS_FILE, Row, elapsed_seconds, read_rows
from train.runtime.files import read_json


def provenance(trained: TrainedNetwork) -> dict[str, Any]:
    """What the run's directory tells of the weights, or, of exported ones, their card.

    Returns:
      JSON-ready entries: `run` and `iteration`; `starts`, each with time, versions and devices;
      `hours` of `training` (self-play and learning), of `compiling`, and of `all`, which has saving
      and short matches besides; `stages`, the runs that came before, oldest first; `transfer`, what
      a run with `init_from` took of the last of them, else None; `curve`, the short matches up to
      these weights; `evaluation`, the final matches, None where they were not of these weights;
      `last_metrics`, the row of metrics.
    """
    run = trained.run
    if run is None:
        return trained.about
    iteration, evaluation = trained.about["iteration"], _read_json(run / RESULT_FILE)
    if evaluation and evaluation.get("iterations") != iteration:
        evaluation = None  # The matches of a run's end say nothing of its earlier weights.
    path = run / METRICS_FILE
    rows = [x for x in (read_rows(path) if path.exists() else ()) if x["iteration"] <= iteration]
    hours, last = None, None
    if rows and rows[-1]["iteration"] == iteration:
        last = rows[-1]
        hours = {
            "training": sum(map(_training_seconds, rows)) / 3600,
            "compiling": sum(row.get("compile_seconds") or 0.0 for row in rows) / 3600,
            "all": elapsed_seconds(rows)[-1] / 3600,
        }
    return {
        **trained.about,
        "starts": (_read_json(run / STARTS_FILE) or {}).get("starts"),
        "hours": hours,
        "stages": stages_of(run),
        "transfer": _read_json(run / TRANSFER_FILE),
        "curve": _curve(rows),
        "evaluation": evaluation,
        "last_metrics": last,
    }


def stages_of(run: Path) -> list[dict[str, Any]]:
    """The runs whose weights a run began with, one after the other, oldest first.

    Raises:
      UsageError: its list of them cannot be read.
    """
    return _read_json(run / STAGES_FILE) or []


def code_of(run: Path) -> list[dict[str, Any]]:
    """The code that a run was trained by: of each start the `version` of the package and `git`, the
    revision, None where it is not known; what is the same again is left out.

    Raises:
      UsageError: its list of starts cannot be read.
    """
    starts = (_read_json(run / STARTS_FILE) or {}).get("starts") or []
    code = [{"version": x["versions"]["wallgo-jax"], "git": x.get("git")} for x in starts]
    return [each for place, each in enumerate(code) if each not in code[:place]]


def code_in_words(code: Iterable[Mapping[str, Any]]) -> str:
    """What `code_of` finds as text; several where a run was interrupted and went on by another."""
    texts = []
    for each in code:
        git = each["git"] or {"revision": "", "dirty": False}
        revision = f" at {git['revision'][:12]}" if git["revision"] else ""
        texts.append(f"{each['version']}{revision}{' with changes' if git['dirty'] else ''}")
    return " then ".join(texts) or "not recorded"


def _curve(rows: list[Row]) -> list[dict[str, Any]]:
    """Each iteration with short matches, with the hours of training up to it."""
    points, seconds = [], 0.0
    for row in rows:
        seconds += _training_seconds(row)
        if row.get("matches"):
            point = {"iteration": row["iteration"], "hours": seconds / 3600}
            points.append(point | {key: row.get(key) for key in ("matches", "intervals_95")})
    return points


def _training_seconds(row: Row) -> float:
    return (row.get("selfplay_seconds") or 0.0) + (row.get("learn_seconds") or 0.0)


def _read_json(path: Path) -> Any:
    return read_json(path) if path.exists() else None
