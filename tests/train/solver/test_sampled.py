"""Sampled positions are distinct, unfinished, and among those that are reachable."""

import jax
import numpy as np
import pytest

from train.solver.positions import reachable_levels, sample_positions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

RULES = Rules(size=3, stones=1, start=((1, 1, 0), (0, 0, 1)), order=())


def keys_of(states: State) -> list[tuple[int, ...]]:
    """Walls of any colour, stones and player to move of each position."""
    position = states.position
    walls = position.walls[:, 0] | position.walls[:, 1]
    return [
        (*map(int, built.ravel()), *map(int, stones.ravel()), int(player))
        for built, stones, player in zip(walls, position.stones, position.player, strict=True)
    ]


@pytest.fixture(scope="module")
def sampled() -> State:
    return sample_positions(RULES, 300, min_walls=3, seed=1)


@pytest.mark.slow
def test_positions_are_distinct_reachable_and_have_the_walls(sampled):
    keys = keys_of(sampled)
    assert len(set(keys)) == len(keys) == 300
    assert not sampled.position.terminated.any()
    # There is no setup, so each ply before built a wall.
    assert (sampled.position.ply >= 3).all()
    assert len(np.unique(sampled.position.ply)) > 3
    reachable = set()
    for level in reachable_levels(RULES):
        reachable |= set(keys_of(level))
    assert set(keys) < reachable


@pytest.mark.slow
def test_seed_names_the_sample(sampled):
    again, other = (sample_positions(RULES, 300, min_walls=3, seed=seed) for seed in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, sampled, again)
    assert set(keys_of(other)) != set(keys_of(sampled))
