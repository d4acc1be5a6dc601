"""A run directory with a few checkpoints, and a copy to be damaged."""

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.learner.checkpoints import CONFIG, new_run, scrambled
from train.checkpoints.store import save_checkpoint
from train.loop.programs import TrainState


@pytest.fixture(scope="module", autouse=True)
def little_garbage() -> Iterator[None]:
    """A read that fails collects garbage, which takes long where other tests left many objects."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def fresh() -> TrainState:
    return new_run()


@pytest.fixture(scope="module")
def saved(fresh, tmp_path_factory) -> tuple[Path, TrainState]:
    """A run directory with checkpoints of iterations 2, 4, 5 and 7, and the last one's content."""
    directory = tmp_path_factory.mktemp("saved")
    for iteration in (2, 4, 5, 7):
        run = scrambled(fresh, iteration)
        save_checkpoint(directory, iteration, run.learner.variables, run, CONFIG)
    return directory, scrambled(fresh, 7)


@pytest.fixture
def damaged(saved, tmp_path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(saved[0], tmp_path / "damaged"))
