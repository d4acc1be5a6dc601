"""A run's directory: may it be used, and what lies in it beside checkpoints."""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax

import wallgo_jax
from train.checkpoints import store as store_lib
from train.config import RunConfig, config_from_dict, config_to_dict
from train.runtime.errors import NotFiniteError, UsageError
from wallgo_jax.env import VERSION

CONFIG_FILE, RESULT_FILE, GAME_FILE = "config.json", "evaluation.json", "game.txt"
STARTS_FILE = "run.json"
_LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")

T = TypeVar("T")


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
    meta = store_lib.read_meta(directory, store_lib.RESUME)
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
    if store_lib.newest_iteration(directory, store_lib.RESUME) is not None:
        return True
    if not (directory / CONFIG_FILE).is_file():
        raise UsageError(f"{directory}: no run of this program: it has no {CONFIG_FILE}")
    return False


@contextlib.contextmanager
def naming_last_good(directory: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Add to the complaint of a run that came to numbers that are none what is left of it.

    Args:
      directory: the run's.
      wait: returns when all that is being saved is on disk.
    """
    try:
        yield
    except NotFiniteError as error:
        wait()
        try:
            iteration = store_lib.read_meta(directory, store_lib.RESUME)["iteration"]
            left = f"the last good checkpoint is {directory / store_lib.RESUME / str(iteration)}"
        except UsageError:
            left = "there is no good checkpoint yet"
        hint = "start a run with a lower learner.learning_rate"
        raise UsageError(f"{error}; {left}; {hint}") from None


def first_state(
    directory: Path, init: Callable[[], T], place: Callable[[T], T], *, resume: bool
) -> T:
    """What a run starts from: its newest whole checkpoint, by way of `place` from NumPy arrays to
    the devices, or, where there is none, `init()`. `init` is not computed where it only gives the
    shapes."""
    if resume and has_checkpoint(directory):
        return place(store_lib.read_run(directory, jax.eval_shape(init)))
    return init()


def begin(directory: Path, config: RunConfig, weights: Any, *, done: int) -> store_lib.Store:
    """Make the directory ready for a run that goes on after `done` iterations with these weights:
    config and start are noted, checkpoints that are in the way set aside, and weights that are not
    there saved.

    Returns:
      The store of its checkpoints, open.

    Raises:
      UsageError: the directory cannot be made.
    """
    _make_run_directory(directory, config)
    store_lib.set_aside(directory, weights, after=done)
    _note_start(directory, config, done)
    keep = dataclasses.asdict(config.checkpoint)
    del keep["every"]
    store = store_lib.Store(directory, **keep)
    if done and store_lib.newest_iteration(directory, store_lib.WEIGHTS) != done:
        # They were being written when the run was killed, or were damaged.
        win_rate = store_lib.read_meta(directory, store_lib.RESUME)["win_rate"]
        store.save(done, weights, None, config_to_dict(config), win_rate=win_rate)
    return store


def make_directory(directory: Path) -> None:
    """The directory and those above it.

    Raises:
      UsageError: it cannot be made.
    """
    with _making(directory):
        directory.mkdir(parents=True, exist_ok=True)


def _make_run_directory(directory: Path, config: RunConfig) -> None:
    """The directory, those above it, and the config in it: never seen without."""
    if not directory.exists():
        # A run's name opens with no dot, so no other run has this one.
        unnamed = directory.with_name(f".{directory.name}")
        with _making(directory):
            unnamed.mkdir(parents=True, exist_ok=True)
            write_json(unnamed / CONFIG_FILE, config_to_dict(config))
            unnamed.rename(directory)
    write_json(directory / CONFIG_FILE, config_to_dict(config))


@contextlib.contextmanager
def _making(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}") from None


def _note_start(directory: Path, config: RunConfig, done: int) -> None:
    """Add to the list of starts what this one runs on."""
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
    """Versions, devices, git revision, seed: what else decides what a config comes to."""
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


def _git_revision(folder: Path) -> dict[str, Any] | None:
    """Commit of the sources and whether they differ from it; None where git does not know them."""
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


def write_json(path: Path, data: Any) -> None:
    """A file of indented JSON, there in whole or not at all."""
    unnamed = path.with_name(f"{path.name}.tmp")
    unnamed.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    os.replace(unnamed, path)
