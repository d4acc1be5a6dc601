"""Checkpoints of a run on disk: weights to play with, and all that resuming needs.

    runs/NAME/checkpoints/ITERATION/{weights,meta}   the newest, the best, and multiples
    runs/NAME/resume/ITERATION/{run,meta}            the newest two
    runs/NAME/*/ITERATION.aside                      found too new or damaged when a run resumed

`meta` is JSON: format, env version, iteration, the run's config, its win rate if it played a match,
a checksum of every array and one of `meta` itself. Weights alone can be read without knowing the
run: `meta` says what network they are for. A reader takes the newest checkpoint that is whole.

The checksums are our own: orbax's OCDBT format has checksums of its manifest and index only. Of 120
bits flipped in the files of the arrays, 119 came back as other numbers without an error.
"""

import contextlib
import dataclasses
import json
import logging
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import tensorstore

from train.network import Variables
from train.runtime.errors import UsageError
from train.runtime.files import CannotWriteError, disk_error
from train.runtime.host import fetch
from wallgo_jax.env import VERSION

FORMAT = 3
WEIGHTS, RESUME = "checkpoints", "resume"
_RESUME_KEEP = 2  # a damaged one does not lose the run
_UNFINISHED = ".orbax-checkpoint-tmp"


class Store:
    """The checkpoints of one run directory, open for writing; one writer at a time.

    Args:
      directory: the run's.
      keep: how many of the newest weights are kept.
      keep_best: how many more weights are kept, those with the highest win rates.
      keep_every: weights of multiples of this iteration are kept for ever; 0 for none.
    """

    def __init__(
        self, directory: Path, *, keep: int, keep_best: int = 0, keep_every: int = 0
    ) -> None:
        self._win_rates = _win_rates(directory / WEIGHTS)
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
    ) -> None:
        """Save; when this returns the checkpoints are on disk.

        An iteration that is on disk already is left as it is.

        Raises:
          CannotWriteError: the disk is full, or cannot be written; what was saved before is whole.
        """
        # Copied, for on a CPU the host's view may be the device's own memory.
        weights, run = jax.tree.map(np.array, fetch((weights, run)))
        if win_rate is not None:
            self._win_rates[iteration] = win_rate
        for manager, item, tree in (
            (self._weights, "weights", weights),
            (self._resume, "run", run),
        ):
            if iteration in manager.all_steps():
                continue
            meta = {
                "format": FORMAT,
                "env_version": VERSION,
                "iteration": iteration,
                "config": config,
                "win_rate": win_rate,
                "sums": _sums(tree),
            }
            arrays = {item: ocp.args.StandardSave(tree)}
            signed = ocp.args.JsonSave(meta | {"sum": _sum_of(meta)})
            with _saving(Path(manager.directory), iteration):
                manager.save(iteration, args=ocp.args.Composite(meta=signed, **arrays), force=True)
                # It takes a second for each half gigabyte, and a full disk stops the run here.
                manager.wait_until_finished()

    def close(self) -> None:
        """Close the store."""
        self._weights.close()
        self._resume.close()


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
        for entry in folder.glob(f"{iteration}{_UNFINISHED}*"):
            shutil.rmtree(entry, ignore_errors=True)
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


@dataclasses.dataclass(frozen=True)
class _Retention:
    """Chooses the checkpoints to keep, as orbax's preservation policy."""

    keep: int
    keep_best: int = 0
    keep_every: int = 0
    win_rates: dict[int, float] = dataclasses.field(default_factory=dict)  # grows as the run does

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Whether each of orbax's checkpoints is kept."""
        del context
        steps = [checkpoint.step for checkpoint in checkpoints]
        kept = set(sorted(steps)[-self.keep :])
        if self.keep_best:
            # Of equal ones the newest.
            rated = sorted((self.win_rates[s], s) for s in steps if s in self.win_rates)
            kept.update(step for _, step in rated[-self.keep_best :])
        if self.keep_every:
            kept.update(step for step in steps if step % self.keep_every == 0)
        return [step in kept for step in steps]


def _open(folder: Path, policy: _Retention) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(
        preservation_policy=policy,
        cleanup_tmp_directories=True,
        # Orbax would open every checkpoint there is, and fail where one is damaged.
        lightweight_initialize=True,
        multiprocessing_options=_alone(0),
        create=False,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return ocp.CheckpointManager(folder.resolve(), options=options)


def _alone(process: int) -> ocp.options.MultiprocessingOptions:
    """Options by which one process reads or writes without waiting for others."""
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    return ocp.options.MultiprocessingOptions(
        primary_host=process,
        active_processes={process},
        barrier_sync_key_prefix=f"process_{process}",
    )


def newest_iteration(directory: Path, kind: str) -> int | None:
    """Return the iteration of the newest finished checkpoint, whole or not; None without one."""
    return max(_iterations(directory / kind), default=None)


def iterations_of(directory: Path) -> list[int]:
    """Iterations whose weights are there, whole or not, in rising order."""
    return _iterations(directory / WEIGHTS)


def best_iteration(directory: Path, *, before: int) -> int | None:
    """Return the earlier iteration of the highest win rate, the newest of equals.

    It is None while no checkpoint has played a match.
    """
    rates = _win_rates(directory / WEIGHTS)
    rated = [(rate, iteration) for iteration, rate in rates.items() if iteration < before]
    return max(rated)[1] if rated else None


def read_meta(directory: Path, kind: str, iteration: int | None = None) -> dict[str, Any]:
    """Read the newest readable `meta`, or that of an iteration; skip others silently.

    Raises:
      UsageError: there is no checkpoint of this program and this version of the game.
    """
    if iteration is not None:
        return _the_one(directory, kind, iteration, _read_meta)
    return _newest(directory, kind, _read_meta, say=lambda line: None)


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
        found = _read(folder, "weights", like)
        return int(folder.name), found

    if iteration is None:
        taken, found = _newest(directory, WEIGHTS, read, say=_say)
    else:
        taken, found = _the_one(directory, WEIGHTS, iteration, read)
    return taken, jax.tree.map(jnp.array, found)


def read_run(directory: Path, like: Any) -> Any:
    """Read all that resuming needs as NumPy arrays, from the newest iteration where it is whole.

    Damaged ones are skipped as in `read_weights`.
    """
    return _newest(directory, RESUME, lambda folder: _read(folder, "run", like), say=_say)


def set_aside(directory: Path, like: Variables, *, after: int) -> None:
    """Rename what stands in the way of a run that resumes from iteration `after`: later checkpoints
    and damaged weights become ITERATION.aside. Nothing is deleted. `like` gives the weights'
    shapes."""
    for kind in (WEIGHTS, RESUME):
        for iteration in _iterations(directory / kind):
            folder = directory / kind / str(iteration)
            if iteration > after or (kind == WEIGHTS and not _is_whole(folder, like)):
                _rename_aside(folder)


def _is_whole(folder: Path, like: Variables) -> bool:
    try:
        _read(folder, "weights", like)
    except (_UnreadableError, UsageError):
        return False
    return True


def _rename_aside(path: Path) -> None:
    names = (f"{path.name}.aside{number or ''}" for number in range(1000))
    path.rename(next(new for name in names if not (new := path.with_name(name)).exists()))


def _iterations(folder: Path) -> list[int]:
    """Iterations of all finished checkpoints, in rising order."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))


def _unfinished(folder: Path) -> list[tuple[int, Path]]:
    """Iteration and directory of each checkpoint whose saving was interrupted."""
    parts = [(entry, entry.name.partition(_UNFINISHED)) for entry in folder.iterdir()]
    return [(int(name), entry) for entry, (name, mark, _) in parts if mark and name.isdecimal()]


def _win_rates(folder: Path) -> dict[int, float]:
    """Win rates by iteration, of checkpoints that played a match and whose `meta` can be read."""
    found = {}
    for iteration in _iterations(folder):
        try:
            win_rate = _read_meta(folder / str(iteration))["win_rate"]
        except (_UnreadableError, UsageError):
            continue
        if win_rate is not None:
            found[iteration] = win_rate
    return found


class _UnreadableError(Exception):
    """A checkpoint cannot be used; the message follows the words "cannot be read: "."""


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _the_one(directory: Path, kind: str, iteration: int, read: Callable[[Path], Any]) -> Any:
    """Call `read` on the checkpoint of an iteration and return its result."""
    folder = directory / kind
    if iteration not in _iterations(folder):
        known = ", ".join(map(str, _iterations(folder))) or "none"
        raise UsageError(f"{folder / str(iteration)}: no such checkpoint; there are: {known}")
    try:
        return read(folder / str(iteration))
    except _UnreadableError as error:
        raise UsageError(f"{folder / str(iteration)}: cannot be read: {error}") from None


def _newest(
    directory: Path, kind: str, read: Callable[[Path], Any], *, say: Callable[[str], None]
) -> Any:
    """Return the result of `read` on the newest checkpoint that it does not refuse."""
    folder = directory / kind
    candidates = [(iteration, folder / str(iteration)) for iteration in _iterations(folder)]
    if folder.is_dir():
        candidates += _unfinished(folder)
    complaints = []
    for iteration, path in sorted(candidates, reverse=True):
        try:
            found = read(path)
        except _UnreadableError as error:
            complaints.append(f"{path}: cannot be read: {error}")
            continue
        for complaint in complaints:
            say(f"{complaint}; taking iteration {iteration}")
        return found
    if not complaints:
        raise UsageError(f"{directory}: no checkpoint here (looked for {kind}/ITERATION)")
    others = f"; nor can any other of {len(complaints)}" if len(complaints) > 1 else ""
    raise UsageError(complaints[0] + others)


def _read_meta(folder: Path) -> dict[str, Any]:
    """A checkpoint's `meta`, exactly as it was written.

    Raises:
      _UnreadableError: it is not.
      UsageError: it is of another version of the game.
    """
    if _UNFINISHED in folder.name:
        raise _UnreadableError("its saving was never finished")
    try:
        meta = json.loads((folder / "meta" / "metadata").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _UnreadableError(f"meta: {_in_one_line(error)}") from None
    found = meta.get("format") if isinstance(meta, dict) else meta
    if found != FORMAT:
        raise _UnreadableError(f"format {str(found)[:40]}, this program reads {FORMAT}")
    if meta.get("env_version") != VERSION:
        raise UsageError(
            f"{folder}: made with version {meta.get('env_version')!r} of the game, "
            f"this program plays version {VERSION!r}"
        )
    if meta.pop("sum", None) != _sum_of(meta):
        raise _UnreadableError("meta: not what was written")
    if str(meta["iteration"]) != folder.name:
        raise _UnreadableError(f"it is of iteration {meta['iteration']}")
    return meta


def _read(folder: Path, item: str, like: Any) -> Any:
    """The arrays of a checkpoint, bit for bit those that were saved.

    Raises:
      _UnreadableError: they are not, or not of the shapes of `like`.
      UsageError: they are of another version of the game.
    """
    sums = _read_meta(folder)["sums"]
    target = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), like)
    path = (folder / item).resolve()
    try:
        _check_arrays(path, target)
        handler = ocp.StandardCheckpointHandler()
        alone = _alone(jax.process_index())
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            found = checkpointer.restore(path, args=ocp.args.StandardRestore(target))
    except Exception as error:  # orbax and tensorstore have their own for everything
        raise _UnreadableError(_in_one_line(error)) from None
    for name, number in _sums(found).items():
        if sums.get(name) != number:
            raise _UnreadableError(f"{name} is not what was written")
    return found


def _check_arrays(folder: Path, target: Any) -> None:
    """Refuse arrays that cannot be read, or whose types and shapes are not those of the target.

    Reading them here first, one by one, gives one error: orbax reads all at once, and where one
    fails the others print tracebacks of their own.
    """
    store = tensorstore.KvStore.open({"driver": "ocdbt", "base": f"file://{folder}/"}).result()
    keys = store.list().result()
    if not keys or not all(store.read(key).result().value for key in keys):
        raise ValueError("some of its arrays are not there")
    # orbax declares a path class of its own and takes any.
    saved = _arrays(ocp.StandardCheckpointHandler().metadata(cast(Any, folder)).tree)
    wanted = _arrays(target)
    for name in sorted(saved.keys() | wanted.keys()):
        found, expected = saved.get(name, "nothing"), wanted.get(name, "nothing")
        if found != expected:
            raise ValueError(f"it has {found} for {name}, where {expected} is wanted")


def _arrays(tree: Any) -> dict[str, str]:
    """Types and shapes by name."""
    return {name: f"{x.dtype}{list(x.shape)}" for name, x in _named(tree)}


def _sums(tree: Any) -> dict[str, int]:
    """CRC-32 of each array's bytes by name."""
    return {
        name: zlib.crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
        for name, x in _named(tree)
    }


def _named(tree: Any) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), x) for path, x in leaves]


def _sum_of(meta: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(meta, sort_keys=True).encode())


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
