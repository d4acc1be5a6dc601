"""The lock on a directory, within this process, against another one, and after a kill."""

import errno
import fcntl
import os
import re
import subprocess
import sys

import pytest

from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.files import locked

HOLDER = """
import pathlib, sys, time
from train.runtime.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_only_one_holds_it_and_it_leaves_nothing(tmp_path):
    directory = tmp_path / "runs" / "a"
    with locked(directory):
        with pytest.raises(UsageError) as raised, locked(directory):
            pass
        with locked(tmp_path / "runs" / "b"):
            pass
    assert re.fullmatch(
        rf"{directory}: in use by process {os.getpid()} on \S+ since \d{{4}}-\d\d-\d\d "
        r"\d\d:\d\d:\d\d\S*; wait for it or stop it, or choose another --name",
        str(raised.value),
    )
    assert list(tmp_path.iterdir()) == []
    with locked(directory):
        directory.mkdir()
    assert list((tmp_path / "runs").iterdir()) == [directory]


def test_a_killed_process_holds_nothing(tmp_path):
    directory = tmp_path / "a"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(UsageError, match=f"in use by process {other.pid} on"),
            locked(directory),
        ):
            pass
    finally:
        other.kill()
        other.communicate()
    left = tmp_path / ".a.lock"
    assert left.read_text().startswith(f"process {other.pid} on ")
    with locked(directory):
        assert left.read_text().startswith(f"process {os.getpid()} on ")
    assert not left.exists()


def test_a_link_to_a_directory_is_the_directory(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b").symlink_to(tmp_path / "a")
    with (
        locked(tmp_path / "a"),
        pytest.raises(UsageError, match="in use by"),
        locked(tmp_path / "elsewhere" / "b"),
    ):
        pass


def test_a_file_that_its_holder_removed_is_not_taken(tmp_path, monkeypatch):
    """The file may go between its opening and its locking."""
    path, calls = tmp_path / ".a.lock", []
    take = files._lock

    def remove_first(file, directory):
        take(file, directory)
        if not calls:
            path.unlink()
        calls.append(file)

    monkeypatch.setattr(files, "_lock", remove_first)
    with locked(tmp_path / "a"):
        assert len(calls) == 2
        with pytest.raises(UsageError), locked(tmp_path / "a"):
            pass


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, capsys):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path / "a"):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"{tmp_path / 'a'}: cannot be locked (No locks available): start no second run"
