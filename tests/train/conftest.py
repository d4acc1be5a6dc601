"""Shared by the tests of the learner: a whole tiny run, a disk on which no large file fits."""

import contextlib
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.learner import tiny
from train.loop import training


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Path:
    """The directory of a run of `tiny.config()` without a stop; to be read only."""
    runs = tmp_path_factory.mktemp("runs")
    assert training.train(tiny.config(), runs, resume=False)
    return runs / "tiny"


@pytest.fixture
def small_files() -> Callable[[int], contextlib.AbstractContextManager[None]]:
    """Within it no file grows beyond some bytes, as on a disk that is nearly full."""

    @contextlib.contextmanager
    def limited(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:  # before pytest writes its log, which may be larger
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited
