"""A small run that the tests of the interface share."""

import pytest

import train
from tests.support.learner import tiny
from train.loop import training


@pytest.fixture(scope="session")
def api_run(tmp_path_factory):
    """A run by the interface that stands after 2 of its iterations, saved."""
    with pytest.MonkeyPatch.context() as patch:  # ends before other folders' tests run
        patch.setattr(training, "make_programs", tiny.shared_programs)
        run = train.start(tiny.PATH, runs=tmp_path_factory.mktemp("api"))
        next(run)
        next(run)
        run.save()
    yield run
    run.close()
