"""Memory that compiled programs and the arrays between them take, against what there is."""

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.stages import Compiled

from train.runtime import cgroups
from train.runtime.errors import UsageError, one_line

_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED: ", "Out of memory ")


class MemoryEstimate(NamedTuple):
    """Memory of arrays or of a program."""

    name: str  # such as `replay`
    bytes: int  # on one device
    keys: tuple[str, ...]  # settings that shrink it, as the user writes them


class Memory(NamedTuple):
    """Memory of one accelerator, or of this host."""

    name: str
    bytes: int
    devices: int  # that share it


def device_memory() -> Memory | None:
    """The memory of the smallest local device, which for CPU devices is the host's; None if it is
    not known."""
    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        return host_memory(devices=len(devices))
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in devices]
    known = [limit for limit in limits if limit]
    return Memory(f"each {devices[0].device_kind}", min(known), 1) if known else None


def host_memory(*, devices: int = 1) -> Memory | None:
    """Physical memory, or the limit of the control group (a container's) where that is lower."""
    limits = list(cgroups.memory_limits())
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not on every system
        pass
    return Memory("this host", min(limits), devices) if limits else None


def tree_bytes(tree: Any) -> int:
    """Bytes of a tree of arrays or shapes on one device: of the arrays whose shapes say how they
    are sharded, a device's share."""
    total = 0
    for leaf in (x for x in jax.tree.leaves(tree) if hasattr(x, "shape")):
        sharding = getattr(leaf, "sharding", None)
        shape = leaf.shape if sharding is None else sharding.shard_shape(leaf.shape)
        total += math.prod(shape) * leaf.dtype.itemsize  # NumPy's product wraps round.
    return total


def program_bytes(compiled: Compiled) -> int:
    """Bytes that a program takes on one device in addition to its arguments, as the compiler says;
    0 where it does not say."""
    sizes = compiled.memory_analysis()
    if sizes is None:
        return 0
    return sizes.temp_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes


def check_fits(
    held: Sequence[MemoryEstimate],
    memory: Memory | None,
    *,
    programs: Sequence[MemoryEstimate] = (),
) -> None:
    """Refuse work that needs more than the memory.

    Args:
      held: all arrays that are in memory while the programs run.
      memory: None lets everything pass.
      programs: what each takes beside those arrays; they run one after the other.

    Raises:
      UsageError: how much is needed, what there is, and which settings shrink the largest need.
    """
    if memory is None:
        return
    running = max(programs, key=lambda need: need.bytes, default=None)
    needs = [*held, running] if running else [*held]
    total = memory.devices * sum(need.bytes for need in needs)
    if total <= memory.bytes:
        return
    largest = max(needs, key=lambda need: need.bytes)
    raise UsageError(
        f"out of memory before anything runs: this needs {format_bytes(total)}, {memory.name} has "
        f"{format_bytes(memory.bytes)}; {format_bytes(memory.devices * largest.bytes)} of it is "
        f"for {largest.name}: lower {' or '.join(largest.keys)}"
    )


def out_of_memory_message(error: Exception) -> str | None:
    """Return a line for an error that says that memory ran out while computing, else None."""
    text = one_line(error)
    if isinstance(error, MemoryError):
        reason = text or "an allocation failed"
    else:
        reasons = [text.partition(words)[2] for words in _OUT_OF_MEMORY if words in text]
        if not reasons:
            return None
        reason = reasons[0][:200]
    return f"out of memory: {reason}; lower the number of boards, games, samples or positions"


def format_bytes(size: float) -> str:
    """Bytes as MiB or GiB, with three digits where they are small."""
    if size < 2**30:
        return f"{size / 2**20:.3g} MiB"
    digits = 0 if size >= 100 * 2**30 else 1
    return f"{size / 2**30:,.{digits}f} GiB"
