"""Samples of a run, from the devices' memory or the host's, hold what the config's losses read."""

import functools

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.selfplay import first_boards, make_selfplay
from train.loop.compiled_step import make_step
from train.loop.train_step import sample
from train.players.basic import make_random_search
from train.runtime.devices import all_devices

SIZE, PLIES = 64, 16
WORDS = (
    *("--learner.value_mix=0.5", "--learner.td_steps=2", f"--learner.batch={SIZE}"),
    f"--selfplay.plies={PLIES}",
)


@functools.cache
def numbered_plies(boards: int) -> replay.Trajectory:
    """Plies [T, B] of random games, whose values of searches count them, row by row."""
    play = make_selfplay(make_random_search(), SelfPlayConfig(plies=PLIES), has_root_value=True)
    variants = tiny.variants(tiny.RULES, boards)

    @jax.jit
    def first_plies(variants):
        return play((), variants, first_boards(variants), jax.random.key(0))[1]

    plies = jax.device_get(first_plies(variants))
    numbers = np.arange(plies.terminated.size, dtype=np.float32)
    return plies._replace(root_value=numbers.reshape(plies.terminated.shape))


@functools.partial(jax.jit, static_argnames="size")
def own_values(replay_state, variant, key, *, size: int) -> replay.Sample:
    """`replay.sample` of the values that the plies' own searches found, by the same key."""
    return replay.sample(replay_state, variant, jax.random.fold_in(key, 0), size=size)


@pytest.mark.parametrize("memory", ["device", "host"])
def test_values_of_samples_are_those_of_td_steps_later(memory):
    config = tiny.config(*WORDS, f"--replay.memory={memory}")
    step = make_step(config, all_devices(1))
    plies, key = numbered_plies(config.selfplay.boards), jax.random.key(1)
    replay_state, finished = step.write(step.init().replay_state, plies)
    assert int(finished.all) > 10
    draw = jax.jit(functools.partial(sample, step.parts))
    found = jax.device_get(draw(replay_state, step.parts.variants, key))
    own = jax.device_get(
        own_values(
            jax.device_get(replay_state), step.parts.variants, key, size=config.learner.batch
        )
    )
    row = own.root_value // plies.terminated.shape[1]
    np.testing.assert_array_equal(found.position.ply, own.position.ply)
    is_over = np.isnan(found.root_value)
    assert 0 < is_over.sum() < is_over.size
    later = row[~is_over] + 2
    np.testing.assert_array_equal(
        np.abs(found.root_value[~is_over]) // plies.terminated.shape[1], later
    )
