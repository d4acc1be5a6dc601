"""The one door from device to host: every read of device data goes through `fetch`."""

from typing import Any

import jax


class ReadCount:
    """How many times data was read from the device, and how many arrays that were."""

    def __init__(self) -> None:
        self.reads = 0
        self.arrays = 0


READS = ReadCount()


def fetch(tree: Any) -> Any:
    """The tree with NumPy arrays for device arrays; waits until they are ready."""
    READS.reads += 1
    READS.arrays += len(jax.tree.leaves(tree))
    return jax.device_get(tree)
