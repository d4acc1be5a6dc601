"""Corridors: what intervals are over, ranges of distances, trainings of one trunk."""

import pytest

from tests.support.learner import saved
from tests.support.learner.commands import command, complaint
from train.checkpoints.weights import weights_digest
from train.config import RunConfig
from train.experiments import corridors
from train.experiments.corridors import Trunk, TrunkAnswers
from train.experiments.lib.work import Work
from train.experiments.probe import CELL, ProbeResult
from train.experiments.scales import read_scales
from train.network import Variables

NETWORK = RunConfig().network
WEIGHTS = Variables({}, {})


def trunk(trainings: int) -> Trunk:
    return Trunk("R", NETWORK, (WEIGHTS,) * trainings)


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
