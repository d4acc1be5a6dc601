"""Trainings of a study: which directories they may use, and what is compared of them."""

import dataclasses
import json
import math
import shutil
from pathlib import Path

import pytest

from tests.support.learner import saved, tiny
from train.config import RunConfig, config_to_dict
from train.metrics.rows import METRICS_FILE
from train.runtime.errors import UsageError
from train.study.frame import variants
from train.study.frame.pieces import Pieces
from train.study.frame.report import points_range
from train.study.frame.variants import Meeting, Variant, difference, train_all
from train.study.frame.work import Work, no_task
from train.study.scale.reading import StudyConfig
from train.study.scale.trainings import BlocksConfig, TransferCase, TransferConfig
from train.study.trainings import adversary, transfer
from train.study.trainings.blocks import block_variants

TINY = {"rules": tiny.RULES.to_dict(), "iterations": 2}


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


@pytest.fixture(scope="module")
def players(tmp_path_factory) -> list[Path]:
    """Two runs of different weights."""
    folder = tmp_path_factory.mktemp("players")
    return [saved.save_run(folder / str(seed), seeds={1: seed}) for seed in (0, 1)]


def put(player: Path, at: Path) -> None:
    """A copy of a run in place of what is there."""
    shutil.rmtree(at, ignore_errors=True)
    shutil.copytree(player, at)


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
    with pytest.raises(UsageError, match="R-seed0: a training of other settings"):
        train_with(variant(5))
    assert (run / METRICS_FILE).is_file() and len(trained) == 2
    assert train_with(variant(3)) == train_with(variant(3, wandb="elsewhere")) == first
    # The directory now holds another training than the kept piece is of.
    (run / "config.json").write_text(json.dumps(config_to_dict(variant(5).config)))
    with pytest.raises(UsageError, match="other settings"):
        train_with(variant(3))
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


def test_a_warm_start_from_other_weights_is_another_training(
    trained, players, tmp_path, monkeypatch
):
    """Two exports into one path, one after the other."""
    source, case = tmp_path / "source", TransferCase("a", source=str(tmp_path / "source"))
    monkeypatch.setattr(transfer, "round_robin", lambda *given, **settings: [])
    monkeypatch.setattr(transfer, "_curve", lambda work, run: [])
    work = Work(StudyConfig(), Pieces(tmp_path, where="here"), no_task)
    scale = TransferConfig(seeds=1, config=TINY, opening_plies=0)
    base = transfer.base_config(scale, where="study")

    def train_from(seed):
        put(players[seed], source)
        return transfer._case(work, scale, base, case).trained

    assert train_from(0) == train_from(0) and len(trained) == 3
    with pytest.raises(UsageError, match="a-warm-seed0: a training of other settings"):
        train_from(1)
    assert len(trained) == 3


@pytest.mark.parametrize("blocks", [True, False])
def test_a_frozen_player_is_known_by_its_weights(players, tmp_path, blocks):
    """As the victim of an adversary, and as the opponent that a study's config names."""
    player, found = tmp_path / "player", []
    scale = BlocksConfig(config=TINY | {"selfplay": {"opponent": str(player)}}, opening_plies=0)
    for seed in (0, 1, 0):
        put(players[seed], player)
        attacked = adversary._named(str(player), "@2").made_by
        found.append(block_variants(scale, ["R"])[0].made_by if blocks else attacked)
    assert found[0] == found[2] != found[1]
    assert block_variants(BlocksConfig(), ["R"])[0].made_by is None


def test_hours_count_what_was_done_before_an_interruption(trained, tmp_path):
    """The run took two hours before the last start, which its stand-in ends at once."""
    run, pieces = tmp_path / "runs" / "R-seed0", Pieces(tmp_path, where="here")
    run.mkdir(parents=True)
    (run / "config.json").write_text(
        json.dumps(config_to_dict(variants._run_config(variant(3), 0)))
    )
    rows = [{"iteration": n, "elapsed_seconds": 3600.0 * n} for n in (1, 2)]
    (run / METRICS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    train_all(Work(StudyConfig(), pieces, no_task), [variant(3)], seeds=1)
    assert trained and pieces.hours == pytest.approx(2, abs=0.01)


def test_the_difference_of_one_seed_has_no_interval():
    """With seed 0 A wins 3 of 4 against B, and the mean rates are 3/4 and 1/4."""
    gap = difference([Meeting("A", "B", 0, 3, 0, 1)], "A", "B")
    assert gap.mean == 0.5 and math.isnan(gap.low) and math.isnan(gap.high) and gap.seeds == 1
    assert points_range(gap.low, gap.high) == ""
    two = [Meeting("A", "B", seed, 3, 0, 1) for seed in (0, 1)]
    gap = difference(two, "A", "B")
    assert points_range(gap.low, gap.high) == " (+50.0 to +50.0)"
