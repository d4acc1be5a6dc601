"""PUCT's rule of selection, its noise at the root and its draw of the move."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
import scipy.special

from tests.support.learner.searching import (
    DUEL,
    even_evaluator,
    legal_slots,
    mctx_tree_of,
    node_of,
    play,
    repeat,
)
from train.network import MASKED
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation
from train.search.mctx_engine import qtransform_by_first_play
from train.search.puct import make_puct_slot, scaled_qvalues, unscaled_qvalues
from train.search.search import make_search
from train.search.tree import Node
from wallgo_jax.game import actions
from wallgo_jax.game.state import State, initial_state

GRID = 3


def test_values_are_scaled_between_those_known():
    """Two visited slots at 1/2 and -1/2, the node itself at 1/10; then one that is worth less than
    the node, and one that is worth the same."""
    visits = [[2, 1, 0], [1, 0, 0], [1, 0, 0]]
    qvalues = [[0.5, -0.5, 0.0], [-0.3, 0.0, 0.0], [0.2, 0.0, 0.0]]
    node = node_of(np.zeros((3, 3)), visits, qvalues=qvalues)
    node = node._replace(value=jnp.array([0.1, 0.1, 0.2]))
    # In the second a slot without visits counts as the least, -3/10, not as the node's value.
    expected = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(jax.jit(scaled_qvalues)(node), expected, atol=1e-6)


def test_values_without_rescaling_are_those_expected():
    """The third slot is not visited, the last is illegal. Without visits a slot has the value
    (1/2 - 1/4 - 1) / 3, then (-3/10 - 1) / 2, (-1 - 1 - 1) / 3, and a loss where none has any."""
    visits = [[5, 1, 0, 0], [3, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    qvalues = [[0.5, -0.25, 9, 9], [-0.3, 9, 9, 9], [-1, -1, 9, 9], [9, 9, 9, 9]]
    node = node_of([[0.0, 0.0, 0.0, MASKED]] * 4, visits, qvalues=qvalues)
    node = node._replace(value=jnp.full(4, 0.7))
    seen = np.array([[0.5, -0.25], [-0.3, -0.65], [-1.0, -1.0], [-1.0, -1.0]])
    unseen = np.array([-0.25, -0.65, -1.0, -1.0])[:, None]
    found = jax.jit(unscaled_qvalues)(node)
    np.testing.assert_allclose(found, np.hstack([seen, unseen, unseen]), atol=1e-6)


@pytest.mark.parametrize(
    ("visits", "slot"),
    [
        # N = 1, the weight 2: 1.2, 0.6, 0.2.
        ([0, 0, 0, 0], 0),
        # N = 4, the weight 4: 1 + 2.4 / 3, 1.2 / 2, 0.4.
        ([2, 1, 0, 0], 0),
        # N = 9, the weight 6: 1 + 3.6 / 9, 1.8, 0.6.
        ([8, 0, 0, 0], 1),
        # N = 10, the weight 6.32: 1 + 3.79 / 9, 1.90 / 2, 0.63.
        ([8, 1, 0, 0], 0),
    ],
)
def test_slot_of_the_largest_score_by_hand(visits, slot):
    """Priors 0.6, 0.3, 0.1, and a slot that is illegal; values 1 for the first, once it is visited,
    and 0 for the others. The weight is 2 sqrt(N), divided by a slot's visits and one."""
    logits = np.array([[np.log(0.6), np.log(0.3), np.log(0.1), MASKED]])
    node = node_of(logits, [visits], qvalues=[[1.0, 0.0, 0.0, 9.0]])
    select = jax.jit(make_puct_slot(SearchConfig(c_init=2.0, c_base=1e9)))
    assert select(None, node).tolist() == [slot]


@pytest.mark.parametrize(
    ("visits", "qvalues", "rescaled", "expected"),
    [
        # The weight 4: 0 + 2.4 / 3, 1 + 1.2 / 2, 0.4; then -0.05 + 0.8, 0.02 + 0.6, -0.34 + 0.4.
        ([2, 1, 0, 0], [-0.05, 0.02, 0.0, 9.0], 1, 0),
        # The weight 4: 1 + 2.4 / 4, 1.2, 0.4; then 0.1 + 0.6, -0.45 + 1.2, -0.45 + 0.4.
        ([3, 0, 0, 0], [0.1, 0.0, 0.0, 9.0], 0, 1),
        # As before, with a value that makes up for less of the prior: 0.9, -0.35 + 1.2, 0.05.
        ([3, 0, 0, 0], [0.3, 0.0, 0.0, 9.0], 0, 0),
    ],
)
def test_slot_depends_on_the_scale_of_values(visits, qvalues, rescaled, expected):
    """Priors and weight as above; the node's own value is 0."""
    logits = np.array([[np.log(0.6), np.log(0.3), np.log(0.1), MASKED]])
    node = node_of(logits, [visits], qvalues=[qvalues])
    for rescale_values, slot in ((True, rescaled), (False, expected)):
        config = SearchConfig(c_init=2.0, c_base=1e9, rescale_values=rescale_values)
        assert jax.jit(make_puct_slot(config))(None, node).tolist() == [slot]


@pytest.mark.parametrize(
    ("c_init", "c_base", "rescale_values"),
    [
        (1.25, 19652.0, True),
        (2.0, 10.0, True),
        (0.0, 19652.0, True),
        (1.25, 19652.0, False),
        (0.0, 19652.0, False),
    ],
)
def test_slot_is_mctxs(c_init, c_base, rescale_values):
    """Nodes of no visits, of few and of many, with ties: noise from the same keys breaks them."""
    draw = np.random.default_rng(0)
    chance = np.array([0.0, 0.05, 0.5, 1.0] * 16)[:, None]
    visits = (draw.random((64, 9)) < chance) * draw.integers(1, 40, (64, 9))
    logits = np.round(draw.normal(0, 1, (64, 9)))
    qvalues = np.where(visits > 0, draw.uniform(-1, 1, (64, 9)), 0.0)
    node = node_of(logits, visits, qvalues=qvalues)
    node = node._replace(value=jnp.asarray(draw.uniform(-1, 1, 64), jnp.float32))
    keys = jax.random.split(jax.random.key(0), 64)
    # By default without a word of ours.
    own = {} if rescale_values else {"qtransform": qtransform_by_first_play}
    config = SearchConfig(c_init=c_init, c_base=c_base, rescale_values=rescale_values)

    @jax.jit
    @jax.vmap
    def by_mctx(key: jax.Array, node: Node) -> Any:
        return mctx.muzero_action_selection(
            key, mctx_tree_of(node), 0, 1, pb_c_init=c_init, pb_c_base=c_base, **own
        )

    found = jax.jit(make_puct_slot(config))(keys, node)
    np.testing.assert_array_equal(found, by_mctx(keys, node))
    assert len(set(np.asarray(found).tolist())) == 9


def test_noise_alone_picks_no_illegal_slot():
    """With next to no weight of the prior all slots are level but for the noise."""
    boards, legal = 100, np.arange(52) % 4 == 1
    logits = np.broadcast_to(np.where(legal, 0.0, MASKED), (boards, 52))
    node = node_of(logits, np.zeros((boards, 52), int))
    select = jax.jit(make_puct_slot(SearchConfig(c_init=0.0, c_base=1e12)))
    found = np.asarray(select(jax.random.split(jax.random.key(0), boards), node))
    assert legal[found].all()
    assert len(set(found.tolist())) == legal.sum()


TASTE = np.random.default_rng(9).normal(size=actions.num_slots(1, grid=GRID)).astype(np.float32)


def _taste_evaluator(variables, states: State, analysis=None) -> Evaluation:
    """Prefers some slots to others, as strongly as `variables` says; nobody is ahead."""
    even = even_evaluator((), states)
    return even._replace(logits=jnp.where(even.logits == MASKED, MASKED, variables * TASTE))


@functools.cache
def _taste_search(*, explores: bool):
    """Noise alone, where there is noise."""
    config = SearchConfig(
        simulations=60,
        kind="puct",
        c_init=2.0,
        c_base=100.0,
        dirichlet_fraction=1.0,
        dirichlet_alpha=50.0,
    )
    return jax.jit(make_search(_taste_evaluator, config, explores=explores))


def _early_duel() -> State:
    """Both stones placed, no wall yet: nothing can be won soon."""
    state = initial_state(DUEL)
    for cell in (0, 8):
        state, _ = play(state, jnp.int32(cell))
    return state


def test_puct_plays_the_most_visited_slot_and_counts_its_surprise():
    """That its visits and values are mctx's is shown in `test_engines`."""
    states = repeat(_early_duel(), 4)
    found = jax.device_get(_taste_search(explores=False)(1.0, states, jax.random.key(4)))
    np.testing.assert_array_equal(found.slot, found.policy.argmax(axis=1))
    logits = jax.jit(_taste_evaluator)(1.0, states).logits
    prior = scipy.special.softmax(np.asarray(logits, np.float64), axis=-1)
    policy = np.asarray(found.policy, np.float64)
    nats = np.where(policy > 0, policy * np.log(np.maximum(policy, 1e-30) / (prior + 1e-300)), 0)
    assert (nats.sum(axis=1) > 0).all()
    np.testing.assert_allclose(found.surprise, nats.sum(axis=1), rtol=1e-4)


def test_root_noise_is_for_self_play():
    """An evaluator that is sure of one slot is followed without noise, but not with noise alone."""
    states = repeat(_early_duel(), 4)
    follows, explores = (
        _taste_search(explores=explores)(40.0, states, jax.random.key(2))
        for explores in (False, True)
    )
    assert (np.asarray(follows.policy).max(axis=1) >= 0.75).all()
    assert (np.asarray(explores.policy).max(axis=1) <= 0.5).all()
    legal = np.asarray(legal_slots(_early_duel()))
    assert (np.asarray(explores.policy)[:, ~legal] == 0).all()


@pytest.mark.parametrize("plies", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_moves_are_drawn_by_visits_up_to_a_ply(plies):
    """Half of the boards are at ply 2, half at ply 3."""
    boards = 300
    states = repeat(_early_duel(), 2 * boards)
    ply = jnp.asarray(np.repeat(np.array([2, 3], np.int16), boards))
    states = states._replace(position=states.position._replace(ply=ply))
    config = SearchConfig(
        simulations=24, kind="puct", dirichlet_fraction=0.0, temperature_plies=plies
    )
    search = jax.jit(make_search(_taste_evaluator, config, explores=True))
    found = search(1.0, states, jax.random.key(6))
    policy = np.asarray(found.policy)
    for half in (slice(boards), slice(boards, None)):
        slot = np.asarray(found.slot[half])
        if plies and half.start:
            played = np.take_along_axis(policy[half], slot[:, None], axis=1)[:, 0]
            np.testing.assert_array_equal(played, policy[half].max(axis=1))
        else:
            share = np.bincount(slot, minlength=policy.shape[1]) / boards
            assert np.abs(share - policy[half].mean(axis=0)).max() < 0.1
            assert len(set(slot.tolist())) > 5
