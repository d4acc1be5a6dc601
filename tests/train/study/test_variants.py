"""Trainings of a study: which directories they may use, and what is compared of them."""

import dataclasses
import json
import math

import pytest

from train.config import RunConfig, config_to_dict
from train.metrics.rows import METRICS_FILE
from train.runtime.errors import UsageError
from train.study.frame import variants
from train.study.frame.pieces import Pieces
from train.study.frame.report import points_range
from train.study.frame.variants import Meeting, Variant, difference, train_all
from train.study.frame.work import Work, no_task
from train.study.scale.reading import StudyConfig


@pytest.fixture
def trained(monkeypatch):
    """Names and lengths of the runs that were trained; a training writes its config and a row."""
    found = []

    def train(config, runs, *, resume):
        assert resume == (runs / config.name).is_dir()
        found.append((config.name, config.iterations))
        (runs / config.name).mkdir(parents=True, exist_ok=True)
        (runs / config.name / "config.json").write_text(json.dumps(config_to_dict(config)))
        row = {"selfplay_seconds": 1.0, "learn_seconds": 2.0, "games": 3, "positions": 4}
        (runs / config.name / METRICS_FILE).write_text(json.dumps(row) + "\n")
        return True

    monkeypatch.setattr(variants.training, "train", train)
    return found


def variant(iterations: int, *, wandb: str = "") -> Variant:
    config = dataclasses.replace(RunConfig(), iterations=iterations)
    tracking = dataclasses.replace(config.tracking, wandb=wandb)
    return Variant("R", dataclasses.replace(config, tracking=tracking))


def test_a_training_of_other_settings_is_never_removed_nor_taken_for_ours(trained, tmp_path):
    def train_with(*given: Variant):
        return train_all(
            Work(StudyConfig(), Pieces(tmp_path, where="here"), no_task), given, seeds=2
        )

    run = tmp_path / "runs" / "R-seed0"
    first = train_with(variant(3))
    assert trained == [("R-seed0", 3), ("R-seed1", 3)]
    said = f"{run}: a training of other settings; choose another --out, or remove it"
    with pytest.raises(UsageError) as refused:
        train_with(variant(5))
    assert str(refused.value) == said
    assert (run / METRICS_FILE).is_file() and len(trained) == 2
    assert train_with(variant(3)) == train_with(variant(3, wandb="elsewhere")) == first
    # The directory now holds another training than the kept piece is of.
    (run / "config.json").write_text(json.dumps(config_to_dict(variant(5).config)))
    with pytest.raises(UsageError) as refused:
        train_with(variant(3))
    assert str(refused.value) == said
    run.rename(tmp_path / "elsewhere")
    assert train_with(variant(3)) == first and len(trained) == 2


def test_a_training_against_another_victim_is_one_of_other_settings(trained, tmp_path):
    """Its config names the victim's directory alone, which may hold other weights than before."""

    def train_against(victim):
        pieces = Pieces(tmp_path, where="here")
        attack = variant(3)._replace(name="attack", made_by={"victim": victim})
        return train_all(Work(StudyConfig(), pieces, no_task), [attack], seeds=1)

    run = tmp_path / "runs" / "attack-seed0"
    assert train_against((1,)) == train_against((1,))
    with pytest.raises(UsageError, match="attack-seed0: a training of other settings"):
        train_against((2,))
    run.rename(tmp_path / "elsewhere")
    train_against((2,))
    assert trained == 2 * [("attack-seed0", 3)]


def test_the_difference_of_one_seed_has_no_interval():
    """With seed 0 A wins 3 of 4 against B, and the mean rates are 3/4 and 1/4."""
    gap = difference([Meeting("A", "B", 0, 3, 0, 1)], "A", "B")
    assert gap.mean == 0.5 and math.isnan(gap.low) and math.isnan(gap.high) and gap.seeds == 1
    assert points_range(gap.low, gap.high) == ""
    two = [Meeting("A", "B", seed, 3, 0, 1) for seed in (0, 1)]
    gap = difference(two, "A", "B")
    assert points_range(gap.low, gap.high) == " (+50.0 to +50.0)"
