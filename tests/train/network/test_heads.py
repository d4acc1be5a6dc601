"""The destination head against plain loops over cells, moves and walls."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from tests.support.learner import tiny
from tests.support.reference.referee import MOVES
from train.network import POLICY_PLANES, NetworkConfig, Output, Variables, make_network
from train.network.heads import add_destinations
from wallgo_jax import planes as planes_lib

CHANNELS = planes_lib.channels("B", 2)
PLAIN = NetworkConfig(blocks="R", width=8, value_width=8, ownership=False)
HEAD = dataclasses.replace(PLAIN, destination_head=True)
ALL_HEADS = dataclasses.replace(
    HEAD,
    ownership=True,
    margin=True,
    reply=True,
)
BOARDS, SIZE = 2, 5
SHAPE = (BOARDS, SIZE, SIZE)
EVERYWHERE = np.ones(SHAPE, bool)

evaluate_of = functools.cache(lambda config: jax.jit(make_network(config, CHANNELS).evaluate))


@functools.cache
def planes() -> np.ndarray:
    """bool[B, H, W, C]"""
    first, second = np.random.default_rng(0).random((2, *SHAPE, len(CHANNELS))) < 0.4
    return first & second


class Given(NamedTuple):
    """What the network without these heads makes of the planes."""

    output: Output
    features: np.ndarray  # [B, H, W, F]
    pooled: np.ndarray  # [B, 2F]


@functools.cache
def given() -> Given:
    network = make_network(PLAIN, CHANNELS)
    weights = tiny.new_weights(network)
    output, x = jax.device_get(
        jax.jit(lambda *a: (network.evaluate(*a), network.features(*a)))(weights, planes())
    )
    return Given(output, x, np.concatenate([x.mean((1, 2)), x.max((1, 2))], axis=-1))


def weights_of(config: NetworkConfig) -> Variables:
    """Weights of a network with more heads, in all the rest those of `given`."""
    plain = tiny.new_weights(make_network(PLAIN, CHANNELS))
    more = tiny.new_weights(make_network(config, CHANNELS))
    return more._replace(
        params={**more.params, **plain.params},
        batch_stats={**more.batch_stats, **plain.batch_stats},
    )


def of_cells(head: dict) -> np.ndarray:
    """[B, H, W, D]: a head's numbers for each cell, from its own features and the pooled ones."""
    here = given().features @ head["here"]["kernel"][0, 0] + head["here"]["bias"]
    return here + (given().pooled @ head["everywhere"]["kernel"])[:, None, None]


def at_ends(is_playable: np.ndarray, walls_of: Callable) -> np.ndarray:
    """[B, H, W, 53]: walls_of(cell, end of the move), 0 where the move ends off the board."""
    added = np.zeros((*SHAPE, POLICY_PLANES))
    for board, row, column in np.ndindex(SHAPE):
        for move, (down, across) in enumerate(MOVES):
            end = board, row + down, column + across
            if 0 <= min(end) and max(end[1:]) < SIZE and is_playable[end]:
                walls = walls_of((board, row, column), end)
                added[board, row, column, 4 * move : 4 * move + 4] = walls
    return added


def test_destination_is_added_where_the_move_ends():
    draw = np.random.default_rng(5)
    policy = draw.standard_normal((*SHAPE, POLICY_PLANES)).astype(np.float32)
    walls = draw.standard_normal((*SHAPE, 4)).astype(np.float32)
    is_playable = draw.random(SHAPE) < 0.7
    add = jax.jit(add_destinations)
    for cells, playable in (
        (np.ones_like(is_playable), None),
        (is_playable, is_playable[..., None].astype(np.float32)),
    ):
        found = np.asarray(add(policy, walls, playable))
        np.testing.assert_allclose(
            found, policy + at_ends(cells, lambda _, end: walls[end]), atol=1e-6
        )
        np.testing.assert_array_equal(found[..., -1], policy[..., -1])


def test_destination_head_is_the_only_difference():
    """Beside the other head's numbers the policy is the one without it; so is all the rest."""
    weights = weights_of(HEAD)
    rest = dict(weights.params)
    head = jax.device_get(rest.pop("destination"))
    assert jax.tree.structure(rest) == jax.tree.structure(make_network(PLAIN, CHANNELS).shapes[0])
    assert head["here"]["kernel"].shape == (1, 1, 8, 4)
    before, after = given().output, evaluate_of(HEAD)(weights, planes())
    walls = of_cells(head)
    expected = before.policy + at_ends(EVERYWHERE, lambda _, end: walls[end])
    np.testing.assert_allclose(after.policy, expected, atol=1e-5)
    np.testing.assert_allclose(after.value, before.value, atol=1e-6)
    assert np.abs(after.policy - before.policy).max() > 0.1


def test_new_heads_prefer_nothing():
    network = make_network(ALL_HEADS, CHANNELS)
    weights = jax.jit(network.init)(jax.random.key(0))
    assert not any(np.any(x) for x in jax.tree.leaves(evaluate_of(ALL_HEADS)(weights, planes())))
