"""A small run that the tests of the interface share."""

import pytest

import train
from tests.support.learner import tiny
from train.loop import training


@pytest.fixture(scope="session")
def api_run(tmp_path_factory):
    """A closed run of 2 iterations by the interface, and its directory of all runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "make_programs", tiny.shared_programs)
        runs = tmp_path_factory.mktemp("api")
        run = train.start(train.make_config(tiny.PATH, iterations=2), runs=runs)
        for _ in run:
            pass
        run.save()
        yield run
        run.close()
