"""A head learns what features tell, of whatever scale, and nothing from noise."""

import numpy as np

from train.learning.frozen_head import fit_head, head_scores

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(900, 8))


def scores_of(features: np.ndarray, labels: np.ndarray, **options) -> np.ndarray:
    """Answers to the last third by a head of the rest."""
    head = fit_head(features[:600], labels[:600], seed=1, **options)
    return np.asarray(head_scores(head, features[600:]))


def test_a_head_answers_what_no_line_parts():
    """Yes where two features have the same sign."""
    labels = NOISE[:, 2] * NOISE[:, 5] > 0
    scores = scores_of(NOISE, labels, learning_rate=0.01)
    signed = np.where(labels[600:], scores, -scores)
    assert (signed > 0.5).mean() > 0.8
    assert abs(scores).max() <= 1


def test_scale_and_place_of_features_do_not_matter():
    labels = NOISE[:, 3] > 0
    moved = NOISE * np.array([1, 10, 100, 1, 1, 0.01, 1, 1]) + 3
    moved[:, 7] = 5.0  # no spread to divide by
    still = np.concatenate([NOISE[:, :7], np.zeros((900, 1))], axis=1)
    np.testing.assert_allclose(scores_of(moved, labels), scores_of(still, labels), atol=1e-3)


def test_noise_is_not_learned_by_heart():
    """Many passes fit the samples; those that are not trained on stop that."""
    labels = RNG.random(900) < 0.5
    scores = scores_of(NOISE, labels)
    assert (abs(scores) > 0.5).mean() < 0.2
    assert 0.4 < ((scores > 0) == labels[600:]).mean() < 0.6
    np.testing.assert_array_equal(scores_of(NOISE, labels), scores)


def test_few_samples_make_one_batch():
    head = fit_head(NOISE[:7], NOISE[:7, 0] > 0, seed=0)
    assert np.isfinite(head_scores(head, NOISE)).all()
