"""Errors of writing files in one line, names of run directories, the lock on a directory."""

import errno
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from tests.support.refusals import refusal
from train.runtime import files
from train.runtime.errors import UsageError


def test_a_file_is_as_before_where_it_cannot_be_replaced(tmp_path, small_files):
    path = tmp_path / "a.json"
    files.replace_text(path, "old")
    with pytest.raises(UsageError) as raised, small_files(1000):
        files.replace_text(path, "new" * 1000)
    assert str(raised.value) == f"{path}: cannot be written: File too large"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


def test_a_path_is_tried_before_the_work(tmp_path):
    files.check_writable(tmp_path / "new" / "games.jsonl")
    assert list((tmp_path / "new").iterdir()) == []
    kept = tmp_path / "kept"
    kept.write_text("games")
    files.check_writable(kept)
    assert kept.read_text() == "games"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_a_file_stays_one(tmp_path, is_there):
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to("file")
    if is_there:
        file.write_text("old")
    files.check_writable(link)
    assert (link.is_symlink(), file.exists()) == (True, is_there)
    files.replace_text(link, "new")
    assert (link.readlink(), file.read_text()) == (Path("file"), "new")


def test_a_reader_of_a_pipe_gets_what_is_written(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader, came = os.open(path, os.O_RDONLY | os.O_NONBLOCK), select.poll()
    came.register(reader)
    try:
        files.check_writable(path)
        assert came.poll(0) == []  # nor has it seen a writer that is gone
        files.replace_text(path, "figures")
        assert os.read(reader, 100) == b"figures"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_folder_and_bytes_have_no_lines(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff")
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "bytes", "not a text (UTF-8)")):
        assert refusal(files.read_json_lines, path).startswith(f"{path}: cannot be read: {said}")


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "file" / "inside", "File exists"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        assert f"cannot be written: {reason}" in refusal(files.check_writable, path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_forbidden_directory(tmp_path):
    tmp_path.chmod(0o500)
    said = refusal(files.check_writable, tmp_path / "games.jsonl")
    assert "cannot be written: Permission denied" in said


@pytest.mark.parametrize(
    "number",
    [
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES),
        *(errno.ESTALE, errno.EREMOTEIO, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN),
    ],
)
def test_reasons_of_the_disk(tmp_path, number):
    words = os.strerror(number)
    with (
        pytest.raises(UsageError, match=f"a: cannot be written: {words}"),
        files.writing(tmp_path / "a"),
    ):
        raise OSError(number, words)
    assert (
        files.complaint_of(OSError(number, words, "b")) == f"b: cannot be read or written: {words}"
    )
    # Libraries raise errors of their own, from these or with their words.
    assert files.disk_error(ValueError(f"INTERNAL: could not write x: {words} [28]")) == words
    outer = RuntimeError("saving failed")
    outer.__cause__ = OSError(number, words)
    assert files.disk_error(outer) == words


def test_other_errors_keep_their_traceback():
    assert files.complaint_of(FileNotFoundError(errno.ENOENT, "No such file")) is None
    assert files.disk_error(ValueError("shapes differ")) is None


def test_runs_of_equal_names_are_told_apart_by_their_paths(tmp_path):
    first, second, other = (tmp_path / name for name in ("a/run", "b/run", "b/other"))
    assert files.names_of_runs([first, other]) == ["run", "other"]
    assert files.names_of_runs([first, second]) == [str(first), str(second)]


HOLDER = """
import pathlib, sys, time
from train.runtime.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_only_one_holds_it_and_it_leaves_nothing(tmp_path):
    directory = tmp_path / "runs" / "a"
    with files.locked(directory):
        with pytest.raises(UsageError) as raised, files.locked(directory):
            pass
        with files.locked(tmp_path / "runs" / "b"):
            pass
    assert re.fullmatch(
        rf"{directory}: in use by this process \(process {os.getpid()} on \S+ since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*\), where a run is open: `run\.close\(\)` saves it "
        "and leaves the directory",
        str(raised.value),
    )
    assert list(tmp_path.iterdir()) == []
    with files.locked(directory):
        directory.mkdir()
    assert list((tmp_path / "runs").iterdir()) == [directory]


def test_a_deleted_working_folder_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    told = "the working folder was deleted: change to another one"
    with pytest.raises(UsageError, match=f"a: cannot be written: {told}"):
        with files.locked(Path("a")):
            pass
    with pytest.raises(FileNotFoundError) as raised:
        Path("a").resolve()
    assert files.complaint_of(raised.value) == told
    monkeypatch.chdir(tmp_path)
    assert files.complaint_of(raised.value) is None


def test_a_killed_process_holds_nothing(tmp_path):
    directory = tmp_path / "a"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(UsageError, match=f"in use by process {other.pid} on .*; wait for it"),
            files.locked(directory),
        ):
            pass
    finally:
        other.kill()
        other.communicate()
    left = tmp_path / ".a.lock"
    assert left.read_text().startswith(f" process {other.pid} on ")
    with files.locked(directory):
        assert left.read_text().startswith(f" process {os.getpid()} on ")
    assert not left.exists()


def test_a_link_to_a_directory_is_the_directory(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b").symlink_to(tmp_path / "a")
    with (
        files.locked(tmp_path / "a"),
        pytest.raises(UsageError, match="in use by"),
        files.locked(tmp_path / "elsewhere" / "b"),
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
    with files.locked(tmp_path / "a"):
        assert len(calls) == 2
        with pytest.raises(UsageError), files.locked(tmp_path / "a"):
            pass


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch, capsys):
    def refuse(*args, **options):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock, "lock_descriptor", refuse)
    with files.locked(tmp_path / "a"):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"{tmp_path / 'a'}: cannot be locked (No locks available): start no second run"
