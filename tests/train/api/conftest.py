"""A small run that the tests of the interface share."""

import pytest

import train
from tests.support.learner import tiny


@pytest.fixture(scope="session")
def api_run(tmp_path_factory):
    """A run by the interface that stands after 2 of its iterations, saved."""
    run = train.start(tiny.PATH, runs=tmp_path_factory.mktemp("api"))
    next(run)
    next(run)
    run.save()
    yield run
    run.close()
