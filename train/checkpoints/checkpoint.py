"""One checkpoint on disk: its `meta` and its arrays, each with a checksum.

`meta` is JSON: format, env version, iteration, the run's config, its win rate if it played a match,
a checksum of every array, one of the rows of metrics up to here, and one of `meta` itself.

The checksums are our own: orbax's OCDBT format has checksums of its manifest and index only. Of 120
bits flipped in the files of the arrays, 119 came back as other numbers without an error.
"""

import gc
import json
import warnings
import zlib
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore

from train.runtime.errors import UsageError, one_line
from wallgo_jax.env import VERSION

FORMAT = 3
UNFINISHED = ".orbax-checkpoint-tmp"


class UnreadableError(Exception):
    """A checkpoint cannot be used; the message follows the words "cannot be read: "."""


def signed_meta(
    iteration: int,
    tree: Any,
    config: dict[str, Any],
    *,
    win_rate: float | None,
    rows_sum: int | None = None,
) -> dict[str, Any]:
    """Make the `meta` of a checkpoint of these arrays."""
    meta = {
        "format": FORMAT,
        "env_version": VERSION,
        "iteration": iteration,
        "config": config,
        "win_rate": win_rate,
        "sums": _sums(tree),
    }
    if rows_sum is not None:
        meta["rows_sum"] = rows_sum
    return meta | {"sum": _sum_of(meta)}


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
    if meta.get("env_version") != VERSION:
        raise UsageError(
            f"{folder}: made with version {meta.get('env_version')!r} of the game, "
            f"this program plays version {VERSION!r}"
        )
    if meta.pop("sum", None) != _sum_of(meta):
        raise UnreadableError("meta: not what was written")
    if str(meta["iteration"]) != folder.name:
        raise UnreadableError(f"it is of iteration {meta['iteration']}")
    return meta


def read_arrays(folder: Path, item: str, like: Any) -> Any:
    """Read the arrays of a checkpoint, bit for bit those that were saved.

    Raises:
      UnreadableError: they are not, or not of the shapes of `like`.
      UsageError: they are of another version of the game.
    """
    sums = read_meta_of(folder)["sums"]
    target = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), like)
    with warnings.catch_warnings():
        # Where a read fails, orbax drops coroutines that it has not begun; each warns.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        restored, failure = _try_to_restore((folder / item).resolve(), target)
        if restored is None:
            gc.collect()
    if failure:
        raise UnreadableError(failure)
    for name, number in _sums(restored).items():
        if sums.get(name) != number:
            raise UnreadableError(f"{name} is not what was written")
    return restored


def _try_to_restore(path: Path, target: Any) -> tuple[Any, str]:
    """The arrays, or what hinders reading them; the error itself, with all that it holds, goes."""
    try:
        _check_arrays(path, target)
        handler = ocp.StandardCheckpointHandler()
        alone = without_others(jax.process_index())
        with ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            return checkpointer.restore(path, args=ocp.args.StandardRestore(target)), ""
    except Exception as error:  # orbax and tensorstore have their own for everything
        return None, _reason(error)


def without_others(process: int) -> ocp.options.MultiprocessingOptions:
    """Options by which one process reads or writes without waiting for others."""
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    return ocp.options.MultiprocessingOptions(
        primary_host=process,
        active_processes={process},
        barrier_sync_key_prefix=f"process_{process}",
    )


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


def _reason(error: Exception) -> str:
    return one_line(error)[:300] or type(error).__name__
