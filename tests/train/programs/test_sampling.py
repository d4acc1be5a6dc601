"""Samples of a run, from the devices' memory or the host's, hold what the config's losses read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data import replay
from train.data.selfplay import TargetOptions, first_boards, make_selfplay
from train.players.basic import make_random_search
from train.programs.assembly import make_parts
from train.programs.replay import make_replay_programs
from train.runtime.devices import all_devices


@pytest.mark.parametrize("memory", ["device", "host"])
def test_values_of_samples_are_those_of_td_steps_later(memory):
    config = tiny.config(
        *("--learner.value_mix=0.5", "--learner.td_steps=2", "--learner.batch=64"),
        *("--selfplay.plies=16", f"--replay.memory={memory}"),
    )
    devices = all_devices(1)
    parts = make_parts(config, devices)
    programs = make_replay_programs(config, parts.plies, parts.variants, devices)
    play = make_selfplay(
        make_random_search(),
        plies=config.selfplay.plies,
        targets=TargetOptions(has_root_value=True),
    )
    boards = jax.jit(first_boards)(parts.variants)
    _, plies, _ = jax.jit(play)((), parts.variants, boards, jax.random.key(0))
    numbered = np.arange(plies.terminated.size, dtype=np.float32).reshape(plies.terminated.shape)
    plies = plies._replace(root_value=jnp.asarray(numbered))
    replay_state, finished = programs.add(programs.init(), plies)
    assert int(finished.all) > 10

    found, own = (
        jax.device_get(draw(replay_state, programs.beside(parts.variants), jax.random.key(1)))
        for draw in (programs.sample, jax.jit(own_values(config.learner.batch)))
    )
    row = own.root_value // numbered.shape[1]
    np.testing.assert_array_equal(found.position.ply, own.position.ply)
    is_over = np.isnan(found.root_value)
    assert 0 < is_over.sum() < is_over.size
    later = row[~is_over] + 2
    np.testing.assert_array_equal(np.abs(found.root_value[~is_over]) // numbered.shape[1], later)


def own_values(size: int):
    """`replay.sample` of the values that the plies' own searches found, by the same key."""

    def draw(replay_state, variant, key):
        return replay.sample(replay_state, variant, jax.random.fold_in(key, 0), size=size)

    return draw
