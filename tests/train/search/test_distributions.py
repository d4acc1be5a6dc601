"""Noise over legal slots, its mixture with a policy, draws by visits, divergences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.network import MASKED
from train.search.puct import dirichlet, draw_at, mix, most_visited
from train.search.search import divergence

draw_noise = jax.jit(dirichlet)


def test_root_noise_falls_on_legal_slots_alone():
    slots, legal_slots, count = 12, 9, 20_000
    legal = np.arange(slots) % 4 > 0
    assert legal.sum() == legal_slots
    rows = np.broadcast_to(legal, (count, slots))
    noise = np.asarray(draw_noise(jax.random.key(0), rows, alpha=0.17), np.float64)
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
    noise = np.asarray(draw_noise(jax.random.key(1), legal, alpha=alpha))
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
