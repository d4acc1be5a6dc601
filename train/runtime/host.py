"""Transfer from device to host by `fetch`, and arrays in batches that share one program."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from train.runtime.errors import UsageError

_COMPLAINT = re.compile(rf"\b{UsageError.__name__}: (.*)")


class ReadCount:
    """Number of reads from the device, and of arrays that they brought."""

    def __init__(self) -> None:
        self.reads = 0
        self.arrays = 0


READS = ReadCount()


def fetch(tree: Any) -> Any:
    """The tree with NumPy arrays for device arrays; waits until they are ready.

    Arrays that are sharded over several processes are gathered, so every process must call this.
    """
    READS.reads += 1
    READS.arrays += len(jax.tree.leaves(tree))

    def within_reach(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
            return leaf
        if leaf.is_fully_replicated:
            return leaf.addressable_data(0)
        return multihost_utils.process_allgather(leaf, tiled=True)

    return jax.device_get(jax.tree.map(within_reach, tree))


@contextlib.contextmanager
def callback_errors() -> Iterator[None]:
    """Raise a UsageError of a host callback, which a program wraps, as itself."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        message = usage_error_message(error)
        if message is None:
            raise
        raise UsageError(message) from None


def usage_error_message(error: Exception) -> str | None:
    """Return the message if the error is a UsageError that a host callback raised, else None."""
    match = _COMPLAINT.search(str(error))
    return None if match is None else match[1]


def batches(arrays: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Split arrays [N, ...] into batches of one size, each with the number of its own entries.

    Copies of its first entry fill the last batch.
    """
    total = len(jax.tree.leaves(arrays)[0])
    for first in range(0, total, size):
        count = min(size, total - first)
        place = np.r_[first : first + count, np.full(size - count, first)]
        yield jax.tree.map(lambda x, place=place: x[place], arrays), count


def in_batches(
    program: Callable[[Any], tuple[jax.Array, ...]],
    arrays: Any,
    size: int,
    on_progress: Callable[[int], Any] = lambda done: None,
) -> list[np.ndarray]:
    """A program's arrays [N, ...] of arrays [N, ...], on the host."""
    parts, done = [], 0
    for batch, count in batches(arrays, size):
        parts.append([x[:count] for x in fetch(program(batch))])
        done += count
        on_progress(done)
    return [np.concatenate(part) for part in zip(*parts, strict=True)]
