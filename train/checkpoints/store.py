"""Checkpoints of a run on disk: weights to play with, and all that resuming needs.

    runs/NAME/checkpoints/ITERATION/{weights,meta}   the newest, the best, and multiples
    runs/NAME/resume/ITERATION/{run,meta}            the newest two
    runs/NAME/*/ITERATION.aside                      found too new or damaged when a run resumed

Weights alone can be read without knowing the run: `meta` says what network they are for. A reader
takes the newest checkpoint that is whole. One process writes at a time.
"""

import dataclasses
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.checkpoints.checkpoint import (
    UNFINISHED,
    OtherArraysError,
    UnreadableError,
    read_arrays,
    read_meta_of,
    write_checkpoint,
)
from train.config import BEST, CheckpointConfig, EvaluationConfig
from train.network import Variables
from train.runtime.errors import UsageError
from train.runtime.files import read_json
from train.runtime.showing import tell
from wallgo_jax import __version__
from wallgo_jax.formats.option_names import argument

WEIGHTS, RESUME = "checkpoints", "resume"
STARTS_FILE = "run.json"
"""File of a run directory with the versions of each start."""
_RESUME_KEEP = 2  # a damaged one does not lose the run


class _OtherVersionError(UnreadableError):
    """Another version wrote the checkpoint, which is whole."""


class _WinRate(NamedTuple):
    """A win rate in a short match; those that count are above all others."""

    counts: bool  # whether the match was as those of the run are now
    rate: float


def save_checkpoint(
    directory: Path,
    iteration: int,
    weights: Variables,
    run: Any,
    config: Mapping[str, Any],
    *,
    win_rate: float | None = None,
    rows_sum: int | None = None,
) -> None:
    """Save, and delete what the config does not keep; when this returns all is on disk.

    An iteration that is on disk already is left as it is.

    Args:
      directory: the run's.
      iteration: that the arrays are of.
      weights: those that play, arrays that nobody changes meanwhile.
      run: all that resuming needs.
      config: of the run, JSON-ready; its `checkpoint` says what is kept, by default as
        `CheckpointConfig`. Of weights with win rates, those found by other matches than the
        config's come after all of its own.
      win_rate: of the weights, if they have played a match.
      rows_sum: checksum of the rows of metrics up to the iteration.

    Raises:
      CannotWriteError: the disk is full, or cannot be written; what was saved before is whole.
    """
    about = {"config": config, "win_rate": win_rate}
    about |= {} if rows_sum is None else {"rows_sum": rows_sum}
    for kind, item, tree in ((WEIGHTS, "weights", weights), (RESUME, "run", run)):
        folder = directory / kind
        for part in folder.glob(f"*{UNFINISHED}*"):
            shutil.rmtree(part, ignore_errors=True)
        if (folder / str(iteration)).exists():
            continue
        write_checkpoint(folder / str(iteration), item, tree, **about)
        known = _iterations(folder)
        kept = set(known[-_RESUME_KEEP:])
        if kind == WEIGHTS:
            options = CheckpointConfig(**config.get("checkpoint", {}))
            kept = kept_iterations(known, options, _win_rates(folder, config))
        for other in {*known} - kept:
            shutil.rmtree(folder / str(other), ignore_errors=True)


def kept_iterations(
    known: Collection[int], options: CheckpointConfig, win_rates: Mapping[int, Any]
) -> set[int]:
    """The iterations whose weights are kept: the newest, those with the highest win rates, of equal
    ones the newest, and multiples."""
    newest, every = sorted(known, reverse=True)[: options.keep], options.keep_every
    rated = sorted(((win_rates[step], step) for step in known if step in win_rates), reverse=True)
    multiples = [step for step in known if every and step % every == 0]
    return {*newest, *(step for _, step in rated[: options.keep_best]), *multiples}


def newest_iteration(directory: Path, kind: str) -> int | None:
    """Return the iteration of the newest finished checkpoint, whole or not; None without one."""
    return max(_iterations(directory / kind), default=None)


def iterations_of(directory: Path) -> list[int]:
    """Iterations whose weights are there, whole or not, in rising order."""
    return _iterations(directory / WEIGHTS)


def best_iteration(directory: Path, config: Mapping[str, Any], *, before: int) -> int | None:
    """Return the earlier iteration of the highest win rate, the newest of equals.

    It is None while no checkpoint has played a match such as the config's: against its first anchor
    that is the same player all along, with its simulations and opening plies.
    """
    rates = _win_rates(directory / WEIGHTS, config)
    rated = [(its.rate, step) for step, its in rates.items() if its.counts and step < before]
    return max(rated)[1] if rated else None


def read_meta(directory: Path, kind: str, iteration: int | None = None) -> dict[str, Any]:
    """Read the newest readable `meta`, or that of an iteration; skip others silently.

    Raises:
      UsageError: there is no checkpoint of this program and this version of the game.
    """
    return _read(directory, kind, read_meta_of, iteration, is_quiet=True)


def read_weights(directory: Path, like: Variables, iteration: int | None = None) -> Variables:
    """Read the newest whole weights, or those of an iteration; see `read_checkpoint`."""
    return read_checkpoint(directory, like, iteration)[1]


def read_checkpoint(
    directory: Path, like: Variables, iteration: int | None = None
) -> tuple[int, Variables]:
    """Read the newest whole weights, or those of an iteration, with the iteration they are of.

    Prints a line for each newer checkpoint that is damaged. `like` gives the weights' shapes.

    Raises:
      UsageError: there are none.
    """

    def read(folder: Path) -> tuple[int, Any]:
        arrays = read_arrays(folder, "weights", like)
        return int(folder.name), arrays

    taken, arrays = _read(directory, WEIGHTS, read, iteration)
    return taken, jax.tree.map(jnp.array, arrays)


def read_run(directory: Path, like: Any) -> Any:
    """Read all that resuming needs as NumPy arrays, from the newest iteration where it is whole.

    Damaged ones are skipped as in `read_weights`.

    Raises:
      UsageError: there are none, or another version of the package wrote them, which kept other
        arrays.
    """

    def read(folder: Path) -> Any:
        try:
            return read_arrays(folder, "run", like)
        except OtherArraysError as error:
            raise _OtherVersionError(
                f"{_written_by(directory)}, this is {__version__}, whose runs hold other arrays "
                f"({error}); its weights can start a new run: "
                f"{argument('start_weights', str(directory))}"
            ) from None

    return _read(directory, RESUME, read)


def _written_by(directory: Path) -> str:
    """The version that a run was last started with, in words."""
    try:
        version = read_json(directory / STARTS_FILE)["starts"][-1]["versions"]["wallgo-jax"]
    except (UsageError, LookupError, TypeError):
        return "another version of wallgo-jax wrote it"
    return f"wallgo-jax {version} wrote it"


def set_aside(directory: Path, like: Variables, *, after: int) -> None:
    """Rename what stands in the way of a run that resumes from iteration `after`: later checkpoints
    and damaged weights become ITERATION.aside. Nothing is deleted. `like` gives the weights'
    shapes."""
    for kind in (WEIGHTS, RESUME):
        for iteration in _iterations(directory / kind):
            folder = directory / kind / str(iteration)
            is_damaged = False
            if kind == WEIGHTS and iteration <= after:
                try:
                    read_arrays(folder, "weights", like)
                except (UnreadableError, UsageError):
                    is_damaged = True
            if iteration > after or is_damaged:
                names = (f"{folder.name}.aside{number or ''}" for number in range(1000))
                free = (new for name in names if not (new := folder.with_name(name)).exists())
                folder.rename(next(free))


def _iterations(folder: Path) -> list[int]:
    """Iterations of all finished checkpoints, in rising order."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))


def _win_rates(folder: Path, config: Mapping[str, Any]) -> dict[int, _WinRate]:
    """Win rates by iteration, of checkpoints that played a match and whose `meta` can be read."""
    rates, match = {}, _match_of(config)
    for iteration in _iterations(folder):
        try:
            meta = read_meta_of(folder / str(iteration))
        except (UnreadableError, UsageError):
            continue
        if meta["win_rate"] is not None:
            rates[iteration] = _WinRate(match == _match_of(meta["config"]), meta["win_rate"])
    return rates


def _match_of(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """What decides the win rates of a config's short matches."""
    options = dataclasses.asdict(EvaluationConfig()) | config.get("evaluation", {})
    fixed = next((anchor for anchor in options["anchors"] if anchor != BEST), None)
    return fixed, *(options[key] for key in ("simulations", "opening_plies", "players_place"))


def _read(
    directory: Path,
    kind: str,
    read: Callable[[Path], Any],
    iteration: int | None = None,
    *,
    is_quiet: bool = False,
) -> Any:
    """Return the result of `read` on the newest checkpoint that it does not refuse, or on that of
    an iteration; prints a line for each that is passed over."""
    folder = directory / kind
    known = _iterations(folder)
    candidates = [(number, folder / str(number)) for number in known]
    if folder.is_dir():
        # Those whose saving was interrupted.
        parts = [(entry, entry.name.partition(UNFINISHED)) for entry in folder.iterdir()]
        candidates += [(int(n), entry) for entry, (n, mark, _) in parts if mark and n.isdecimal()]
    if iteration is not None:
        if iteration not in known:
            there = ", ".join(map(str, known)) or "none"
            raise UsageError(f"{folder / str(iteration)}: no such checkpoint; there are: {there}")
        candidates = [(iteration, folder / str(iteration))]
    complaints = []
    for number, path in sorted(candidates, reverse=True):
        try:
            result = read(path)
        except UnreadableError as error:
            is_whole = isinstance(error, _OtherVersionError)
            complaints.append(f"{path}: {'' if is_whole else 'cannot be read: '}{error}")
            continue
        for complaint in () if is_quiet else complaints:
            tell(f"{complaint}; taking iteration {number}")
        return result
    if not complaints:
        raise UsageError(f"{directory}: no checkpoint here (looked for {kind}/ITERATION)")
    others = f"; nor can any other of {len(complaints)}" if len(complaints) > 1 else ""
    raise UsageError(complaints[0] + others)
