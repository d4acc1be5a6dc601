"""Checkpoints of a run on disk: weights to play with, and all that resuming needs.

    runs/NAME/checkpoints/ITERATION/{weights,meta}   the newest, the best, and multiples
    runs/NAME/resume/ITERATION/{run,meta}            the newest two
    runs/NAME/*/ITERATION.aside                      found too new or damaged when a run resumed

Weights alone can be read without knowing the run: `meta` says what network they are for. A reader
takes the newest checkpoint that is whole.
"""

import contextlib
import dataclasses
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from train.checkpoints.checkpoint import (
    UNFINISHED,
    UnreadableError,
    read_arrays,
    read_meta_of,
    signed_meta,
    without_others,
)
from train.config import BEST, EvaluationConfig
from train.network import Variables
from train.runtime.errors import UsageError
from train.runtime.files import CannotWriteError, disk_error
from train.runtime.host import fetch

WEIGHTS, RESUME = "checkpoints", "resume"
_RESUME_KEEP = 2  # a damaged one does not lose the run
_TRIES, _PAUSE = 50, 0.05  # seconds; of removing what a failed save leaves
_PIECE = 2**25
"""Bytes that are compressed at once; an array in one piece would take its size again in memory."""


class Store:
    """The checkpoints of one run directory, open for writing; one writer at a time.

    Args:
      directory: the run's.
      keep: how many of the newest weights are kept.
      keep_best: how many more weights are kept, those with the highest win rates. Those found by
        other matches than the config's come after all of its own.
      keep_every: weights of multiples of this iteration are kept for ever; 0 for none.
      config: of the run, as in its checkpoints; None where all matches are alike.
    """

    def __init__(
        self,
        directory: Path,
        *,
        keep: int,
        keep_best: int = 0,
        keep_every: int = 0,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._win_rates = _win_rates(directory / WEIGHTS, config)
        policy = _Retention(keep, keep_best, keep_every, self._win_rates)
        self._weights = _open(directory / WEIGHTS, policy)
        self._resume = _open(directory / RESUME, _Retention(_RESUME_KEEP))

    def save(
        self,
        iteration: int,
        weights: Variables,
        run: Any,
        config: dict[str, Any],
        *,
        win_rate: float | None = None,
        rows_sum: int | None = None,
    ) -> None:
        """Save; when this returns the checkpoints are on disk.

        An iteration that is on disk already is left as it is. `rows_sum` is the checksum of the
        rows of metrics up to the iteration.

        Raises:
          CannotWriteError: the disk is full, or cannot be written; what was saved before is whole.
        """
        # On a CPU this is the devices' own memory. Nothing changes it before this returns, so
        # neither this nor orbax, which could go on afterwards, copies it.
        weights, run = jax.tree.map(lambda x: np.asarray(x).view(_Held), fetch((weights, run)))
        if win_rate is not None:
            self._win_rates[iteration] = _WinRate(_is_alike(config, self._config), win_rate)
        for manager, item, tree in (
            (self._weights, "weights", weights),
            (self._resume, "run", run),
        ):
            if iteration in manager.all_steps():
                continue
            meta = signed_meta(iteration, tree, config, win_rate=win_rate, rows_sum=rows_sum)
            pieces = jax.tree.map(lambda x: ocp.SaveArgs(chunk_byte_size=_PIECE), tree)
            arrays = {item: ocp.args.StandardSave(tree, save_args=pieces)}
            with _saving(Path(manager.directory), iteration):
                manager.save(
                    iteration,
                    args=ocp.args.Composite(meta=ocp.args.JsonSave(meta), **arrays),
                    force=True,
                )
                # It takes a second for each half gigabyte, and a full disk stops the run here.
                manager.wait_until_finished()

    def close(self) -> None:
        """Close the store."""
        self._weights.close()
        self._resume.close()


class _Held(np.ndarray):
    """An array that nobody changes while it is saved: a deep copy of it is the array itself."""

    def __deepcopy__(self, memo: dict[int, Any] | None) -> "_Held":
        return self


@contextlib.contextmanager
def _saving(folder: Path, iteration: int) -> Iterator[None]:
    """Turn orbax's errors of a full or forbidden disk into one line, and remove what was written.

    Raises:
      CannotWriteError: names the checkpoint and the reason.
    """
    # Orbax logs each error in every thread that it passes through, with tracebacks.
    log = logging.getLogger("absl")
    before, log.disabled = log.disabled, True
    hook, sys.unraisablehook = sys.unraisablehook, _without_closed_loops(sys.unraisablehook)
    try:
        yield
        sys.unraisablehook = hook  # after an error the writes that still end want the other one
    except Exception as error:  # orbax and tensorstore have their own for everything
        reason = disk_error(error)
        if reason is None:
            raise
        # Writes that still end may add files while they are removed.
        for _ in range(_TRIES):
            left = list(folder.glob(f"{iteration}{UNFINISHED}*"))
            if not left:
                break
            for entry in left:
                shutil.rmtree(entry, ignore_errors=True)
            time.sleep(_PAUSE)
        raise CannotWriteError(f"{folder / str(iteration)}: cannot be written: {reason}") from None
    finally:
        log.disabled = before


def _without_closed_loops(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook that leaves out what tensorstore's threads say of each write that ends after another
    has failed: orbax has closed its event loop by then."""

    def show(unraisable: Any) -> None:
        if "Event loop is closed" not in str(unraisable.exc_value):
            hook(unraisable)

    return show


class _WinRate(NamedTuple):
    """A win rate in a short match; those that count are above all others."""

    counts: bool  # whether the match was as those of the run are now
    rate: float


@dataclasses.dataclass(frozen=True)
class _Retention:
    """Chooses the checkpoints to keep, as orbax's preservation policy."""

    keep: int
    keep_best: int = 0
    keep_every: int = 0
    win_rates: dict[int, _WinRate] = dataclasses.field(default_factory=dict)  # grows with the run

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Whether each of orbax's checkpoints is kept."""
        del context
        steps = [checkpoint.step for checkpoint in checkpoints]
        preserved = set(sorted(steps)[-self.keep :])
        if self.keep_best:
            # Of equal ones the newest.
            rated = sorted((self.win_rates[s], s) for s in steps if s in self.win_rates)
            preserved.update(step for _, step in rated[-self.keep_best :])
        if self.keep_every:
            preserved.update(step for step in steps if step % self.keep_every == 0)
        return [step in preserved for step in steps]


def _open(folder: Path, policy: _Retention) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(
        preservation_policy=policy,
        cleanup_tmp_directories=True,
        # Orbax would open every checkpoint there is, and fail where one is damaged.
        lightweight_initialize=True,
        multiprocessing_options=without_others(0),
        create=False,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return ocp.CheckpointManager(folder.resolve(), options=options)


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
    """
    return _read(directory, RESUME, lambda folder: read_arrays(folder, "run", like))


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


def _win_rates(folder: Path, config: Mapping[str, Any] | None) -> dict[int, _WinRate]:
    """Win rates by iteration, of checkpoints that played a match and whose `meta` can be read."""
    rates = {}
    for iteration in _iterations(folder):
        try:
            meta = read_meta_of(folder / str(iteration))
        except (UnreadableError, UsageError):
            continue
        if meta["win_rate"] is not None:
            rates[iteration] = _WinRate(_is_alike(meta["config"], config), meta["win_rate"])
    return rates


def _is_alike(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    """Whether the win rates of two configs are found by the same matches."""
    return other is None or _match_of(one) == _match_of(other)


def _match_of(config: Mapping[str, Any]) -> tuple[Any, ...]:
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
            complaints.append(f"{path}: cannot be read: {error}")
            continue
        for complaint in () if is_quiet else complaints:
            print(f"{complaint}; taking iteration {number}", file=sys.stderr)
        return result
    if not complaints:
        raise UsageError(f"{directory}: no checkpoint here (looked for {kind}/ITERATION)")
    others = f"; nor can any other of {len(complaints)}" if len(complaints) > 1 else ""
    raise UsageError(complaints[0] + others)
