"""Weights carried over by name: what both networks have plays the same, what is new has no say."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.checkpoints.transfer import carry_over
from train.network import NetworkConfig
from train.network.build import network_for, observer_for
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves

SMALL = NetworkConfig(blocks="R", width=8, heads=2, value_width=8, planes="BT", dtype="float32")
MOVES = "B3 D3 B3->C3:W0 D3->D3:W3 C3->C3:W2"


def carried(before: NetworkConfig, after: NetworkConfig):
    source, fresh = tiny.random_weights(before), tiny.new_weights(network_for(after, 2), seed=1)
    taken, parts = carry_over(source, fresh, before=before, after=after, players=2)
    return source, fresh, taken, {part.name: part for part in parts}


def output_of(config: NetworkConfig, variables):
    game = replay_moves(Rules(size=5, stones=1, order=(0, 1)), parse_moves(MOVES, grid=5))
    return program_of(config)(variables, jax.tree.map(np.asarray, game.states[-1]))


@functools.cache
def program_of(config: NetworkConfig):
    """(variables, a state) -> the heads' outputs."""
    network, observe = network_for(config, 2), observer_for(config)
    return jax.jit(lambda variables, state: network.evaluate(variables, observe(state, None)[None]))


def assert_plays_alike(before: NetworkConfig, after: NetworkConfig) -> dict:
    source, _, taken, parts = carried(before, after)
    one, other = output_of(before, source), output_of(after, taken)
    for name in ("policy", "value", "ownership"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-5)
    return parts


def test_new_planes_and_heads_change_nothing():
    after = dataclasses.replace(SMALL, planes="BTRDV", margin=True, reply=True)
    parts = assert_plays_alike(SMALL, after)
    # BT has 11 planes, R 2 more, D 8, V 12.
    kernel = 9 * 8
    norm = 4 * 8  # scale, bias, mean and variance
    assert parts["stem"][1:4] == (11 * kernel + norm, 22 * kernel, 0)
    assert (parts["margin"].taken, parts["margin"].left) == (0, 0) and parts["margin"].new
    assert parts["policy"][2:4] == (0, 0)


@pytest.mark.parametrize(("old", "new", "norm"), [("R", "RWTR", "batch"), ("T", "TT", "none")])
def test_added_blocks_begin_as_identities(old, new, norm):
    before = dataclasses.replace(SMALL, blocks=old, norm=norm)
    parts = assert_plays_alike(before, dataclasses.replace(before, blocks=new))
    for number in range(1, len(new)):
        assert parts[f"blocks.{number}"].taken == 0 < parts[f"blocks.{number}"].new


def test_planes_are_taken_by_name_and_other_blocks_and_heads_are_left():
    before = dataclasses.replace(SMALL, planes="BTRD", blocks="RW", margin=True)
    after = dataclasses.replace(SMALL, planes="BTRW", blocks="R", ownership=False, value="wdl")
    source, fresh, taken, parts = carried(before, after)
    theirs, own = (each.params["stem"]["conv"]["kernel"] for each in (source, taken))
    np.testing.assert_array_equal(own[:, :, :13], theirs[:, :, :13])
    assert not own[:, :, 13:].any()
    for name in ("blocks.1", "margin", "ownership"):
        assert (parts[name].taken, parts[name].new) == (0, 0) and parts[name].left
    # The last layer of the value head has another number of outputs.
    assert parts["value"].taken and parts["value"].new and parts["value"].left
    blocks = (each.params["blocks"][0]["conv1"]["kernel"] for each in (source, taken))
    np.testing.assert_array_equal(*blocks)
    stats = (each.batch_stats["stem"]["norm"]["norm"]["var"] for each in (source, taken))
    np.testing.assert_array_equal(*stats)
    assert jax.tree.structure(taken) == jax.tree.structure(fresh)


def test_a_block_of_another_kind_is_new():
    before = dataclasses.replace(SMALL, blocks="TW")
    after = dataclasses.replace(SMALL, blocks="TR", mlp_ratio=1.0)
    _, _, _, parts = carried(before, after)
    assert list(parts)[:3] == ["stem", "blocks.0", "blocks.1"]
    for name in ("blocks.0", "blocks.1"):
        assert parts[name].taken == 0 and parts[name].new and parts[name].left


@pytest.mark.parametrize(("key", "value"), [("width", 16), ("norm", "layer")])
def test_features_of_another_kind_are_refused(key, value):
    with pytest.raises(UsageError, match=rf"has network.{key} .* they must agree"):
        carried(SMALL, dataclasses.replace(SMALL, **{key: value}))
