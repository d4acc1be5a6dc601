"""Probes find planted answers, find none in noise, and count their answers."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import tiny
from train.analysis import probe
from train.analysis.corridors import make_corridors
from train.analysis.probe import ProbeResult, linear_probe, probe_runs, probe_trunk, verdict
from train.arena.result import wilson_interval
from train.checkpoints.store import Store
from train.checkpoints.weights import TrainedNetwork
from train.config import config_to_dict, read_config
from train.network import Variables
from train.network.build import network_for
from train.runtime.errors import UsageError
from wallgo_jax import planes as planes_lib
from wallgo_jax.game.rules import Rules

RULES = Rules(size=5, stones=1, order=(0, 1))
OPTIONS = {"count_train": 60, "count_test": 40, "seeds": (0, 1), "min_distance": 6}


@pytest.fixture(scope="module")
def questions():
    return tuple(
        make_corridors(RULES, count=count, seed=seed, min_distance=6)
        for count, seed in ((400, 0), (200, 1))
    )


def save_run(directory: Path, **network: str) -> Path:
    """A run directory with one checkpoint of a tiny network."""
    words = [f"--network.{key}={value!r}" for key, value in network.items()]
    small = ["--network.width=8", "--network.heads=2", "--network.value_width=8"]
    config = read_config(None, [*small, *words])
    weights = tiny.new_weights(network_for(config.network, 2))
    store = Store(directory, keep=1)
    store.save(1, weights, {"nothing": np.zeros(1)}, config_to_dict(config))
    store.close()
    return directory


def noise(features: int, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, features))


def test_planted_answer_is_found():
    labels = np.arange(500) % 2 == 0
    features = noise(20, 500, 0)
    features[:, 3] = 1e4 + 1e-3 * labels
    result = verdict(linear_probe(features[:300], labels[:300], features[300:]), labels[300:])
    assert result == ProbeResult(correct=200, unknown=0, wrong=0, sign_correct=200)


def test_noise_is_unknown():
    labels = np.random.default_rng(1).random(900) < 0.5
    features = noise(30, 900, 2)
    result = verdict(linear_probe(features[:600], labels[:600], features[600:]), labels[600:])
    assert result.unknown > 270
    assert 0.4 < result.sign_accuracy < 0.6


def test_ridge_is_the_regularised_least_squares_solution():
    features, targets = noise(4, 50, 3), np.where(noise(1, 50, 4)[:, 0] > 0, 1.0, -1.0)
    features[:, 2] = 5.0  # constant: no spread to divide by
    scores = probe._ridge_scores(features, targets, features)
    spread = features.std(axis=0)
    x = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    for row, ridge in zip(scores, probe.RIDGES, strict=True):
        penalty = np.sqrt(ridge * 50) * np.eye(4)
        stacked = np.concatenate([x, penalty]), np.r_[targets - targets.mean(), np.zeros(4)]
        weights = np.linalg.lstsq(*stacked)[0]
        np.testing.assert_allclose(row, x @ weights + targets.mean(), atol=1e-6)


def test_probe_is_deterministic_and_free_of_scale():
    features, labels = noise(6, 100, 5), noise(1, 100, 6)[:, 0] > 0
    once = linear_probe(features[:80], labels[:80], features[80:])
    moved = features * np.array([1, 10, 100, 1, 1, 0.01]) + 3
    assert once.dtype == np.float64
    np.testing.assert_allclose(linear_probe(moved[:80], labels[:80], moved[80:]), once, atol=1e-6)
    again = linear_probe(features[:80], labels[:80], features[80:])
    np.testing.assert_array_equal(again, once)


def test_unknown_counts_as_incorrect():
    scores = np.array([0.51, 0.5, 0.2, -0.2, -0.5, -0.51, 2.0, -3.0])
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    result = verdict(scores, labels)
    assert result == ProbeResult(correct=3, unknown=4, wrong=1, sign_correct=6)
    assert result.total == 8
    assert result.accuracy == 3 / 8
    assert result.sign_accuracy == 6 / 8
    assert result.interval == wilson_interval(3 / 8, 8)


def test_probe_reads_the_asked_cell(questions):
    known, asked = questions

    seen = []

    @jax.jit
    def planted(states):
        """The answer at every cell that holds a stone, its opposite elsewhere."""
        seen.append(states.position.ply.shape[0])
        count = states.position.ply.shape[0]
        reached = states.position.terminated
        stones = jax.nn.one_hot(states.position.stones.reshape(count, -1), 25).sum(axis=1)
        answer = jnp.where(reached, -1.0, 1.0)[:, None] * jnp.where(stones > 0, 1.0, -1.0)
        return jnp.stack([answer, jnp.ones_like(answer)], -1).reshape(count, 5, 5, 2)

    result = probe_trunk(planted, known, asked)
    assert result == ProbeResult(correct=200, unknown=0, wrong=0, sign_correct=200)
    assert set(seen) == {probe.BATCH}


def test_queried_features_keep_their_order(questions, monkeypatch):
    known, _ = questions
    monkeypatch.setattr(probe, "BATCH", 64)

    @jax.jit
    def features_of(states):
        cells = jnp.arange(25.0).reshape(1, 5, 5, 1)
        ply = states.position.player.astype(jnp.float32)[:, None, None, None]
        return jnp.concatenate([cells + 0 * ply, 0 * cells + ply], -1)

    features = probe.queried_features(features_of, known)
    np.testing.assert_array_equal(features[:, 0], known.cell)
    np.testing.assert_array_equal(features[:, 1], known.states.position.player)


@pytest.mark.parametrize("planes", [p for p in planes_lib.PLANE_SETS if "T" in p])
def test_territory_planes_are_refused(planes):
    network = network_for(tiny.config("--network.planes", planes).network, 2)
    with pytest.raises(UsageError, match=f"planes {planes} show territory.* B or BV ") as caught:
        probe.trunk_features(network, {}, planes=planes, has_playable=False)
    assert "\n" not in str(caught.value)


def test_run_that_cannot_be_probed_is_refused_by_name(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        seeing = TrainedNetwork(read_config(None), Variables({}, {}), "sees", "sees", None, {})
        patch.setattr(probe, "load_network", lambda name: seeing)
        with pytest.raises(UsageError, match="sees: probe: the planes BTR"):
            probe_runs(["sees"], RULES, **OPTIONS)
    with pytest.raises(UsageError, match="at least one trained player"):
        probe_runs([], RULES, **OPTIONS)
    with pytest.raises(UsageError, match="no such run directory"):
        probe_runs([str(tmp_path / "none")], RULES, **OPTIONS)
    blind = str(save_run(tmp_path / "blind", planes="B", blocks="R"))
    three = Rules(size=5, players=3, stones=1, order=(0, 1, 2))
    with pytest.raises(UsageError, match="network is for 2 players, the rules are for 3"):
        probe_runs([blind], three, **OPTIONS)


def test_runs_side_by_side(tmp_path):
    first = str(save_run(tmp_path / "one", planes="B", blocks="RT"))
    runs = [first, f"net:{first}", str(save_run(tmp_path / "two", planes="BV", blocks="R"))]
    rows = probe_runs(runs, RULES, **OPTIONS)
    assert [(row.blocks, row.name) for row in rows] == [
        ("RT", "one"),
        ("RT", "untrained"),
        ("RT", "one"),
        ("R", "two"),
        ("R", "untrained"),
    ]
    assert all(row.result.total == 80 for row in rows)
    assert rows[0].result == rows[2].result  # the same weights, the same questions
    for row in rows:
        assert row.near_until <= row.far_from
        assert 80 // 3 <= row.near.total < 80
        assert 80 // 3 <= row.far.total < 80
    console = Console(width=160, record=True)
    console.print(probe.probe_table(rows, caption="tiny"))
    text = console.export_text()
    for word in ("untrained", "two", "accuracy", "95 % interval", "far third", "tiny"):
        assert word in text
    record = json.loads(json.dumps(probe.probe_record(rows)))
    first = record["rows"][0]
    assert first["name"] == "one"
    assert first["accuracy"] == rows[0].result.accuracy
    assert first["near"]["total"] == rows[0].near.total
    without = probe_runs(runs[:1], RULES, **OPTIONS, untrained=False)
    assert without == rows[:1]
