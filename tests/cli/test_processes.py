"""The program in a process of its own: colours of a terminal, Ctrl-C, exit status, pipes."""

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import GAMES
from tests.support import compiling
from wallgo_jax.__main__ import main


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "has_colours"),
    [(["show", "wallzero-4stone"], True), (["show", "--help"], False), (["--help"], False)],
)
def test_colours_of_a_terminal(words, has_colours, monkeypatch):
    """A board is coloured on a terminal; nothing is where NO_COLOR is set, or into a pipe."""
    monkeypatch.setenv("TERM", "xterm-256color")
    colour = re.compile(r"\x1b\[(?:\d+;)*[349][0-7]m")

    def printed(out: io.StringIO) -> str:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            assert main(words) == 0
        assert out.getvalue()
        return out.getvalue()

    assert bool(colour.search(printed(Terminal()))) >= has_colours
    assert "\x1b" not in printed(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colour.search(printed(Terminal()))


def test_watching_ends_quietly(here):
    """Ctrl-C leaves no traceback, gives the cursor back, and is the exit status of a shell."""
    words = "-m wallgo_jax replay moves.txt --rules small.json --watch --seconds 60"
    near, far = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words.split()],
        **dict.fromkeys(("stdin", "stdout", "stderr"), far),
        env=compiling.environment() | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(far)
    out = b""
    try:
        while chunk := _read(near):
            if b"Ply 0" in out + chunk and b"Ply 0" not in out:
                # Python drops an interrupt that falls into a callback of its garbage collector,
                # so it waits until the program sleeps.
                time.sleep(1)
                process.send_signal(signal.SIGINT)
            out += chunk
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(near)
    assert b"Traceback" not in out
    assert out.rindex(b"\x1b[?25h") > out.rindex(b"\x1b[?25l")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # A terminal whose other side is closed has no end of file.
        return b""


def test_as_a_program():
    """Exit status, and no traceback."""
    wrong = subprocess.run(
        [sys.executable, "-m", "wallgo_jax", "shw"],
        env=compiling.environment(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: ") and "Traceback" not in wrong.stderr


def test_a_reader_that_stops_early_is_no_error(monkeypatch, capsys):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(["convert", str(GAMES), "--to", "record", "--game", "1"]) == 0
    assert capsys.readouterr().err == ""
