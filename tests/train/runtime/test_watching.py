"""A parent passes signals on, returns its child's exit code, and has the last word on a loss."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.import_graph import ROOT

PROGRAM = """
import os, signal, sys, time
from train.runtime import watching
from train.runtime.errors import ProcessLostError

watching.end_with_watcher()
if not watching.is_watched():
    try:
        code = watching.watch(lambda: "go on with: it")
    except ProcessLostError as error:
        print(error, "jax" in sys.modules)
        code = 2
    sys.exit(code)
signal.signal(signal.SIGUSR1, lambda number, frame: os._exit(130))
print("begun", flush=True)
{child}
time.sleep(60)
print("not ended")
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="passes signals and a socket on")


def start(child: str) -> subprocess.Popen:
    """A parent whose child does something and then sleeps for a minute."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(child=child)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    return parent


def end(parent: subprocess.Popen) -> tuple[int, str]:
    """The parent's exit code and what it or its child says until both have ended."""
    assert parent.stdout is not None
    with parent.stdout:
        said = parent.stdout.read()
    return parent.wait(timeout=30), said


ABORTED = "distributed: SIGABRT ended this process (JAX does so where another process has ended or "
ABORTED += "is out of reach); go on with: it False\n"
KILLED = "distributed: SIGKILL ended this process (the system does so where memory is short); "
KILLED += "go on with: it False\n"
ENDS = {
    "os._exit(0)": (0, ""),
    "os._exit(3)": (3, ""),
    "os.abort()": (2, ABORTED),
    "os.kill(os.getpid(), signal.SIGKILL)": (2, KILLED),
    "watching.last_words('lost: x'); os.abort()": (2, "lost: x False\n"),
}
"""How a child ends, the parent's exit code, and what it says last."""


@pytest.mark.parametrize("child", ENDS)
def test_a_parent_ends_as_its_child_or_says_why_not(child):
    assert end(start(child)) == ENDS[child]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM], ids=lambda x: x.name)
def test_signals_are_passed_on(number):
    """The child answers one of them itself, and the other one ends it."""
    parent = start("")
    parent.send_signal(number)
    assert end(parent) == (130, "")


def test_a_child_ends_with_its_parent():
    parent = start("")
    parent.kill()
    # The output, which the child inherited, ends with it.
    assert end(parent) == (-signal.SIGKILL, "")
