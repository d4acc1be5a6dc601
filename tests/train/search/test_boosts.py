"""Boosts of classes of moves at the root of self-play's searches."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from tests.support.learner.searching import FOUR_STONES, random_evaluator, random_states
from train.network import MASKED
from train.search import search as search_lib
from train.search.config import MOVE_CLASSES, SearchConfig, as_player, boosts_at
from train.search.search import PriorBoost, boost_classes, divergence, make_search
from train.search.tree import Choice, Root


def test_a_boost_is_added_to_the_plays_of_its_class():
    """Two stones; per stone, slots 0 to 3 stay, 4 to 19 take one step, 20 to 51 two."""
    logits = np.random.default_rng(0).normal(size=(2, 110)).astype(np.float32)
    legal = np.ones((2, 110), bool)
    legal[:, 104:] = legal[:, 50] = False
    boosts = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    in_setup = np.array([False, True])
    boost = jax.jit(boost_classes, static_argnames="stones")
    found = np.asarray(boost(logits, boosts, legal, in_setup, stones=2))
    added = np.tile([2.0] * 4 + [3.0] * 16 + [4.0] * 32, 2)
    is_legal = legal[0, :104]
    np.testing.assert_allclose(
        found[0, :104][is_legal], (logits[0, :104] + added)[is_legal], rtol=1e-6
    )
    np.testing.assert_allclose(found[1, :104][is_legal], logits[1, :104][is_legal] / 2, rtol=1e-6)
    assert (found[~legal] == MASKED).all()


def test_boosts_fall_to_a_half_in_each_half_life():
    config = SearchConfig(prior_boost=("stay=2", "placement=0.5"), prior_boost_halflife=4.0)
    assert MOVE_CLASSES == ("placement", "stay", "one_step", "two_steps")
    assert boosts_at(config, 0) == (0.5, 2.0, 0.0, 0.0)
    assert boosts_at(config, 8) == pytest.approx((0.125, 0.5, 0.0, 0.0))
    assert as_player(config, 8).prior_boost == ()


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_the_root_alone_is_boosted_and_gumbel_learns_no_boost(kind, monkeypatch):
    """An engine that plays the likeliest slot of the root it gets and teaches its prior."""

    def choose(key: jax.Array, root: Root, play: object) -> Choice:
        policy = jax.nn.softmax(root.logits, axis=1)
        return Choice(root.logits.argmax(axis=1), policy, root.value, None)

    monkeypatch.setattr(search_lib, "make_engine", lambda config, **_: choose)
    config = SearchConfig(kind=kind)
    search = functools.partial(make_search, random_evaluator, config, explores=True)
    states, key = random_states(FOUR_STONES, 4, 1, 12), jax.random.key(0)
    boosted = jax.jit(search())
    amounts = np.array([0.0, 12.0, 0.0, 0.0], np.float32)
    found = jax.device_get(boosted(PriorBoost((), amounts), states, key))
    plain = jax.device_get(jax.jit(search())((), states, key))
    in_play = states.position.ply >= 4
    slots = np.arange(plain.prior.shape[1])
    stays = (slots % 52 < 4) & (slots < 52 * 2)
    can_stay = in_play & ((plain.prior > MASKED) & stays).any(axis=1)
    assert can_stay.sum() >= 4 and not stays[plain.slot[can_stay]].all()
    assert stays[found.slot[can_stay]].all()
    np.testing.assert_array_equal(found.slot[~can_stay], plain.slot[~can_stay])
    np.testing.assert_array_equal(found.prior, plain.prior)
    policy = plain.policy
    if kind == "puct":
        logits = plain.prior + np.where(stays & in_play[:, None], 12.0, 0.0)
        policy = scipy.special.softmax(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(found.policy, policy, atol=1e-5)
    nats = jax.jit(divergence)(jnp.asarray(found.policy), plain.prior)
    np.testing.assert_allclose(found.surprise, nats, atol=1e-4)
    nothing = boosted(PriorBoost((), np.zeros(4, np.float32)), states, key)
    for one, other in zip(nothing, plain, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
