"""Heads find planted answers, find none in noise, and their answers are counted."""

import json

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import saved, tiny
from train.experiments import probe
from train.experiments.corridors import probe_runs, probe_tables
from train.experiments.probe import BOARD, CELL, READS, ProbeResult, verdict
from train.network.build import channels_of, observer_for
from wallgo_jax.game.rules import Rules

RULES = Rules(size=5, stones=1, order=(0, 1))
COUNT = 400
OPTIONS = {"count_train": COUNT, "count_test": COUNT, "min_distance": 6}


@pytest.fixture(scope="module")
def questions():
    """On the host, so that planted features of theirs are no programs."""
    return jax.device_get(probe.draw_questions(RULES, **OPTIONS, seed=0))


def test_unknown_counts_as_incorrect():
    scores = np.array([0.51, 0.5, 0.2, -0.2, -0.5, -0.51, 2.0, -3.0])
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    result = verdict(scores, labels)
    assert result == ProbeResult(correct=3, unknown=4, wrong=1, sign_correct=6)
    assert (result.share("correct"), result.share("sign_correct")) == (3 / 8, 6 / 8)


def planted(seen: list[int], *, at_stones: bool):
    """Features of the kind (answer, 1): at every cell that holds a stone, its opposite elsewhere;
    or at one corner alone."""

    def features_of(states, earlier):
        count = states.position.ply.shape[0]
        seen.append(count)
        answer = np.where(states.position.terminated, -1.0, 1.0).astype(np.float32)[:, None]
        stones = np.eye(25)[states.position.stones.reshape(count, -1)].sum(axis=1)
        corner = np.eye(25, dtype=np.float32)[:1]
        answer = answer * (np.where(stones > 0, 1.0, -1.0) if at_stones else corner)
        both = np.stack([answer, np.ones_like(answer)], -1)
        return both.astype(np.float32).reshape(count, 5, 5, 2)

    return features_of


def test_answers_at_the_asked_cell_are_found(questions):
    seen = []
    answers = probe.ask(planted(seen, at_stones=True), questions, read=CELL, seed=0)
    total = probe.add_results(answers.values())
    assert total == ProbeResult(correct=COUNT, unknown=0, wrong=0, sign_correct=COUNT)
    assert set(answers) == set(questions.held_out.distance.tolist())
    assert set(seen) == {probe.BATCH}


def test_answers_elsewhere_are_found_by_heads_that_read_the_board(questions):
    features = planted([], at_stones=False)
    found = {
        read: probe.add_results(probe.ask(features, questions, read=read, seed=0).values())
        for read in READS
    }
    assert found[BOARD].correct == COUNT
    assert found[CELL].correct < 0.3 * COUNT and found[CELL].unknown > COUNT / 2


def test_noise_is_unknown_or_as_often_wrong_as_right(questions):
    def noise(states, earlier):
        count = states.position.ply.shape[0]
        return np.random.default_rng(3).standard_normal((count, 5, 5, 16), np.float32)

    total = probe.add_results(probe.ask(noise, questions, read=BOARD, seed=0).values())
    assert total.unknown > COUNT / 2
    assert abs(total.correct - total.wrong) < 0.15 * COUNT
    assert 0.4 < total.share("sign_correct") < 0.6


def test_features_keep_their_order(questions, monkeypatch):
    monkeypatch.setattr(probe, "BATCH", 64)
    known = questions.training

    def features_of(states, earlier):
        cells = np.arange(25, dtype=np.float32).reshape(1, 5, 5, 1)
        player = states.position.player.astype(np.float32)[:, None, None, None]
        return np.concatenate([cells + 0 * player, 0 * cells + player], -1)

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


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    """The smallest network, of width 8."""
    return str(saved.save_run(tmp_path_factory.mktemp("runs") / "one", seeds={1: 0}))


@pytest.mark.slow
def test_runs_side_by_side(run):
    asked = probe_runs([run, f"net:{run}"], RULES, **OPTIONS, seeds=(0,))
    assert [each.trunk.label for each in asked] == ["`one`", "`one`", "`R`, new weights"]
    totals = [probe.add_results(each.answers[0][0].values()) for each in asked]
    assert all(sum(result[:3]) == COUNT for result in totals)
    assert totals[0] == totals[1]  # the same weights, the same questions
    console = Console(width=160, record=True)
    console.print(*probe_tables(asked, caption="tiny"))
    text = console.export_text()
    for word in ("one", "new weights", "correct", "right side of 0", "steps", "tiny"):
        assert word in text
    record = json.loads(json.dumps(asked[0].record()))
    assert record["trunk"] == "one" and record["correct"]["mean"] == totals[0].share("correct")
