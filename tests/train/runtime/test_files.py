"""Errors of writing files as one line, and the names of run directories."""

import errno
import os
import resource
import select
from pathlib import Path

import pytest

from train.runtime.errors import UsageError
from train.runtime.files import (
    check_writable,
    complaint_of,
    disk_error,
    names_of_runs,
    read_json_lines,
    replace_text,
    writing,
)


@pytest.fixture
def small_files():
    """No file can grow beyond 1000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_is_as_before_where_it_cannot_be_replaced(tmp_path, small_files):
    path = tmp_path / "a.json"
    replace_text(path, "old")
    with pytest.raises(UsageError) as raised:
        replace_text(path, "new" * 1000)
    assert str(raised.value) == f"{path}: cannot be written: File too large"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


def test_a_path_is_tried_before_the_work(tmp_path):
    check_writable(tmp_path / "new" / "games.jsonl")
    assert list((tmp_path / "new").iterdir()) == []
    kept = tmp_path / "kept"
    kept.write_text("games")
    check_writable(kept)
    assert kept.read_text() == "games"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_a_file_stays_one(tmp_path, is_there):
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to("file")
    if is_there:
        file.write_text("old")
    check_writable(link)
    assert (link.is_symlink(), file.exists()) == (True, is_there)
    replace_text(link, "new")
    assert (link.readlink(), file.read_text()) == (Path("file"), "new")


def test_a_reader_of_a_pipe_gets_what_is_written(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader, came = os.open(path, os.O_RDONLY | os.O_NONBLOCK), select.poll()
    came.register(reader)
    try:
        check_writable(path)
        assert came.poll(0) == []  # nor has it seen a writer that is gone
        replace_text(path, "figures")
        assert os.read(reader, 100) == b"figures"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_folder_and_bytes_have_no_lines(tmp_path):
    with pytest.raises(UsageError) as raised:
        read_json_lines(tmp_path)
    assert str(raised.value) == f"{tmp_path}: cannot be read: Is a directory"
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"bytes: cannot be read: not a text file \(UTF-8\)$"):
        read_json_lines(tmp_path / "bytes")


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "file" / "inside", "File exists"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(UsageError, match=f"cannot be written: {reason}"):
            check_writable(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_forbidden_directory(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        check_writable(tmp_path / "games.jsonl")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_reasons_of_the_disk(tmp_path, number):
    words = os.strerror(number)
    with pytest.raises(UsageError, match=f"a: cannot be written: {words}"), writing(tmp_path / "a"):
        raise OSError(number, words)
    assert complaint_of(OSError(number, words, "b")) == f"b: cannot be read or written: {words}"
    # Libraries raise errors of their own, from these or with their words.
    assert disk_error(ValueError(f"INTERNAL: could not write x: {words} [28]")) == words
    outer = RuntimeError("saving failed")
    outer.__cause__ = OSError(number, words)
    assert disk_error(outer) == words


def test_other_errors_keep_their_traceback():
    assert complaint_of(FileNotFoundError(errno.ENOENT, "No such file")) is None
    assert disk_error(ValueError("shapes differ")) is None


def test_runs_of_equal_names_are_told_apart_by_their_paths(tmp_path):
    first, second, other = (tmp_path / name for name in ("a/run", "b/run", "b/other"))
    assert names_of_runs([first, other]) == ["run", "other"]
    assert names_of_runs([first, second]) == [str(first), str(second)]
