"""The program in a process of its own: colours of a terminal, Ctrl-C, exit status, pipes."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import compiling

GAMES = str(Path(__file__).parents[1] / "data" / "conformance.jsonl.gz")


@pytest.mark.parametrize(
    ("words", "has_colours"),
    [
        (["show", "wallzero-4stone"], True),
        pytest.param(["show", "--help"], False, marks=pytest.mark.slow),
        pytest.param(["--help"], False, marks=pytest.mark.slow),
    ],
)
def test_colours_of_a_terminal(words, has_colours):
    """A board is coloured on a terminal; nothing is where NO_COLOR is set, or into a pipe."""
    colour = re.compile(rb"\x1b\[(?:\d+;)*[349][0-7]m")
    assert bool(colour.search(in_terminal(words, {}))) >= has_colours
    assert not colour.search(in_terminal(words, {"NO_COLOR": "1"}))
    piped = subprocess.run(
        [sys.executable, "-m", "wallgo_jax", *words],
        env=compiling.environment(),
        capture_output=True,
        check=True,
    )
    assert b"\x1b" not in piped.stdout


def test_watching_ends_quietly(here):
    """Ctrl-C leaves no traceback, gives the cursor back, and is the exit status of a shell."""
    words = ["replay", "moves.txt", "--rules", "small.json", "--watch", "--seconds", "60"]
    out = in_terminal(words, {}, interrupt_after=b"Ply 0", status=130)
    assert b"Traceback" not in out
    assert out.rindex(b"\x1b[?25h") > out.rindex(b"\x1b[?25l")


def in_terminal(words, variables, *, interrupt_after=b"", status=0) -> bytes:
    """Output of the program in a terminal of its own."""
    near, far = pty.openpty()
    settings = compiling.environment() | {"TERM": "xterm-256color"} | variables
    process = subprocess.Popen(
        [sys.executable, "-m", "wallgo_jax", *words],
        stdin=far,
        stdout=far,
        stderr=far,
        env=settings,
        start_new_session=True,
    )
    os.close(far)
    out = b""
    try:
        while chunk := _read(near):
            out += chunk
            if interrupt_after and interrupt_after in out:
                # Python drops an interrupt that falls into a callback of its garbage collector,
                # so it waits until the program sleeps.
                time.sleep(1)
                process.send_signal(signal.SIGINT)
                interrupt_after = b""
        assert process.wait(timeout=60) == status
        return out
    finally:
        process.kill()
        process.wait()
        os.close(near)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # A terminal whose other side is closed has no end of file.
        return b""


def test_as_a_program(here):
    """Exit status, no traceback, and no complaint when the reader stops early."""
    program = [sys.executable, "-m", "wallgo_jax"]
    settings = {"env": compiling.environment(), "text": True, "capture_output": True}
    wrong = subprocess.run([*program, "show", "no.txt"], check=False, **settings)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert "Traceback" not in wrong.stderr
    pipe = f"{sys.executable} -m wallgo_jax convert {GAMES} --to record --game 1 | head -c 1"
    early = subprocess.run(["bash", "-c", f"set -o pipefail; {pipe}"], check=False, **settings)
    assert (early.stdout, early.stderr) == ("{", "")
