"""Limits of the process's control groups, such as a container's: memory and processor time."""

from collections.abc import Iterator
from pathlib import Path

MEMBERSHIP, ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def memory_limits(membership: Path = MEMBERSHIP, root: Path = ROOT) -> Iterator[int]:
    """Bytes that the groups, and those above them, may take; nothing where none is limited."""
    for folder, is_first in _groups("memory", membership, root):
        text = _read(folder / ("memory.limit_in_bytes" if is_first else "memory.max"))
        if text.isdecimal():
            yield int(text)


def cpu_quotas(membership: Path = MEMBERSHIP, root: Path = ROOT) -> Iterator[float]:
    """Cores whose time the groups, and those above them, may take; nothing where none is
    limited."""
    for folder, is_first in _groups("cpu", membership, root):
        if is_first:
            words = [_read(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        else:
            words = _read(folder / "cpu.max").split()
        if len(words) == 2 and all(map(str.isdecimal, words)) and int(words[1]):
            yield int(words[0]) / int(words[1])


def _groups(controller: str, membership: Path, root: Path) -> Iterator[tuple[Path, bool]]:
    """The folders of the process's groups and of those above them, and whether they are of version
    1, where each controller has groups of its own."""
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        lowest = Path(path.lstrip("/"))
        for group in (lowest, *lowest.parents):
            yield (root / controller if controllers else root) / group, bool(controllers)


def _read(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
