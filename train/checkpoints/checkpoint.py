"""One checkpoint on disk: `meta` and arrays, each with a checksum.

    ITERATION/{weights,run}/   the arrays, as orbax writes them
    ITERATION/meta/metadata    JSON: format, env version, iteration, the run's config, its win rate
                               if it played a match, a checksum of every array, one of the rows of
                               metrics up to here, and one of `meta` itself

The checksums are our own: orbax's OCDBT format has checksums of its manifest and index only. Of 120
bits flipped in the files of the arrays, 119 came back as other numbers without an error.
"""

import contextlib
import gc
import json
import logging
import shutil
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore

from train.runtime.errors import UsageError, one_line
from train.runtime.files import CannotWriteError, disk_error
from wallgo_jax.env import VERSION

FORMAT = 3
UNFINISHED = ".orbax-checkpoint-tmp"
_PIECE = 2**25
"""Bytes that are compressed at once; an array in one piece would take its size again in memory."""


class UnreadableError(Exception):
    """A checkpoint cannot be used; the message follows the words "cannot be read: "."""


class OtherArraysError(UnreadableError):
    """A checkpoint is whole, but its arrays are not those that are wanted; the message says so."""


def write_checkpoint(folder: Path, item: str, tree: Any, **about: Any) -> None:
    """Write arrays and their `meta`; the folder never exists without either.

    Args:
      folder: named by its iteration; it does not exist.
      item: name of the arrays.
      tree: the arrays, which nobody changes meanwhile.
      about: entries of `meta` besides format, version, iteration and checksums.

    Raises:
      CannotWriteError: the disk is full, or cannot be written; nothing is left of the folder.
    """
    entries = {"format": FORMAT, "env_version": VERSION, "iteration": int(folder.name)}
    meta = entries | about | {"sums": _sums(tree)}
    part = folder.resolve().with_name(folder.name + UNFINISHED)
    pieces = jax.tree.map(lambda x: ocp.SaveArgs(chunk_byte_size=_PIECE), tree)
    held = jax.tree.map(lambda x: np.asarray(x).view(_Held), tree)
    with _disk_errors(folder, part):
        (part / "meta").mkdir(parents=True)
        with _checkpointer(0) as checkpointer:
            checkpointer.save(part / item, args=ocp.args.StandardSave(held, save_args=pieces))
        text = json.dumps(meta | {"sum": _sum_of(meta)})
        (part / "meta" / "metadata").write_text(text, encoding="utf-8")
        part.rename(folder)


class _Held(np.ndarray):
    """An array that nobody changes while it is saved: a deep copy of it is the array itself."""

    def __deepcopy__(self, memo: dict[int, Any] | None) -> "_Held":
        return self


@contextlib.contextmanager
def _disk_errors(folder: Path, part: Path) -> Iterator[None]:
    """Turn orbax's errors of a full or forbidden disk into one line, and remove the written part.

    Raises:
      CannotWriteError: names the checkpoint and the reason.
    """
    # Orbax logs each error with tracebacks in every thread that it passes through, and has closed
    # its event loop when tensorstore reports the writes that end after one has failed.
    log, hook = logging.getLogger("absl"), sys.unraisablehook
    before, log.disabled = log.disabled, True
    sys.unraisablehook = lambda x: "loop is closed" in str(x.exc_value) or hook(x)
    try:
        yield
        sys.unraisablehook = hook  # after an error the writes that still end want the other one
    except Exception as error:  # orbax and tensorstore have their own for everything
        reason = disk_error(error)
        if reason is None:
            raise
        shutil.rmtree(part, ignore_errors=True)
        raise CannotWriteError(f"{folder}: cannot be written: {reason}") from None
    finally:
        log.disabled = before


def _checkpointer(process: int) -> ocp.Checkpointer:
    """Reads or writes in one process, which waits for no other."""
    alone = ocp.options.MultiprocessingOptions()
    if jax.process_count() > 1:
        prefix = f"process_{process}"
        alone = ocp.options.MultiprocessingOptions(process, {process}, prefix)
    return ocp.Checkpointer(ocp.StandardCheckpointHandler(), multiprocessing_options=alone)


def read_meta_of(folder: Path) -> dict[str, Any]:
    """Read a checkpoint's `meta`, exactly as it was written.

    Raises:
      UnreadableError: it is not.
      UsageError: it is of another version of the game.
    """
    if UNFINISHED in folder.name:
        raise UnreadableError("its saving was never finished")
    try:
        meta = json.loads((folder / "meta" / "metadata").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableError(f"meta: {_reason(error)}") from None
    found = meta.get("format") if isinstance(meta, dict) else meta
    if found != FORMAT:
        raise UnreadableError(f"format {str(found)[:40]}, this program reads {FORMAT}")
    check_version(folder, meta.get("env_version"))
    if meta.pop("sum", None) != _sum_of(meta) or str(meta["iteration"]) != folder.name:
        raise UnreadableError("meta: not what was written")
    return meta


def check_version(folder: Path, version: Any) -> None:
    """Refuse weights that were made with another version of the game with a UsageError."""
    if version != VERSION:
        raise UsageError(
            f"{folder}: made with version {version!r} of the game, this program plays version "
            f"{VERSION!r}"
        )


def read_arrays(folder: Path, item: str, like: Any) -> Any:
    """Read the arrays of a checkpoint, bit for bit those that were saved.

    Raises:
      UnreadableError: they are not.
      OtherArraysError: they are not of the names, types and shapes of `like`.
      UsageError: they are of another version of the game.
    """
    sums, path = read_meta_of(folder)["sums"], (folder / item).resolve()
    target = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), like)
    restored, failure = None, ""
    with warnings.catch_warnings():
        # Where a read fails, orbax drops coroutines that it has not begun; each warns.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        try:
            _check_arrays(path, target)
            with _checkpointer(jax.process_index()) as checkpointer:
                restored = checkpointer.restore(path, args=ocp.args.StandardRestore(target))
        except OtherArraysError:
            raise
        except Exception as error:  # orbax and tensorstore have their own for everything
            failure = _reason(error)
        if failure:
            gc.collect()
            raise UnreadableError(failure)
    for name, number in _sums(restored).items():
        if sums.get(name) != number:
            raise UnreadableError(f"{name} is not what was written")
    return restored


def _check_arrays(folder: Path, target: Any) -> None:
    """Refuse arrays that cannot be read, or whose types and shapes are not those of the target.

    Reading them here first, one by one, gives one error: orbax reads all at once, and where one
    fails the others print tracebacks of their own.
    """
    # Not as a URL, which some characters of a path would end.
    base = {"driver": "file", "path": f"{folder}/"}
    store = tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()
    keys = store.list().result()
    if not keys or not all(store.read(key).result().value for key in keys):
        raise ValueError("some of its arrays are missing")
    # orbax declares a path class of its own and takes any.
    trees = ocp.StandardCheckpointHandler().metadata(cast(Any, folder)).tree, target
    saved, wanted = ({key: f"{x.dtype}{list(x.shape)}" for key, x in _named(x)} for x in trees)
    for name in sorted(saved.keys() | wanted.keys()):
        found, expected = saved.get(name, "nothing"), wanted.get(name, "nothing")
        if found != expected:
            raise OtherArraysError(f"it has {found} for {name}, where {expected} is wanted")


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


def _reason(error: Exception) -> str:
    return one_line(error)[:300] or type(error).__name__
