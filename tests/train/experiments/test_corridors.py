"""Heads find planted answers, find none in noise, and are counted; what intervals are over, ranges
of distances, trainings of one trunk."""

import json

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import saved, tiny
from tests.support.learner.commands import command, complaint
from train.checkpoints.weights import weights_digest
from train.config import RunConfig
from train.experiments import corridors, probe
from train.experiments.corridors import Trunk, TrunkAnswers, probe_runs, probe_tables
from train.experiments.lib.scales import read_scales
from train.experiments.lib.work import Work
from train.experiments.probe import BOARD, CELL, READS, ProbeResult, verdict
from train.network import Variables
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


# Trainings of trunks, and their intervals.


def trunk(trainings: int) -> Trunk:
    return Trunk("R", RunConfig().network, (Variables({}, {}),) * trainings)


def answers(correct: int, wrong: int = 0) -> dict[int, ProbeResult]:
    """Of ten questions at each of two distances, answers to the first."""
    return {
        5: ProbeResult(correct, 10 - correct - wrong, wrong, correct),
        9: ProbeResult(0, 10, 0, 5),
    }


def test_intervals_are_over_trainings_where_there_are_several():
    """Means over heads of 0.1, 0.2 and 0.3: standard error 0.1/√3, 4.303 of it."""
    heads = [[answers(1), answers(3)], [answers(4), answers(4)], [answers(5), answers(7)]]
    asked = TrunkAnswers(trunk(3), CELL, heads)
    mean = asked.mean("correct")
    assert mean.mean == pytest.approx(0.2)
    assert mean.high - mean.mean == pytest.approx(min(0.1 / 3**0.5 * 4.3027, 0.8), rel=1e-4)
    assert asked.unit == "3 trainings"


def test_intervals_of_one_training_are_over_its_heads_and_called_that():
    """0.1 and 0.2: standard error 0.05, 12.706 of it."""
    asked = TrunkAnswers(trunk(1), CELL, [[answers(2), answers(4)]])
    mean = asked.mean("correct")
    assert (mean.mean, mean.low) == (pytest.approx(0.15), 0.0)
    assert mean.high == pytest.approx(0.15 + 0.05 * 12.7062, rel=1e-4)
    assert asked.unit == "2 heads of one training"
    assert TrunkAnswers(trunk(0), CELL, [[answers(1)]] * 3).unit == "3 new weights"


def test_ranges_hold_about_equally_many():
    counts = {
        distance: ProbeResult(number, 0, 0, 0)
        for distance, number in ((5, 20), (6, 10), (7, 10), (8, 15), (9, 5), (12, 20), (20, 20))
    }
    asked = TrunkAnswers(trunk(1), CELL, [[counts]])
    assert corridors.bins_of([asked]) == [(5, 5), (6, 7), (8, 9), (10, 12), (13, 20)]


def test_runs_that_differ_in_name_and_seed_are_one_trunk(tmp_path):
    runs = [str(saved.save_run(tmp_path / name, seeds={1: seed})) for seed, name in enumerate("ab")]
    named = [*runs, "pretrained:wallzero-4stone"]
    scale = read_scales({"corridors": {"trunks": named, "blocks": []}})
    work = Work(scale, tmp_path)
    first, second = corridors.trained_trunks(work)
    assert (first.name, second.name) == ("a", "wallzero-4stone")
    assert len({*map(weights_digest, first.weights)}) == 2 and len(second.weights) == 1
    controls = corridors.controls_of([first, second])
    assert [each.network for each in controls] == [first.network, second.network]


def test_the_same_weights_by_two_names_are_refused(tmp_path):
    first = saved.save_run(tmp_path / "a", seeds={1: 0, 2: 1})
    other = saved.save_run(tmp_path / "b", seeds={1: 1})
    scale = tmp_path / "s.toml"
    for again in (other, first / "checkpoints" / "2"):
        scale.write_text(f'[corridors]\ntrunks = ["{first}", "{again}"]\nblocks = []\n')
        words = ["experiment", "corridors", "--config", scale, "--out", tmp_path / "out"]
        said = complaint(command(*words))
        assert f"{first} and {again}" in said and "same weights" in said
