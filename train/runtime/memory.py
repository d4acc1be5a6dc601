"""Memory that arrays will take, against the memory that a device or this host has.

The sizes are read off the shapes of the real programs, traced and not compiled.
"""

import functools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.extend import core
from jax.stages import Traced

from train.runtime.errors import UsageError

MAX_SIZE = 2**31 - 1
"""The largest axis of an array that int32 can index."""
_LEAST_SHARE = 0.8  # of an estimate that a compiled program surely takes
_SAFE_SHARE = 0.8  # of the memory that a proposed size fills, for what the estimates leave out
_WORTH_TELLING = 0.1  # of the memory
_CGROUPS = Path("/sys/fs/cgroup")
_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"


class Need(NamedTuple):
    """Memory that a setting asks for, in proportion to its value."""

    key: str  # as the user writes it
    value: int
    bytes: int  # on one device
    note: str = ""  # other settings that the bytes depend on


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
    limits = list(_group_limits(Path("/proc/self/cgroup"), _CGROUPS))
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not on every system
        pass
    return Memory("this host", min(limits), devices) if limits else None


def _group_limits(membership: Path, root: Path) -> Iterator[int]:
    """Memory limits of the process's control groups and of those above them, versions 1 and 2."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, file = root, "memory.max"
        if controllers:
            folder, file = root / "memory", "memory.limit_in_bytes"
        own = Path(path.lstrip("/"))
        for group in (own, *own.parents):
            try:
                text = (folder / group / file).read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if text.isdecimal():
                yield int(text)


def tree_bytes(tree: Any) -> int:
    """Bytes of a tree of arrays or shapes."""
    return sum(_bytes_of(leaf) for leaf in jax.tree.leaves(tree))


def least_bytes(traced: Traced) -> int:
    """Bytes that a program takes beside its arguments, low enough to refuse none that fits."""
    return int(_LEAST_SHARE * peak_bytes(traced.jaxpr.jaxpr))


@functools.lru_cache(maxsize=128)
def peak_bytes(jaxpr: core.Jaxpr) -> int:
    """Most bytes of arrays alive at once in a traced program, its arguments not counted.

    An array lives from the equation that makes it to the last one that reads it. XLA fuses some
    and copies others: its own figure for self-play and learning differs by about a tenth.
    """
    last_use = _last_uses(jaxpr)
    live = most = 0
    for place, equation in enumerate(jaxpr.eqns):
        most = max(most, live + _equation_bytes(equation))
        live += sum(_bytes_of(out.aval) for out in equation.outvars if out in last_use)
        live -= sum(_bytes_of(x.aval) for x in _own(jaxpr, equation.invars) if last_use[x] == place)
    return most


def _equation_bytes(equation: core.JaxprEqn) -> int:
    """Most bytes alive while an equation runs, its operands not counted."""
    sizes = [_bytes_of(out.aval) for out in equation.outvars]
    inner = max(map(peak_bytes, core.jaxprs_in_params(equation.params)), default=0)
    # A loop's body writes its carry in place; what it stacks is held beside that.
    carried = equation.params["num_carry"] if equation.primitive.name == "scan" else len(sizes)
    return sum(sizes[carried:]) + max(sum(sizes[:carried]), inner)


def _last_uses(jaxpr: core.Jaxpr) -> dict[Any, int]:
    """The place of the last equation that reads each variable; outputs are read after the end."""
    found = {}
    for place, equation in enumerate(jaxpr.eqns):
        found |= dict.fromkeys(_variables(equation.invars), place)
    return found | dict.fromkeys(_variables(jaxpr.outvars), len(jaxpr.eqns))


def _own(jaxpr: core.Jaxpr, variables: Sequence[Any]) -> set[Any]:
    """Variables that an equation of the program made."""
    return _variables(variables) - {*jaxpr.invars, *jaxpr.constvars}


def _variables(atoms: Sequence[Any]) -> set[Any]:
    return {atom for atom in atoms if not isinstance(atom, core.Literal)}


def _bytes_of(leaf: Any) -> int:
    # Not NumPy's product, which wraps round.
    if not hasattr(leaf, "shape"):
        return 0
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def check_fits(needs: Sequence[Need], memory: Memory | None) -> None:
    """Refuse settings that together ask for more than the memory.

    Args:
      needs: all that is in memory at once; several may have one key.
      memory: None lets everything pass.

    Raises:
      UsageError: which settings take how much, what there is, and what would fit.
    """
    if memory is None:
        return
    total: dict[str, int] = {}
    for need in needs:
        total[need.key] = total.get(need.key, 0) + need.bytes * memory.devices
    if sum(total.values()) <= memory.bytes:
        return
    told = [key for key, size in total.items() if size > _WORTH_TELLING * memory.bytes]
    told = sorted(told or total, key=lambda key: -total[key])
    parts = [f"{_setting(key, needs)} needs {format_bytes(total[key])}" for key in told]
    raise UsageError(
        f"{' and '.join(parts)}, {memory.name} has {format_bytes(memory.bytes)}; "
        f"{_proposal(needs, total, memory)}"
    )


def check_sizes(**sizes: int) -> None:
    """Refuse sizes that are too large for an axis of an array.

    Args:
      sizes: by key; `learner_batch` is the size of the key `learner.batch`.

    Raises:
      UsageError: which is too large, and what is allowed.
    """
    for name, size in sizes.items():
        if size > MAX_SIZE:
            key = name.replace("_", ".", 1)
            raise UsageError(f"{key} = {size} is too large; at most {MAX_SIZE} can be indexed")


def out_of_memory_message(error: Exception) -> str | None:
    """Return a line for an error that says that memory ran out while computing, else None."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        reason = text or "an allocation failed"
    elif _OUT_OF_MEMORY in text:
        reason = text.partition(_OUT_OF_MEMORY)[2].lstrip(": ")[:200]
    else:
        return None
    return f"out of memory: {reason}; lower the number of boards, games, samples or positions"


def format_bytes(size: float) -> str:
    """Bytes as MiB or GiB, with three digits where they are small."""
    if size < 2**30:
        return f"{size / 2**20:.3g} MiB"
    digits = 0 if size >= 100 * 2**30 else 1
    return f"{size / 2**30:,.{digits}f} GiB"


def _setting(key: str, needs: Sequence[Need]) -> str:
    need = max((need for need in needs if need.key == key), key=lambda need: need.bytes)
    return f"{key} = {need.value}" + (f" ({need.note})" if need.note else "")


def _proposal(needs: Sequence[Need], total: dict[str, int], memory: Memory) -> str:
    """Sizes that would fit: the largest settings are lowered until the others leave them room."""
    room, lowered = _SAFE_SHARE * memory.bytes, []
    rest = dict(total)
    while (rest and sum(rest.values()) > room / 2) or not lowered:
        largest = max(rest, key=lambda key: rest[key])
        lowered.append(largest)
        del rest[largest]
    lowered.sort(key=lambda key: -total[key])
    share = (room - sum(rest.values())) / len(lowered)
    found = []
    for key in lowered:
        value = next(need.value for need in needs if need.key == key)
        fits = _round_down(value * min(1.0, share / total[key]))
        found.append(f"{fits:,}" if fits else f"a smaller {key}")
    return f"about {' and '.join(found)} would fit"


def _round_down(value: float) -> int:
    """The largest number of two digits and zeros that is not above the value."""
    whole = int(value)
    unit = 10 ** max(len(str(whole)) - 2, 0)
    return whole // unit * unit
