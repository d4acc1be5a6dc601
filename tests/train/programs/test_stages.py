"""Stages of self-play: the player of each iteration."""

import jax
import pytest

from tests.support.learner import tiny
from train.data.selfplay import first_boards
from train.programs.assembly import make_parts
from train.programs.selfplay import BOOTSTRAP, Stage, StageKind, selfplay_of, stage_at
from train.runtime.devices import all_devices


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


@pytest.mark.parametrize(
    "word", ["--learner.value_mix=0", "--learner.value_mix=0.5", "--network.reply=true"]
)
def test_every_stage_makes_the_plies_that_the_replay_is_compiled_for(word):
    config = tiny.config("--selfplay.bootstrap_iterations=1", word)
    parts = make_parts(config, all_devices(1))
    for stage in (BOOTSTRAP, stage_at(config, 1)):
        boards = jax.eval_shape(first_boards, parts.variants)
        variables = () if stage == BOOTSTRAP else parts.network.shapes
        selfplay = selfplay_of(config, stage)
        _, plies, _ = jax.eval_shape(selfplay, variables, parts.variants, boards, jax.random.key(0))
        assert jax.tree.structure(plies) == jax.tree.structure(parts.plies)
        assert jax.tree.leaves(plies) == jax.tree.leaves(parts.plies)
