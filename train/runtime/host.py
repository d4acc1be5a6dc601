"""Transfer from device to host: every read of device data goes through `fetch`."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import jax
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
