"""The destination head and its variants against plain loops over cells, moves and walls."""

import dataclasses
import itertools
from collections import Counter

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.reference.referee import MOVES, SIDES
from train.network import POLICY_PLANES, NetworkConfig, Variables, make_network
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


def random_planes(seed: int = 0) -> np.ndarray:
    """bool[2, 5, 5, C]"""
    return np.random.default_rng(seed).random((2, 5, 5, len(CHANNELS))) < 0.4


def without(weights: Variables, head: str) -> tuple[Variables, dict]:
    """The weights without a head's, and the head's."""
    rest = weights._replace(params=dict(weights.params))
    return rest, jax.device_get(rest.params.pop(head))


def test_hidden_layer_stands_between_features_and_destinations():
    config = dataclasses.replace(PLAIN, destination_head=True, destination_width=3)
    plain, more = make_network(PLAIN, CHANNELS), make_network(config, CHANNELS)
    weights, planes = tiny.new_weights(more), random_planes()
    rest, head = without(weights, "destination")
    before, after = jax.jit(plain.evaluate)(rest, planes), jax.jit(more.evaluate)(weights, planes)
    x = np.asarray(jax.jit(more.features)(weights, planes))
    pooled = np.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1)
    hidden = x @ head["here"]["kernel"][0, 0] + head["here"]["bias"]
    hidden = np.maximum(hidden + (pooled @ head["everywhere"]["kernel"])[:, None, None], 0)
    assert hidden.shape == (2, 5, 5, 3)
    walls = hidden @ head["last"]["kernel"][0, 0] + head["last"]["bias"]
    expected = looped(np.asarray(before.policy), walls, np.ones((2, 5, 5), bool))
    np.testing.assert_allclose(after.policy, expected, atol=1e-5)
    assert np.abs(after.policy - before.policy).max() > 0.01


def test_pairs_multiply_numbers_of_the_stone_and_of_the_end():
    config = dataclasses.replace(PLAIN, destination_head=True, destination_rank=2)
    plain = make_network(dataclasses.replace(config, destination_rank=0), CHANNELS)
    more, planes = make_network(config, CHANNELS), random_planes()
    weights = tiny.new_weights(more)
    rest, head = without(weights, "pairs")
    before, after = jax.jit(plain.evaluate)(rest, planes), jax.jit(more.evaluate)(weights, planes)
    x = np.asarray(jax.jit(more.features)(weights, planes))
    start = x @ head["start"]["kernel"][0, 0] + head["start"]["bias"]
    end = (x @ head["end"]["kernel"][0, 0]).reshape(2, 5, 5, 2, 4)
    expected = np.array(before.policy)
    for board, row, column in np.ndindex(2, 5, 5):
        for move, (down, across) in enumerate(MOVES):
            there = row + down, column + across
            if 0 <= min(there) and max(there) < 5:
                logits = start[board, row, column] @ end[board, *there]
                expected[board, row, column, 4 * move : 4 * move + 4] += logits
    np.testing.assert_allclose(after.policy, expected, atol=1e-5)
    assert np.abs(after.policy - before.policy).max() > 0.01


def parted(planes: np.ndarray, cell: tuple[int, int], side: int) -> bool:
    """Whether a wall, the border or a stone keeps a stone from a step to that side; planes of B:
    stones in 0 and 1, walls below in 2 and 3, walls to the right in 4 and 5."""
    (row, column), (down, across) = cell, SIDES[side]
    there = row + down, column + across
    if not (0 <= min(there) and max(there) < planes.shape[0]):
        return True
    walls = planes[*min(cell, there), 2:4] if down else planes[*min(cell, there), 4:6]
    return bool(walls.any() or planes[*there, :2].any())


def test_path_head_reads_the_cells_between_on_open_ways():
    config = dataclasses.replace(PLAIN, destination_head=True, destination_path=True)
    plain = make_network(dataclasses.replace(config, destination_path=False), CHANNELS)
    more, planes = make_network(config, CHANNELS), random_planes() & random_planes(1)
    weights = tiny.new_weights(more)
    rest, head = without(weights, "path")
    before, after = jax.jit(plain.evaluate)(rest, planes), jax.jit(more.evaluate)(weights, planes)
    x = np.asarray(jax.jit(more.features)(weights, planes))
    pooled = np.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1)
    between = x @ head["here"]["kernel"][0, 0] + head["here"]["bias"]
    between = between + (pooled @ head["everywhere"]["kernel"])[:, None, None]
    assert between.shape == (2, 5, 5, 8 * 4)
    expected, ways = np.array(before.policy), Counter()
    for board, row, column in np.ndindex(2, 5, 5):
        for first, second in itertools.product(range(4), repeat=2):
            total = tuple(np.add(SIDES[first], SIDES[second]))
            if total == (0, 0) or parted(planes[board], (row, column), first):
                continue
            middle = row + SIDES[first][0], column + SIDES[first][1]
            if parted(planes[board], middle, second):
                continue
            move = MOVES.index(total)
            added = between[board, *middle, 4 * (move - 5) : 4 * (move - 4)]
            expected[board, row, column, 4 * move : 4 * move + 4] += added
            ways[board, row, column, move] += 1
    assert set(ways.values()) == {1, 2}
    np.testing.assert_allclose(after.policy, expected, atol=1e-5)
    assert np.abs(after.policy - before.policy).max() > 0.01


def test_new_pairs_prefer_nothing_but_can_learn():
    config = dataclasses.replace(PLAIN, destination_head=True, destination_rank=2)
    network, planes = make_network(config, CHANNELS), random_planes()
    weights = jax.jit(network.init)(jax.random.key(0))
    assert (np.asarray(jax.jit(network.evaluate)(weights, planes).policy) == 0).all()

    @jax.jit
    @jax.grad
    def gradient_of_corner(pairs: dict) -> jax.Array:
        params = {**weights.params, "pairs": pairs}
        return network.evaluate(weights._replace(params=params), planes).policy[0, 0, 0, 0]

    gradient = gradient_of_corner(weights.params["pairs"])
    assert np.abs(gradient["start"]["kernel"]).max() > 0


def test_options_of_the_destination_need_the_head():
    for key in ("destination_width", "destination_rank"):
        with pytest.raises(ValueError, match=f"^{key} must be 0 where destination_head is false$"):
            NetworkConfig(**{key: 4})
        with pytest.raises(ValueError, match=f"^{key} must not be negative$"):
            NetworkConfig(destination_head=True, **{key: -1})
    with pytest.raises(ValueError, match="destination_path must be false where"):
        NetworkConfig(destination_path=True)
