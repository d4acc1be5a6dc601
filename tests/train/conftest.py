"""Shared by the tests of the learner: a disk on which no file can be finished."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from train.runtime.errors import UsageError


@pytest.fixture
def full_disk(monkeypatch) -> Callable[[Path, Callable[[], object]], None]:
    """Asserts that writing tells of a full disk, and leaves a file as it was."""

    def fails(*paths):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def check(path: Path, write: Callable[[], object]) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
        with monkeypatch.context() as patch, pytest.raises(UsageError) as raised:
            patch.setattr(os, "replace", fails)
            write()
        assert str(raised.value) == f"{path}: cannot be written: No space left on device"
        assert path.read_text() == "old"
        assert [other.name for other in path.parent.iterdir()] == [path.name]

    return check
