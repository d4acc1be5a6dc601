"""What a run leaves on disk: weights to play with and, once, all that resuming needs; by orbax.

    runs/NAME/checkpoints/ITERATION/{weights,meta}   the last few
    runs/NAME/resume/ITERATION/{run,meta}            the newest

`meta` is JSON: format, env version, iteration, the run's config. Weights alone can be read without
knowing the run: `meta` says what network they are for.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import tensorstore

from train.errors import UsageError
from train.network import Variables
from wallgo_jax.env import VERSION

FORMAT = 2
WEIGHTS, RESUME = "checkpoints", "resume"


class Store:
    """The checkpoints of one run directory, open for writing."""

    def __init__(self, directory: Path, *, keep: int) -> None:
        self._weights = _open(directory / WEIGHTS, keep=keep)
        self._resume = _open(directory / RESUME, keep=1)

    def save(self, iteration: int, weights: Variables, run: Any, config: dict[str, Any]) -> None:
        """Begin to save; what is on the device is copied first, so it may be donated at once."""
        meta = {
            "format": FORMAT,
            "env_version": VERSION,
            "iteration": iteration,
            "config": config,
        }
        weights, run = jax.tree.map(jnp.copy, (weights, run))
        for manager, item in (
            (self._weights, {"weights": ocp.args.StandardSave(weights)}),
            (self._resume, {"run": ocp.args.StandardSave(run)}),
        ):
            if iteration not in manager.all_steps():
                args = ocp.args.Composite(meta=ocp.args.JsonSave(meta), **item)
                manager.save(iteration, args=args)

    def wait(self) -> None:
        """Until everything begun is on disk."""
        self._weights.wait_until_finished()
        self._resume.wait_until_finished()

    def close(self) -> None:
        """Finish what was begun; without it the last checkpoint is lost."""
        self._weights.close()
        self._resume.close()


def newest_iteration(directory: Path, kind: str) -> int | None:
    """The newest finished checkpoint's iteration, if there is one."""
    folder = directory / kind
    if not folder.is_dir():
        return None
    steps = [int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()]
    return max(steps, default=None)


def read_meta(directory: Path, kind: str) -> dict[str, Any]:
    """The newest checkpoint's `meta`.

    Raises:
      UsageError: there is no checkpoint, or it is not one of this program's.
    """
    step = newest_iteration(directory, kind)
    if step is None:
        raise UsageError(f"{directory}: no checkpoint here (looked for {kind}/ITERATION)")
    with _reading(directory / kind, step) as manager:
        meta = manager.restore(step, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))["meta"]
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        found = meta.get("format") if isinstance(meta, dict) else meta
        raise UsageError(
            f"{directory}/{kind}/{step}: format {found!r}, this program reads {FORMAT}"
        )
    return meta


def read_weights(directory: Path, like: Variables) -> Variables:
    """The newest weights; `like` gives their shapes."""
    return _read(directory, WEIGHTS, "weights", like)


def read_run(directory: Path, like: Any) -> Any:
    """All that resuming needs; `like` gives its shapes."""
    return _read(directory, RESUME, "run", like)


def _read(directory: Path, kind: str, item: str, like: Any) -> Any:
    step = newest_iteration(directory, kind)
    if step is None:
        raise UsageError(f"{directory}: no checkpoint here (looked for {kind}/ITERATION)")
    # By way of NumPy arrays, so that it does not matter what devices the checkpoint was saved from.
    target = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), like)
    with _reading(directory / kind, step) as manager:
        _check_arrays((directory / kind / str(step) / item).resolve(), target)
        args = ocp.args.Composite(**{item: ocp.args.StandardRestore(target)})
        return jax.tree.map(jnp.array, manager.restore(step, args=args)[item])


def _check_arrays(folder: Path, target: Any) -> None:
    """Refuse arrays that cannot be read, one after the other, or are not those wanted: orbax reads
    them all at once, and where one fails the others go on and complain on their own."""
    store = tensorstore.KvStore.open({"driver": "ocdbt", "base": f"file://{folder}/"}).result()
    keys = store.list().result()
    if not keys or not all(store.read(key).result().value for key in keys):
        raise ValueError("some of its arrays are not there")
    saved = _arrays(ocp.StandardCheckpointHandler().metadata(folder).tree)  # pyright: ignore[reportArgumentType]
    wanted = _arrays(target)
    for name in sorted(saved.keys() | wanted.keys()):
        found, expected = saved.get(name, "nothing"), wanted.get(name, "nothing")
        if found != expected:
            raise ValueError(f"it has {found} for {name}, where {expected} is wanted")


def _arrays(tree: Any) -> dict[str, str]:
    """Types and shapes by name."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): f"{x.dtype}{list(x.shape)}"
        for path, x in leaves
    }


@contextlib.contextmanager
def _reading(folder: Path, step: int) -> Iterator[ocp.CheckpointManager]:
    """A manager to read from; whatever goes wrong in it becomes one line."""
    manager = _open(folder, keep=None)
    try:
        yield manager
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise UsageError(f"{folder / str(step)}: cannot be read: {reason}") from None
    finally:
        manager.close()


def _open(folder: Path, *, keep: int | None) -> ocp.CheckpointManager:
    options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=keep is not None)
    return ocp.CheckpointManager(folder.resolve(), options=options)
