"""Files are written whole or not at all."""

import os
import threading

import pytest

from wallgo_jax.formats import files


def test_a_file_takes_the_place_of_another(tmp_path):
    path, neighbour = tmp_path / "a.txt", tmp_path / "a.txt.tmp"
    neighbour.write_text("a user's own")
    for content in (b"first", b"2"):
        files.write_whole(path, content)
        assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "a.txt.tmp"]
    assert neighbour.read_text() == "a user's own"


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    files.write_whole(path, b"new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", mode)


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path):
    kept = os.umask(0o027)
    try:
        files.write_whole(tmp_path / "a.txt", b"new")
    finally:
        os.umask(kept)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_after_an_error_the_file_is_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("kept")

    def fails(*paths):
        raise OSError(28, "No space left on device", "a.txt.tmp")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="No space left on device") as error:
        files.write_whole(path, b"new")
    assert error.value.filename == str(path)
    assert path.read_text() == "kept" and os.listdir(tmp_path) == ["a.txt"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("a.txt")
    files.write_whole(link, b"new")
    assert link.is_symlink() and (tmp_path / "a.txt").read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    files.write_whole(path, b"through")
    reader.join(timeout=10)
    assert read == [b"through"] and path.is_fifo()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        files.write_whole(tmp_path, b"")
