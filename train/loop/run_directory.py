"""A run's directory: whether it can be used, and its files other than checkpoints."""

import contextlib
import dataclasses
import json
import operator
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from train.checkpoints import store as store_lib
from train.config import (
    CONFIG_FILE,
    RunConfig,
    config_from_dict,
    config_to_dict,
    read_saved_config,
    rule_sets_in_words,
    written_values,
)
from train.functions import KEYS
from train.metrics.rows import METRICS_FILE
from train.runtime.devices import lost_process_message
from train.runtime.errors import NotFiniteError, ProcessLostError, UsageError, usage_errors
from train.runtime.files import CannotWriteError, write_json, writing
from train.runtime.provenance import provenance
from train.runtime.showing import tell
from wallgo_jax.formats.option_names import argument

RESULT_FILE = "evaluation.json"
CURVE_FILE = "strength.json"
GAME_FILE, GAME_TEXT_FILE = "game.jsonl", "game.txt"
RECORDS_FILE = "records.json"
"""File of a directory that `fit` made: which games it learns."""
STARTS_FILE = store_lib.STARTS_FILE
STAGES_FILE = "stages.json"
"""File of a run that began with the weights of another: the runs before it, oldest first."""
TRANSFER_FILE = "transfer.json"
"""File of a run with `init_from`: what it took of the other's weights."""
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
        if directory.exists():
            command = resume_command(directory)
            is_run = (directory / CONFIG_FILE).is_file()
            hint = f"to go on with it: {command}; for a new run " if is_run else ""
            raise UsageError(
                f"{directory}: exists already; {hint}choose another {argument('name')}"
            )
        return
    if config.name != directory.name:
        raise UsageError(
            f"{directory}: cannot resume as {config.name!r}; copy the directory to go on under "
            "another name"
        )
    done = 0
    if has_checkpoint(directory):
        meta = store_lib.read_meta(directory, store_lib.RESUME)
        saved = config_from_dict(meta["config"], where=f"{directory}: saved config")
        done = meta["iteration"]
        # A run that was resumed with other values and stopped before its next save has other ones
        # in its file, and so has one whose disk has failed; a damaged file is written again.
        with contextlib.suppress(UsageError):
            now = read_saved_config(directory)
            if change := _change(_FREE, saved, now, f"iteration {done} was saved"):
                tell(f"{directory / CONFIG_FILE}: {change} there")
    else:
        saved = read_saved_config(directory)
    if change := _change(_FIXED, saved, config, "the run began"):
        what = f"{change} now; what may change: {', '.join(_FREE)}"
        raise UsageError(f"{directory}: cannot resume: {what}")
    if done > config.iterations:
        raise UsageError(
            f"{directory}: has {done} iterations already, more than iterations = "
            f"{config.iterations}"
        )


def _change(fields: Iterable[str], old: Any, new: Any, then: str, prefix: str = "") -> str:
    """The first of the fields in which two configs differ, in words; empty where none is."""
    for field in fields:
        a, b = getattr(old, field), getattr(new, field)
        if a == b:
            continue
        if field == "mix":
            field, a, b = "rules", rule_sets_in_words(a), rule_sets_in_words(b)
        if dataclasses.is_dataclass(a) and dataclasses.is_dataclass(b):
            inner = [each.name for each in dataclasses.fields(a)]
            return _change(inner, a, b, then, f"{prefix}{field}.")
        a, b = (written_values(each)[field] for each in (old, new))
        return f"{prefix}{field} was {a!r} when {then} and is {b!r}"
    return ""


def tell_changed_rows(directory: Path, done: int, rows_sum: int) -> None:
    """Print a line where the rows of metrics are not those up to the checkpoint of an iteration."""
    wanted = store_lib.read_meta(directory, store_lib.RESUME).get("rows_sum") if done else None
    if wanted not in (None, rows_sum):
        path = directory / METRICS_FILE
        tell(f"{path}: the rows up to iteration {done} were changed after they were written")


def resumed_config(directory: Path) -> RunConfig:
    """The config that a run goes on with: the saved one.

    A directory that was renamed or copied gives the run its name.

    Raises:
      UsageError: there is none, or the directory's name is not allowed.
    """
    saved = read_saved_config(directory)
    with usage_errors(str(directory)):
        return dataclasses.replace(saved, name=plain_path(directory).name)


def plain_path(directory: Path) -> Path:
    """The directory by a path that ends in its own name."""
    is_plain = directory.name not in ("", "..") and not directory.is_symlink()
    return directory if is_plain else directory.resolve()


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
        with naming_lost_process(directory):
            yield
    except NotFiniteError as error:
        hint = "start a run with a lower learner.learning_rate"
        raise NotFiniteError(f"{error}; {_last_good(directory)}; {hint}") from None
    except CannotWriteError as error:
        hint = f"when there is room, go on with: {resume_command(directory)}"
        raise UsageError(f"{error}; {_last_good(directory)}; {hint}") from None


@contextlib.contextmanager
def naming_lost_process(directory: Path) -> Iterator[None]:
    """Name the last good checkpoint in the error of another process that has ended."""
    try:
        yield
    except (UsageError, ProcessLostError):
        raise
    # One of a program that runs, or of one that is called.
    except (RuntimeError, ValueError) as error:
        lost = lost_process_message(error)
        if lost is None:
            raise
        raise ProcessLostError(f"{lost}; {going_on_together(directory)}") from None


def going_on_together(directory: Path) -> str:
    """The last good checkpoint of a distributed run, and how it goes on."""
    command = f"{resume_command(directory)} --distributed"
    if not (directory / CONFIG_FILE).is_file():
        command = "the same command, for the run has not begun"
    return f"{_last_good(directory)}; start all processes again with: {command}"


def _last_good(directory: Path) -> str:
    try:
        iteration = store_lib.read_meta(directory, store_lib.RESUME)["iteration"]
    except UsageError:
        return "there is no good checkpoint yet"
    return f"the last good checkpoint is {directory / store_lib.RESUME / str(iteration)}"


def begin(
    directory: Path, config: RunConfig, weights: Any, *, done: int, files: Mapping[str, Any]
) -> None:
    """Make the directory ready for a run that goes on after `done` iterations with these weights.

    Writes the config, `files` (JSON-ready, by name) and the start, sets newer checkpoints
    aside, and saves the weights where their checkpoint is missing.

    Raises:
      UsageError: the directory cannot be made.
    """
    _write(directory, {CONFIG_FILE: config_to_dict(config), **files})
    store_lib.set_aside(directory, weights, after=done)
    path, starts = directory / STARTS_FILE, []
    try:
        starts = json.loads(path.read_text(encoding="utf-8"))["starts"] if path.exists() else []
    except (OSError, ValueError, TypeError, KeyError):
        path.rename(path.with_name(f"{STARTS_FILE}.aside"))
    about = {"seed": config.seed, "iterations": [done, config.iterations]}
    write_json(path, {"starts": [*starts, about | provenance()]})
    if done and store_lib.newest_iteration(directory, store_lib.WEIGHTS) != done:
        # They were being written when the run was killed, or were damaged.
        meta = store_lib.read_meta(directory, store_lib.RESUME)
        rate = meta["win_rate"]
        store_lib.save_checkpoint(directory, done, weights, None, meta["config"], win_rate=rate)


def _write(directory: Path, files: Mapping[str, Any]) -> None:
    """Write files of JSON by name; the directory, if it is made, never exists without them."""
    if "\\" in str(directory.absolute()):
        raise UsageError(
            f"{directory}: cannot be made: tensorstore, which writes checkpoints, takes a "
            "backslash for the end of a folder's name; choose another folder"
        )
    # A run's name opens with no dot, so no other run has this one.
    folder = directory if directory.exists() else directory.with_name(f".{directory.name}")
    with writing(directory):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_json(folder / name, data)
        folder.rename(directory)
