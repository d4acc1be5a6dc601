"""A run's directory: whether it can be used, and its files other than checkpoints."""

import contextlib
import dataclasses
import datetime
import functools
import importlib.metadata
import json
import operator
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

import wallgo_jax
from train.checkpoints import store as store_lib
from train.config import (
    CONFIG_FILE,
    RunConfig,
    config_from_dict,
    config_to_dict,
    read_saved_config,
)
from train.config.rule_sets import rule_sets_in_words
from train.functions import KEYS, Function
from train.metrics.rows import METRICS_FILE
from train.runtime.devices import lost_process_message
from train.runtime.errors import NotFiniteError, ProcessLostError, UsageError
from train.runtime.files import CannotWriteError, reason_of, write_json
from wallgo_jax.env import VERSION

RESULT_FILE = "evaluation.json"
GAME_FILE, GAME_TEXT_FILE = "game.jsonl", "game.txt"
RECORDS_FILE = "records.json"
"""File of a directory that `fit` made: which games it learns."""
STARTS_FILE = "run.json"
STAGES_FILE = "stages.json"
"""File of a run that began with the weights of another: the runs before it, oldest first."""
TRANSFER_FILE = "transfer.json"
"""File of a run with `init_from`: what it took of the other's weights."""
_LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")

_FIXED = (
    *("seed", "rules", "mix", "grid", "start_weights", "init_from"),
    *("network", "search", "selfplay", "replay", "learner"),
)
"""What a resumed run must not change: all of it decides the numbers of the iterations done."""
_FREE = tuple(
    field.name for field in dataclasses.fields(RunConfig) if field.name not in ("name", *_FIXED)
)


def check_directory(directory: Path, config: RunConfig, *, resume: bool) -> None:
    """Refuse to overwrite a run, or to resume one that another config made.

    Raises:
      UsageError: names the difference and what to do.
    """
    if not resume:
        if (directory / CONFIG_FILE).is_file():
            raise UsageError(
                f"{directory}: exists already; to go on with it: {resume_command(directory)}; for "
                "a new run choose another --name"
            )
        if directory.exists():
            raise UsageError(f"{directory}: exists already; choose another --name")
        return
    if config.name != directory.name:
        raise UsageError(
            f"{directory}: cannot resume as {config.name!r}; copy the directory to go on under "
            "another name"
        )
    if not directory.is_dir():
        raise UsageError(f"{directory}: nothing to resume: no such directory")
    if has_checkpoint(directory):
        meta = store_lib.read_meta(directory, store_lib.RESUME)
        saved = config_from_dict(meta["config"], where=f"{directory}: saved config")
        _tell_changed_config(directory, saved, meta["iteration"])
    else:
        meta, saved = {"iteration": 0}, read_saved_config(directory)
    for field in _FIXED:
        old, new = getattr(saved, field), getattr(config, field)
        if old != new:
            if field == "mix":
                field, old, new = "rules", rule_sets_in_words(old), rule_sets_in_words(new)
            raise UsageError(
                f"{directory}: cannot resume: {_change_of(field, old, new)} now; what may change: "
                f"{', '.join(_FREE)}"
            )
    if meta["iteration"] > config.iterations:
        raise UsageError(
            f"{directory}: has {meta['iteration']} iterations already, more than "
            f"iterations = {config.iterations}"
        )


def _tell_changed_config(directory: Path, saved: RunConfig, iteration: int) -> None:
    """Print a line where the run's file of its config is not what its newest checkpoint holds.

    A run that was resumed with other values and stopped before its next save has such a file, and
    one whose disk has failed.
    """
    try:
        written = read_saved_config(directory)
    except UsageError:
        return  # it is written again
    for field in _FREE:
        old, new = getattr(saved, field), getattr(written, field)
        if old != new:
            change = _change_of(field, old, new, f"iteration {iteration} was saved")
            print(f"{directory / CONFIG_FILE}: {change} there", file=sys.stderr)
            return


def tell_changed_rows(directory: Path, done: int, rows_sum: int) -> None:
    """Print a line where the rows of metrics are not those up to the checkpoint of an iteration."""
    if not done:
        return
    wanted = store_lib.read_meta(directory, store_lib.RESUME).get("rows_sum")
    if wanted not in (None, rows_sum):
        path = directory / METRICS_FILE
        print(f"{path}: the rows up to iteration {done} are not what was written", file=sys.stderr)


def resumed_config(directory: Path) -> RunConfig:
    """The config that a run goes on with: the saved one.

    A directory that was renamed or copied gives the run its name.

    Raises:
      UsageError: there is none, or the directory's name is not allowed.
    """
    saved = read_saved_config(directory)
    try:
        return dataclasses.replace(saved, name=plain_path(directory).name)
    except ValueError as error:
        raise UsageError(f"{directory}: {error}") from None


def plain_path(directory: Path) -> Path:
    """The directory by a path that ends in its own name."""
    is_plain = directory.name not in ("", "..") and not directory.is_symlink()
    return directory if is_plain else directory.resolve()


def _change_of(field: str, old: Any, new: Any, then: str = "the run began") -> str:
    if dataclasses.is_dataclass(old) and dataclasses.is_dataclass(new):
        for inner in dataclasses.fields(old):
            a, b = getattr(old, inner.name), getattr(new, inner.name)
            if a != b:
                return _change_of(f"{field}.{inner.name}", a, b, then)

    def text_of(value: Any) -> str:
        value = value.name if isinstance(value, Function) else value
        return repr(list(value) if isinstance(value, tuple) else value)

    return f"{field} was {text_of(old)} when {then} and is {text_of(new)}"


def resume_command(directory: Path) -> str:
    """What a user types to go on with the run in a directory: a command, or a call in Python where
    the run has functions of the user's own."""
    with contextlib.suppress(UsageError, OSError):
        saved = read_saved_config(directory)
        own = [name for name, key in KEYS.items() if operator.attrgetter(key)(saved)]
        if own:
            given = "".join(f", {name}=..." for name in own)
            return f"train.resume({str(directory)!r}{given}) with the functions that it began with"
    command = "fit" if is_fit(directory) else "run"
    return f"python -m train {command} --resume {shlex.quote(str(directory))}"


def is_fit(directory: Path) -> bool:
    """Whether the run in a directory learns recorded games, and no self-play."""
    return (directory / RECORDS_FILE).exists()


def has_checkpoint(directory: Path) -> bool:
    """Whether the run has a checkpoint to resume from.

    A run that was stopped before its first checkpoint has none and starts again.
    """
    return store_lib.newest_iteration(directory, store_lib.RESUME) is not None


@contextlib.contextmanager
def naming_last_good(directory: Path) -> Iterator[None]:
    """Name the last good checkpoint in the error of a NaN or infinite loss or gradient, of a disk
    that cannot be written, and of another process that has ended."""
    try:
        yield
    except NotFiniteError as error:
        hint = "start a run with a lower learner.learning_rate"
        raise NotFiniteError(f"{error}; {_last_good(directory)}; {hint}") from None
    except CannotWriteError as error:
        hint = f"when there is room, go on with: {resume_command(directory)}"
        raise UsageError(f"{error}; {_last_good(directory)}; {hint}") from None
    except RuntimeError as error:
        lost = lost_process_message(error)
        if lost is None:
            raise
        hint = f"start all processes again with: {resume_command(directory)} --distributed"
        raise ProcessLostError(f"{lost}; {_last_good(directory)}; {hint}") from None


def _last_good(directory: Path) -> str:
    try:
        iteration = store_lib.read_meta(directory, store_lib.RESUME)["iteration"]
    except UsageError:
        return "there is no good checkpoint yet"
    return f"the last good checkpoint is {directory / store_lib.RESUME / str(iteration)}"


def begin(
    directory: Path,
    config: RunConfig,
    weights: Any,
    *,
    done: int,
    files: Mapping[str, Any],
) -> store_lib.Store:
    """Make the directory ready for a run that goes on after `done` iterations with these weights.

    Writes the config, `files` (JSON-ready, by name) and the start, sets newer checkpoints
    aside, and saves the weights where their checkpoint is missing.

    Returns:
      The store of the run's checkpoints, open.

    Raises:
      UsageError: the directory cannot be made.
    """
    fields = config_to_dict(config)
    _make_run_directory(directory, {CONFIG_FILE: fields, **files})
    store_lib.set_aside(directory, weights, after=done)
    _note_start(directory, config, done)
    keep = dataclasses.asdict(config.checkpoint)
    del keep["every"]
    store = store_lib.Store(directory, config=fields, **keep)
    if done and store_lib.newest_iteration(directory, store_lib.WEIGHTS) != done:
        # They were being written when the run was killed, or were damaged.
        meta = store_lib.read_meta(directory, store_lib.RESUME)
        store.save(done, weights, None, meta["config"], win_rate=meta["win_rate"])
    return store


def _make_run_directory(directory: Path, files: Mapping[str, Any]) -> None:
    """Make the run's directory and those above it; it never exists without these files."""
    if "\\" in str(directory.absolute()):
        raise UsageError(
            f"{directory}: cannot be made: tensorstore, which writes checkpoints, takes a "
            "backslash for the end of a folder's name; choose another folder"
        )
    if not directory.exists():
        # A run's name opens with no dot, so no other run has this one.
        unnamed = directory.with_name(f".{directory.name}")
        try:
            unnamed.mkdir(parents=True, exist_ok=True)
            _write_all(unnamed, files)
            unnamed.rename(directory)
        except OSError as error:
            raise UsageError(f"{directory}: cannot be made: {reason_of(error)}") from None
    _write_all(directory, files)


def _write_all(directory: Path, files: Mapping[str, Any]) -> None:
    for name, data in files.items():
        write_json(directory / name, data)


def _note_start(directory: Path, config: RunConfig, done: int) -> None:
    """Add this start to the list of starts."""
    path = directory / STARTS_FILE
    try:
        starts = json.loads(path.read_text(encoding="utf-8"))["starts"]
    except FileNotFoundError:
        starts = []
    except (OSError, ValueError, TypeError, KeyError):
        path.rename(path.with_name(f"{STARTS_FILE}.aside"))
        starts = []
    write_json(path, {"starts": [*starts, _provenance(config, done)]})


def _provenance(config: RunConfig, done: int) -> dict[str, Any]:
    """Versions, devices, git revision and seed, which with the config decide a run's numbers."""
    libraries = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    devices = jax.devices()
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "iterations": [done, config.iterations],
        "seed": config.seed,
        "env_version": VERSION,
        "versions": {
            "python": platform.python_version(),
            **libraries,
            "wallgo-jax": wallgo_jax.__version__,
        },
        "devices": {
            "platform": devices[0].platform,
            "kind": devices[0].device_kind,
            "count": len(devices),
        },
        "git": _git_revision(Path(__file__).parent),
    }


@functools.cache
def _git_revision(folder: Path) -> dict[str, Any] | None:
    """The commit of the sources and whether they differ from it; None outside a repository.

    Asked once a process, which has loaded its sources by then, whatever is checked out later.
    """
    try:
        _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        revision = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"revision": revision, "dirty": bool(changes)}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "--no-optional-locks", *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=10,
    )
    return done.stdout.strip()
