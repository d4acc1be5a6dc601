"""Stages of self-play: the player of each iteration."""

from tests.support.learner import tiny
from train.programs.selfplay import BOOTSTRAP, Stage, StageKind, stage_at


def test_stages_follow_the_config():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    stages = [stage_at(config, iteration) for iteration in range(6)]
    assert stages[:2] == [BOOTSTRAP, BOOTSTRAP]
    assert {stage.kind for stage in stages[2:]} == {StageKind.SEARCH}
    assert [stage.simulations for stage in stages[2:]] == [4, 8, 8, 8]


def test_the_bootstrap_is_no_search_of_few_simulations():
    """The kind of a stage decides, not its number of simulations."""
    assert BOOTSTRAP != Stage(StageKind.SEARCH, BOOTSTRAP.simulations)
