"""Shared by every test: a folder and an environment of its own, settings of JAX and hypothesis,
conformance games, failed programs."""

import atexit
import gc
import gzip
import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

from tests.support import compiling

_ROOT = Path(__file__).parents[1]

# No test sees the user's home, cache or settings, nor do the processes that it starts.
_HOME = tempfile.mkdtemp(prefix="wallgo-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
for _name in [*os.environ]:
    if _name.startswith(("JAX_", "XDG_", "XLA_", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "WANDB_")):
        del os.environ[_name]
os.environ["TERM"] = "xterm"  # the tests' terminals are no dumb ones, whatever starts them
os.environ["HOME"] = os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = _HOME

compiling.set_up()

# A shell's background job ignores interrupts, and so would tests that send them and their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tracing makes millions of small objects, few of them in circles: look for those less often.
gc.set_threshold(500_000, 10, 100)

# The first example compiles, so no deadline; the same examples in every run.
hypothesis.settings.register_profile("wallgo", deadline=None, derandomize=True, max_examples=20)
hypothesis.settings.load_profile("wallgo")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test in an empty folder, so that none reads or writes the user's."""
    monkeypatch.chdir(tmp_path)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forget what JAX has compiled where a folder ends and the process has grown large: few of the
    folder's programs are called again."""
    if nextitem is not None and nextitem.path.parent != item.path.parent:
        if _resident_bytes() > 3 * 2**30:
            jax.clear_caches()
            gc.collect()


def _resident_bytes() -> int:
    """Memory that this process holds; 0 where the system has no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * resource.getpagesize()


@pytest.fixture(scope="session")
def conformance() -> dict[str, list[dict[str, Any]]]:
    """Complete games of a slow independent referee, by rule set."""
    games: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(_ROOT / "tests" / "data" / "conformance.jsonl.gz", "rt") as lines:
        for line in lines:
            game = json.loads(line)
            games.setdefault(game["variant"], []).append(game)
    return games


@pytest.fixture(scope="module")
def as_users_compile() -> Iterator[None]:
    """Everything in the module is compiled as users compile it: with XLA's optimizations."""
    with compiling.as_users():
        yield


@pytest.fixture
def failed_programs_are_forgotten() -> Iterator[None]:
    """JAX tells the error of a failed program once more to whoever waits for callbacks later, until
    another program with a callback ran on its device."""
    yield
    for device in jax.local_devices():
        with jax.default_device(device):
            jax.block_until_ready(jax.jit(_call_back)(0))
    jax.effects_barrier()


def _call_back(x: jax.Array) -> jax.Array:
    jax.debug.callback(lambda: None)
    return x
