"""Boosts of classes of moves at the root of self-play's searches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.searching import RED, drawn_duel, even_evaluator, legal_slots, repeat
from train.network import MASKED
from train.search.config import MOVE_CLASSES, SearchConfig, as_player, boosts_at, parse_boosts
from train.search.search import Boosted, boost_classes, make_search


def test_a_boost_is_added_to_the_plays_of_its_class():
    """Two stones; per stone, slots 0 to 3 stay, 4 to 19 take one step, 20 to 51 two."""
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(2, 110)), jnp.float32)
    legal = jnp.ones((2, 110), bool).at[:, 104:].set(False).at[:, 50].set(False)
    boosts = jnp.array([1.0, 2.0, 3.0, 4.0])
    in_setup = jnp.array([False, True])
    found = np.asarray(boost_classes(logits, boosts, legal, in_setup, stones=2))
    added = np.tile([2.0] * 4 + [3.0] * 16 + [4.0] * 32, 2)
    is_legal = np.asarray(legal[0, :104])
    np.testing.assert_allclose(
        found[0, :104][is_legal], (np.asarray(logits[0, :104]) + added)[is_legal], rtol=1e-6
    )
    np.testing.assert_allclose(
        found[1, :104][is_legal], np.asarray(logits[1, :104])[is_legal] / 2, rtol=1e-6
    )
    assert (found[~np.asarray(legal)] == MASKED).all()


def test_boosts_fall_to_a_half_in_each_half_life():
    config = SearchConfig(prior_boost=("stay=2", "placement=0.5"), prior_boost_halflife=4.0)
    assert MOVE_CLASSES == ("placement", "stay", "one_step", "two_steps")
    assert boosts_at(config, 0) == (0.5, 2.0, 0.0, 0.0)
    assert boosts_at(config, 8) == pytest.approx((0.125, 0.5, 0.0, 0.0))
    assert as_player(config, 8).prior_boost == ()


@pytest.mark.parametrize(
    "words", [["jump=2"], ["stay"], ["stay=0"], ["stay=-1"], ["stay=nan"], ["stay=1", "stay=2"]]
)
def test_wrong_words_are_told_in_a_line(words):
    with pytest.raises(ValueError, match=r"^prior_boost '.*': |names no class of moves; write"):
        parse_boosts(words)


@pytest.mark.parametrize("kind", ["gumbel", pytest.param("puct", marks=pytest.mark.slow)])
def test_a_boosted_class_is_visited_and_gumbel_learns_no_boost(kind):
    """With an even evaluator every legal slot is as good. Boosted stays take the
    visits; the improved policy of the Gumbel search is what it is without them."""
    config = SearchConfig(simulations=8, max_considered_actions=4, kind=kind, temperature=0.0)
    states = repeat(drawn_duel(mover=RED), 4)
    key = jax.random.key(0)
    boosted = jax.jit(make_search(even_evaluator, config, explores=True, has_boosts=True))
    amounts = np.array([0.0, 12.0, 0.0, 0.0], np.float32)
    found = boosted(Boosted((), amounts), states, key)
    legal = np.asarray(jax.vmap(legal_slots)(states))
    slots = np.arange(legal.shape[1])
    stays = (slots % 52 < 4) & (slots < 52 * states.position.stones.shape[-1])
    assert (legal & stays).any(axis=1).all()
    assert stays[np.asarray(found.slot)].all()
    mass = np.where(legal & stays, np.asarray(found.policy), 0).sum(axis=1)
    # A stay may win here, so its share rises above one in five; with the boost it would be 1.
    assert (mass < 0.7).all() if kind == "gumbel" else (mass > 0.9).all()
    if kind == "puct":
        return
    nothing = boosted(Boosted((), np.zeros(4, np.float32)), states, key)
    plain = jax.jit(make_search(even_evaluator, config, explores=True))((), states, key)
    np.testing.assert_array_equal(nothing.slot, plain.slot)
    np.testing.assert_allclose(nothing.policy, plain.policy, atol=1e-6)
