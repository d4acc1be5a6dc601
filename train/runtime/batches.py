"""Arrays in batches of one size, so that one program serves all of them."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from train.runtime.host import fetch


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
