"""The destination head against a plain loop over cells, moves and walls."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.reference.referee import MOVES
from train.network import POLICY_PLANES, NetworkConfig, make_network
from train.network.heads import add_destinations
from wallgo_jax import planes as planes_lib

CHANNELS = planes_lib.channels("B", 2)
PLAIN = NetworkConfig(blocks="R", width=8, value_width=8, ownership=False)


def looped(policy: np.ndarray, walls: np.ndarray, is_playable: np.ndarray) -> np.ndarray:
    """logit(cell, move, wall) = policy(cell, move, wall) + walls(cell + move, wall)."""
    added = policy.copy()
    boards, height, width, _ = walls.shape
    for board, row, column in np.ndindex(boards, height, width):
        for move, (down, across) in enumerate(MOVES):
            end = row + down, column + across
            if 0 <= end[0] < height and 0 <= end[1] < width and is_playable[board, *end]:
                for wall in range(4):
                    added[board, row, column, move * 4 + wall] += walls[board, *end, wall]
    return added


@pytest.mark.parametrize("size", [3, 5])
def test_destination_is_added_where_the_move_ends(size):
    draw = np.random.default_rng(size)
    policy = draw.standard_normal((3, size, size, POLICY_PLANES)).astype(np.float32)
    walls = draw.standard_normal((3, size, size, 4)).astype(np.float32)
    is_playable = draw.random((3, size, size)) < 0.7
    everywhere = np.ones_like(is_playable)
    for cells, playable in (
        (everywhere, None),
        (is_playable, is_playable[..., None].astype(np.float32)),
    ):
        found = np.asarray(add_destinations(policy, walls, playable))
        np.testing.assert_allclose(found, looped(policy, walls, cells), atol=1e-6)
        np.testing.assert_array_equal(found[..., -1], policy[..., -1])


def test_destination_head_is_the_only_difference():
    """Beside the other head's numbers the policy is the one without it; so is all the rest."""
    plain = make_network(PLAIN, CHANNELS)
    more = make_network(dataclasses.replace(PLAIN, destination_head=True), CHANNELS)
    weights = tiny.new_weights(more)
    rest = weights._replace(params=dict(weights.params))
    head = rest.params.pop("destination")
    assert jax.tree.structure(rest) == jax.tree.structure(plain.shapes)
    assert head["here"]["kernel"].shape == (1, 1, 8, 4)
    planes = np.random.default_rng(0).random((2, 5, 5, len(CHANNELS))) < 0.4
    before = jax.jit(plain.evaluate)(rest, planes)
    after = jax.jit(more.evaluate)(weights, planes)
    features = np.asarray(jax.jit(more.features)(weights, planes))
    pooled = np.concatenate([features.mean((1, 2)), features.max((1, 2))], axis=-1)
    head = jax.device_get(head)
    walls = features @ head["here"]["kernel"][0, 0] + head["here"]["bias"]
    walls = walls + (pooled @ head["everywhere"]["kernel"])[:, None, None]
    expected = looped(np.asarray(before.policy), walls, np.ones((2, 5, 5), bool))
    np.testing.assert_allclose(after.policy, expected, atol=1e-5)
    np.testing.assert_allclose(after.value, before.value, atol=1e-6)
    assert np.abs(after.policy - before.policy).max() > 0.1
