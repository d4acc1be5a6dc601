"""What a result was made by: time, versions, devices, and the revision of the sources."""

import contextlib
import datetime
import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

import wallgo_jax
from wallgo_jax.env import VERSION

_LIBRARIES = ("jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")


def provenance() -> dict[str, Any]:
    """What decides, with a config, the numbers of a run; JSON-ready."""
    device = jax.devices()[0]
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "env_version": VERSION,
        "versions": {"python": platform.python_version(), **versions()},
        "devices": {
            "platform": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
        },
        "git": git_revision(Path(__file__).parent),
    }


def versions(*more: str) -> dict[str, str]:
    """Versions of the libraries that are installed, and of this package."""
    found = {}
    for name in (*_LIBRARIES, *more):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found | {"wallgo-jax": wallgo_jax.__version__}


@functools.cache
def git_revision(folder: Path) -> dict[str, Any] | None:
    """The commit of the sources and whether they differ from it; None outside a repository.

    Asked once a process, which has loaded its sources by then, whatever is checked out later.
    """
    try:
        _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        revision = _git(folder, "rev-parse", "HEAD")
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"revision": revision, "dirty": bool(changes)}


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "--no-optional-locks", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
    return done.stdout.strip()
