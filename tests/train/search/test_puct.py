"""PUCT's rule of selection, its noise at the root and its draw of the move; divergences."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
import scipy.special

from tests.support.learner.hashed_game import Place
from tests.support.learner.searching import mctx_tree_of, node_of
from train.network import MASKED
from train.search.config import SearchConfig
from train.search.mctx_engine import make_qtransform
from train.search.puct import (
    dirichlet,
    draw_at,
    make_puct_choice,
    make_puct_slot,
    mix,
    most_visited,
    reduced_qvalues,
    root_reduction,
    scaled_qvalues,
    unscaled_qvalues,
)
from train.search.search import divergence
from train.search.tree import Budget, Node, Root


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


def test_first_plays_by_katago_fall_behind_the_node_as_more_of_the_prior_is_visited():
    """Shares 0.64, 0.36 and 0 of the prior are visited: 0.7 - 0.2 * 0.8, 0.7 - 0.2 * 0.6, 0.7."""
    logits = np.log([[0.64, 0.36, 1e-9]] * 3)
    node = node_of(logits, [[5, 0, 0], [0, 1, 0], [0, 0, 0]], qvalues=[[0.5, -0.25, 9]] * 3)
    node = node._replace(value=jnp.full(3, 0.7))
    found = jax.jit(lambda node, r: reduced_qvalues(node, reduction=r))(node, 0.2)
    expected = [[0.5, 0.54, 0.54], [0.58, -0.25, 0.58], [0.7, 0.7, 0.7]]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # At a root with noise not at all.
    config = SearchConfig(kind="puct")
    assert root_reduction(config, explores=True) == 0
    assert root_reduction(config, explores=False) == 0.2
    assert root_reduction(SearchConfig(dirichlet_fraction=None), explores=True) == 0.2


@pytest.mark.parametrize(
    ("visits", "qvalues", "slots"),
    [
        # The weight 4: 0 + 2.4 / 3, 1 + 1.2 / 2, 0.4; then -0.05 + 0.8, 0.02 + 0.6, -0.34 + 0.4;
        # then the same with -0.19 + 0.4 for the third.
        ([2, 1, 0, 0], [-0.05, 0.02, 0.0, 9.0], {"mctx": 1, "minizero": 0, "katago": 0}),
        # The weight 4: 1 + 2.4 / 4, 1.2, 0.4; then 0.1 + 0.6, -0.45 + 1.2, -0.45 + 0.4; then 0.7,
        # -0.15 + 1.2, -0.15 + 0.4.
        ([3, 0, 0, 0], [0.1, 0.0, 0.0, 9.0], {"mctx": 0, "minizero": 1, "katago": 1}),
        # As before, with a value that makes up for less of the prior: 0.9, -0.35 + 1.2, 0.05; by
        # KataGo's rule 0.9, 1.05, 0.25: its first play does not hang on the visited value.
        ([3, 0, 0, 0], [0.3, 0.0, 0.0, 9.0], {"mctx": 0, "minizero": 0, "katago": 1}),
        # Values 1 for the first, once it is visited, and 0 for the others. N = 1, the weight 2:
        # 1.2, 0.6, 0.2; N = 4, the weight 4: 1 + 2.4 / 3, 1.2 / 2, 0.4; N = 9, the weight 6:
        # 1 + 3.6 / 9, 1.8, 0.6; N = 10, the weight 6.32: 1 + 3.79 / 9, 1.90 / 2, 0.63.
        ([0, 0, 0, 0], [1.0, 0.0, 0.0, 9.0], {"mctx": 0}),
        ([2, 1, 0, 0], [1.0, 0.0, 0.0, 9.0], {"mctx": 0}),
        ([8, 0, 0, 0], [1.0, 0.0, 0.0, 9.0], {"mctx": 1}),
        ([8, 1, 0, 0], [1.0, 0.0, 0.0, 9.0], {"mctx": 0}),
    ],
)
def test_slot_of_the_largest_score_depends_on_the_rule_of_first_plays(visits, qvalues, slots):
    """Priors 0.6, 0.3, 0.1, and a slot that is illegal. The weight is 2 sqrt(N), divided by a
    slot's visits and one; the node's own value is 0."""
    logits = np.array([[np.log(0.6), np.log(0.3), np.log(0.1), MASKED]])
    node = node_of(logits, [visits], qvalues=[qvalues])
    for first_play, slot in slots.items():
        config = SearchConfig(c_init=2.0, c_base=1e9, first_play=first_play)
        assert jax.jit(make_puct_slot(config))(None, node).tolist() == [slot]


@pytest.mark.parametrize(
    ("c_init", "c_base", "first_play"),
    [
        (1.25, 19652.0, "mctx"),
        (2.0, 10.0, "mctx"),
        (0.0, 19652.0, "mctx"),
        (1.25, 19652.0, "minizero"),
        (0.0, 19652.0, "minizero"),
        (1.25, 19652.0, "katago"),
        (0.0, 19652.0, "katago"),
    ],
)
def test_slot_is_mctxs(c_init, c_base, first_play):
    """Nodes of no visits, of few and of many, with ties: noise from the same keys breaks them."""
    draw = np.random.default_rng(0)
    chance = np.array([0.0, 0.05, 0.5, 1.0] * 16)[:, None]
    visits = (draw.random((64, 9)) < chance) * draw.integers(1, 40, (64, 9))
    logits = np.round(draw.normal(0, 1, (64, 9)))
    qvalues = np.where(visits > 0, draw.uniform(-1, 1, (64, 9)), 0.0)
    node = node_of(logits, visits, qvalues=qvalues)
    node = node._replace(value=jnp.asarray(draw.uniform(-1, 1, 64), jnp.float32))
    keys = jax.random.split(jax.random.key(0), 64)
    config = SearchConfig(c_init=c_init, c_base=c_base, first_play=first_play)
    qtransform = make_qtransform(config, explores=False)

    @jax.jit
    @jax.vmap
    def by_mctx(key: jax.Array, node: Node) -> Any:
        return mctx.muzero_action_selection(
            key,
            mctx_tree_of(node),
            0,
            1,
            pb_c_init=c_init,
            pb_c_base=c_base,
            qtransform=qtransform,
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


TASTE = np.array([2.0, 1.0, 0.0, -1.0, 0.5, MASKED, MASKED, 1.5, 0.0], np.float32)


def _make_choice(config: SearchConfig, *, explores: bool):
    """A jitted choice (key, root) from a tree that visits slots in proportion to the root's
    prior."""

    def grow(key: jax.Array, root: Root, play: object) -> tuple[jax.Array, jax.Array, None]:
        shares = jax.nn.softmax(root.logits, axis=1)
        return jnp.round(200 * shares).astype(jnp.int32), root.value, None

    choose = make_puct_choice(config, grow, [Budget(200, explores)])
    return jax.jit(lambda key, root: choose(key, root, None))


def _roots(boards: int, sharpness: float = 1.0) -> Root:
    """The same prior on all boards; the first half of them is at ply 2, the other at ply 3."""
    legal = TASTE > MASKED
    logits = np.where(legal, sharpness * np.where(legal, TASTE, 0.0), MASKED).astype(np.float32)
    ply = np.repeat(np.array([2, 3], np.int16), boards // 2)
    return Root(
        np.tile(logits, (boards, 1)),
        np.full(boards, 0.5, np.float32),
        Place(np.zeros(boards, np.uint32), ply, np.zeros(boards, bool)),
        np.tile(legal, (boards, 1)),
    )


def test_root_noise_is_for_self_play():
    """An evaluator that is sure of one slot is followed without noise, but not with noise alone."""
    config = SearchConfig(kind="puct", dirichlet_fraction=1.0, dirichlet_alpha=50.0)
    follows, explores = (
        _make_choice(config, explores=explores)(jax.random.key(2), _roots(4, 40.0))
        for explores in (False, True)
    )
    assert (np.asarray(follows.policy).max(axis=1) >= 0.75).all()
    assert follows.slot.tolist() == [0] * 4
    policy = np.asarray(explores.policy)
    assert (policy.max(axis=1) <= 0.5).all()
    np.testing.assert_allclose(policy.sum(axis=1), 1.0, atol=1e-6)
    assert (policy[:, TASTE == MASKED] == 0).all()
    assert (policy[0] != policy[1]).any()


@pytest.mark.parametrize("plies", [0, 3])
def test_moves_are_drawn_by_visits_up_to_a_ply(plies):
    boards = 300
    config = SearchConfig(kind="puct", dirichlet_fraction=None, temperature_plies=plies)
    found = _make_choice(config, explores=True)(jax.random.key(6), _roots(2 * boards))
    policy = np.asarray(found.policy)
    np.testing.assert_allclose(policy, scipy.special.softmax(_roots(600).logits, axis=1), atol=0.01)
    for half in (slice(boards), slice(boards, None)):
        slot = np.asarray(found.slot[half])
        if plies and half.start:
            assert set(slot.tolist()) == {0}
        else:
            share = np.bincount(slot, minlength=policy.shape[1]) / boards
            assert np.abs(share - policy[half].mean(axis=0)).max() < 0.1
            assert len(set(slot.tolist())) > 5


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


def test_root_noise_falls_on_legal_slots_alone():
    slots, legal_slots, count = 12, 9, 20_000
    legal = np.arange(slots) % 4 > 0
    assert legal.sum() == legal_slots
    rows = np.broadcast_to(legal, (count, slots))
    noise = np.asarray(jax.jit(dirichlet)(jax.random.key(0), rows, alpha=0.17), np.float64)
    assert (noise[:, ~legal] == 0).all()
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, atol=1e-5)
    # The marginals of a symmetric Dirichlet distribution are Beta(alpha, (n - 1) alpha).
    of_legal = noise[:, legal]
    variance = (1 / legal_slots) * (1 - 1 / legal_slots) / (0.17 * legal_slots + 1)
    np.testing.assert_allclose(of_legal.mean(axis=0), 1 / legal_slots, rtol=0.05)
    assert of_legal.var(axis=0).mean() == pytest.approx(variance, rel=0.03)
    # A quarter of the prior's mass makes room for the noise, none of it is lost.
    logits = np.where(rows, np.arange(slots) / 10.0, MASKED).astype(np.float32)
    softmax = jax.jit(jax.nn.softmax)
    mixed = np.asarray(softmax(jax.jit(mix)(logits, jnp.asarray(noise), rows, fraction=0.25)))
    prior = np.asarray(softmax(logits))
    np.testing.assert_allclose(mixed, 0.75 * prior + 0.25 * noise, atol=1e-5)
    assert (mixed[:, ~legal] == 0).all()


@pytest.mark.parametrize("alpha", [0.001, 0.01, 30.0])
def test_root_noise_is_a_distribution_for_any_alpha(alpha):
    legal = np.arange(64)[None] < np.array([1, 2, 64])[:, None]
    noise = np.asarray(jax.jit(dirichlet)(jax.random.key(1), legal, alpha=alpha))
    assert np.isfinite(noise).all()
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, atol=1e-5)
    assert noise[0, 0] == 1.0


@pytest.mark.parametrize(
    ("temperature", "shares"), [(1.0, [1, 3, 0, 4]), (0.5, [1, 9, 0, 16]), (0.01, [0, 0, 0, 1])]
)
def test_draws_go_by_visits_to_a_power(temperature, shares):
    visits = jnp.asarray(np.broadcast_to(np.array([1, 3, 0, 4], np.int32), (20_000, 4)))
    slots = jax.jit(draw_at)(jax.random.key(0), visits, temperature)
    expected = np.array(shares) / sum(shares)
    np.testing.assert_allclose(np.bincount(slots, minlength=4) / 20_000, expected, atol=0.02)


def test_the_prior_breaks_ties_of_visits():
    visits = jnp.array([[2, 3, 3, 0], [1, 0, 0, 0]])
    prior = jnp.array([[9.0, 0.0, 1.0, 5.0], [0.0, MASKED, 50.0, 0.0]])
    assert jax.jit(most_visited)(visits, prior).tolist() == [2, 0]


def test_divergence_is_kullback_and_leiblers():
    policy = jnp.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    prior = np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], np.float32)
    logits = np.log(prior, out=np.full_like(prior, MASKED), where=prior > 0)
    expected = [0.0, 0.25 * np.log(0.5) + 0.75 * np.log(3), 0.0]
    np.testing.assert_allclose(jax.jit(divergence)(policy, logits), expected, atol=1e-6)
