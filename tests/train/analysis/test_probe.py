"""Heads find planted answers, find none in noise, and their answers are counted."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import tiny
from train.analysis import probe
from train.analysis.probe import BOARD, CELL, READS, ProbeResult, probe_runs, verdict
from train.arena.result import wilson_interval
from train.checkpoints.store import Store
from train.config import config_to_dict, read_config
from train.network.build import channels_of, network_for, observer_for
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules

RULES = Rules(size=5, stones=1, order=(0, 1))
OPTIONS = {"count_train": 60, "count_test": 40, "seeds": (0, 1), "min_distance": 6}


@pytest.fixture(scope="module")
def questions():
    return probe.draw_questions(RULES, count_train=400, count_test=200, min_distance=6, seed=0)


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


def test_unknown_counts_as_incorrect():
    scores = np.array([0.51, 0.5, 0.2, -0.2, -0.5, -0.51, 2.0, -3.0])
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    result = verdict(scores, labels)
    assert result == ProbeResult(correct=3, unknown=4, wrong=1, sign_correct=6)
    assert result.total == 8
    assert result.accuracy == 3 / 8
    assert result.sign_accuracy == 6 / 8
    assert result.interval == wilson_interval(3 / 8, 8)


def planted(seen: list[int], *, at_stones: bool):
    """Features of the kind (answer, 1): at every cell that holds a stone, its opposite elsewhere;
    or at one corner alone."""

    @jax.jit
    def features_of(states, earlier):
        seen.append(states.position.ply.shape[0])
        count = states.position.ply.shape[0]
        answer = jnp.where(states.position.terminated, -1.0, 1.0)[:, None]
        stones = jax.nn.one_hot(states.position.stones.reshape(count, -1), 25).sum(axis=1)
        corner = jnp.tile(jax.nn.one_hot(0, 25), (count, 1))
        answer = answer * (jnp.where(stones > 0, 1.0, -1.0) if at_stones else corner)
        return jnp.stack([answer, jnp.ones_like(answer)], -1).reshape(count, 5, 5, 2)

    return features_of


def test_answers_at_the_asked_cell_are_found(questions):
    seen = []
    answers = probe.ask(planted(seen, at_stones=True), questions, read=CELL, seed=0)
    total = probe.add_results(answers.values())
    assert total == ProbeResult(correct=200, unknown=0, wrong=0, sign_correct=200)
    assert set(answers) == set(questions.held_out.distance.tolist())
    assert set(seen) == {probe.BATCH}


def test_answers_elsewhere_are_found_by_heads_that_read_the_board(questions):
    features = planted([], at_stones=False)
    found = {
        read: probe.add_results(probe.ask(features, questions, read=read, seed=0).values())
        for read in READS
    }
    assert found[BOARD].correct == 200
    assert found[CELL].correct < 60 and found[CELL].unknown > 100


def test_noise_is_unknown_or_as_often_wrong_as_right(questions):
    @jax.jit
    def noise(states, earlier):
        count = states.position.ply.shape[0]
        return jax.random.normal(jax.random.key(3), (count, 5, 5, 16))

    total = probe.add_results(probe.ask(noise, questions, read=BOARD, seed=0).values())
    assert total.unknown > 100
    assert abs(total.correct - total.wrong) < 30
    assert 0.4 < total.sign_accuracy < 0.6


def test_features_keep_their_order(questions, monkeypatch):
    monkeypatch.setattr(probe, "BATCH", 64)
    known = questions.training

    @jax.jit
    def features_of(states, earlier):
        cells = jnp.arange(25.0).reshape(1, 5, 5, 1)
        ply = states.position.player.astype(jnp.float32)[:, None, None, None]
        return jnp.concatenate([cells + 0 * ply, 0 * cells + ply], -1)

    features = probe.read_features(features_of, known, read=BOARD)
    players = np.asarray(known.states.position.player)
    count = len(players)
    np.testing.assert_array_equal(features[:, 0], known.cell)
    np.testing.assert_array_equal(features[:, 1], players)
    np.testing.assert_array_equal(
        features[:, 2:], np.stack([[12.0] * count, players, [24.0] * count, players], 1)
    )
    np.testing.assert_array_equal(
        probe.read_features(features_of, known, read=CELL), features[:, :2]
    )


def test_pairs_differ_in_walls_alone(questions):
    """Planes that floods make show the positions as they were before the wall."""
    config = tiny.config("--network.planes", "BTRD").network
    states = jax.tree.map(lambda leaf: leaf[:40], questions.held_out.states)
    earlier = probe.before_last_wall(states)
    shown = np.asarray(jax.jit(probe.shown_planes, static_argnums=2)(states, earlier, config))
    observed = np.asarray(jax.jit(jax.vmap(observer_for(config)))(states))
    kinds = np.array([channel.kind for channel in channels_of(config, 2)])
    is_wall = np.isin(kinds, ("horizontal", "vertical"))
    differ = (shown[::2] != shown[1::2]).sum(axis=(1, 2))
    assert (differ.sum(axis=1) == 2).all() and not differ[:, ~is_wall].any()
    np.testing.assert_array_equal(shown[..., is_wall], observed[..., is_wall])
    np.testing.assert_array_equal(shown[..., kinds == "stone"], observed[..., kinds == "stone"])
    assert not shown[..., kinds == "territory"].any() and observed[..., kinds == "territory"].any()


def test_network_that_cannot_be_asked_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match="at least one trained player"):
        probe_runs([], RULES, **OPTIONS)
    with pytest.raises(UsageError, match=r"^probe: seeds 0, 1, 0: a seed is named twice$"):
        probe_runs(["none"], RULES, **OPTIONS | {"seeds": (0, 1, 0)})
    with pytest.raises(UsageError, match="no such run directory"):
        probe_runs([str(tmp_path / "none")], RULES, **OPTIONS)
    blind = str(save_run(tmp_path / "blind", planes="B", blocks="R"))
    three = Rules(size=5, players=3, stones=1, order=(0, 1, 2))
    with pytest.raises(UsageError, match="network is for 2 players, the rules are for 3"):
        probe_runs([blind], three, **OPTIONS)


@pytest.mark.slow
def test_runs_side_by_side(tmp_path):
    first = str(save_run(tmp_path / "one", planes="B", blocks="RT"))
    runs = [first, f"net:{first}", str(save_run(tmp_path / "two", planes="BTRHV", blocks="W"))]
    rows = probe_runs(runs, RULES, **OPTIONS)
    assert [(row.blocks, row.name) for row in rows] == [
        ("RT", "one"),
        ("RT", "untrained"),
        ("RT", "one"),
        ("W", "two"),
        ("W", "untrained"),
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
