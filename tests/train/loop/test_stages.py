"""Stages of self-play: the player of each iteration."""

from typing import NamedTuple

import chex
import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data.selfplay import POLICY_DTYPE, first_boards
from train.loop import selfplay
from train.loop.selfplay import (
    BOOTSTRAP,
    make_bootstrap,
    selfplay_of,
    stage_at,
    stages_from,
)
from train.loop.train_step import TrainStep
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from wallgo_jax.game import actions
from wallgo_jax.game.state import State


def test_stages_follow_the_config():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    found = [stage_at(config, iteration) for iteration in range(6)]
    assert found[:2] == [BOOTSTRAP, BOOTSTRAP]
    assert [stage.simulations for stage in found[2:]] == [4, 8, 8, 8]


@pytest.mark.parametrize("iterations", [1, 12])
@pytest.mark.parametrize(("first", "simulations"), [(0, 8), (3, 100)])
@pytest.mark.parametrize("bootstrap", [0, 1, 20])
def test_later_stages_are_those_of_the_later_iterations(iterations, first, simulations, bootstrap):
    config = tiny.config(
        f"--iterations={iterations}",
        f"--selfplay.bootstrap_iterations={bootstrap}",
        f"--search.simulations={simulations}",
        f"--search.first_simulations={first}",
    )
    each = [stage_at(config, iteration) for iteration in range(iterations)]
    for iteration in range(iterations + 1):
        assert stages_from(config, iteration) == tuple(dict.fromkeys(each[iteration:]))


def test_a_long_run_is_not_gone_through_iteration_by_iteration(monkeypatch):
    config = tiny.config(
        *("--iterations=1000000", "--search.simulations=8", "--search.first_simulations=2")
    )
    asked = []

    def count(config, iteration):
        asked.append(iteration)
        return stage_at(config, iteration)

    monkeypatch.setattr(selfplay, "stage_at", count)
    assert len(stages_from(config, 400_000)) == 2
    assert 0 < len(asked) < 20


def test_every_stage_makes_the_plies_that_the_replay_is_compiled_for():
    config = tiny.config("--selfplay.bootstrap_iterations=1", "--learner.value_mix=0.5")
    step = TrainStep(config, all_devices(1))
    for stage in (BOOTSTRAP, stage_at(config, 1)):
        boards = jax.eval_shape(first_boards, step.variants)
        variables = () if stage == BOOTSTRAP else step.network.shapes
        selfplay = selfplay_of(config, stage)
        _, plies, _ = jax.eval_shape(selfplay, variables, step.variants, boards, jax.random.key(0))
        chex.assert_trees_all_equal_shapes_and_dtypes(plies, step.plies)


class Bootstrapped(NamedTuple):
    """The plies of a bootstrap's self-play, each board's first ones."""

    states: State  # [T * B], before each ply
    policy: np.ndarray  # [T * B, A], what is learned
    slot: np.ndarray  # [T * B], what was played


def bootstrapped(player: str) -> Bootstrapped:
    config = tiny.config(
        "--selfplay.bootstrap_iterations=1",
        f"--selfplay.bootstrap_player={player}",
        "--selfplay.plies=4",
        "--selfplay.boards=16",
    )
    selfplay = selfplay_of(config, stage_at(config, 0))

    @jax.jit
    def play(variant):
        return selfplay((), variant, first_boards(variant), jax.random.key(3))[1]

    variant = jax.device_get(tiny.variants(config.rules, config.selfplay.boards))
    plies = jax.device_get(play(variant))
    many = jax.tree.map(lambda x: np.broadcast_to(x, (4, *x.shape)), variant)
    states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), State(many, plies.position))
    policy, slot = (x.reshape(len(states.position.ply), -1) for x in (plies.policy, plies.slot))
    return Bootstrapped(states, policy, slot[:, 0])


def test_the_bootstrap_is_the_player_that_the_config_names():
    """Its policies are the random player's, even over the legal slots, and its plies are among
    them; the greedy player is what a config names by itself."""
    assert tiny.config().selfplay.bootstrap_player == "greedy"
    played = bootstrapped("random")
    assert (played.states.position.ply == np.repeat(range(4), 16)).all()
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(played.states))
    even = (legal / legal.sum(axis=1, keepdims=True)).astype(POLICY_DTYPE)
    np.testing.assert_allclose(played.policy, even, rtol=1e-3)
    assert legal[np.arange(len(played.slot)), played.slot].all()


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("pretrained:wallzero-4stone", "player 'pretrained:wallzero-4stone': needs weights; allo"),
        ("wjy", "player 'wjy': unknown; did you mean wjx?"),
    ],
)
def test_a_player_that_cannot_be_the_bootstrap_is_refused_in_a_line(player, said):
    with pytest.raises(UsageError) as caught:
        make_bootstrap(tiny.config(f"--selfplay.bootstrap_player={player}"))
    assert str(caught.value).startswith(f"selfplay.bootstrap_player: {said}")
    assert "\n" not in str(caught.value)
