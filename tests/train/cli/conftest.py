"""A finished tiny run, which commands read, copy or go on with."""

import shutil
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, Said, command
from train.loop import training


@pytest.fixture(autouse=True)
def shared_programs(monkeypatch):
    monkeypatch.setattr(training, "make_programs", tiny.shared_programs)


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def finished(runs) -> tuple[Path, Said]:
    """A finished run: its directory and its command's output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "make_programs", tiny.shared_programs)
        said = command("run", tiny.PATH, "--runs", runs)
    return runs / CONFIG.name, said


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A directory of runs with a copy of the finished run, to be changed."""
    shutil.copytree(finished[0], tmp_path / CONFIG.name)
    return tmp_path
