"""Trainings of an experiment: which directories they may use, and what they are known by."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.learner import saved, tiny
from train.config import RunConfig, config_to_dict
from train.experiments import transfer
from train.experiments.blocks import block_variants
from train.experiments.lib import trainings
from train.experiments.lib.scales import Scales, TransferCase, read_scales
from train.experiments.lib.trainings import Variant, train_all
from train.experiments.lib.work import Work
from train.metrics.rows import METRICS_FILE
from train.runtime.errors import UsageError

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

    monkeypatch.setattr(trainings.training, "train", train)
    return found


@pytest.fixture(scope="module")
def players(tmp_path_factory) -> list[Path]:
    """Two runs of different weights."""
    folder = tmp_path_factory.mktemp("players")
    return [saved.save_run(folder / str(seed), seeds={1: seed}) for seed in (0, 1)]


def work_in(folder: Path, scale: Scales | None = None) -> Work:
    return Work(scale or read_scales(), folder)


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
        return train_all(work_in(tmp_path), given, seeds=2)

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


def test_a_training_against_another_victim_is_another(trained, tmp_path):
    """Its config names the victim's directory alone, which may hold other weights than before."""

    def train_against(victim):
        attack = variant(3)._replace(name="attack", made_by={"victim": victim})
        return train_all(work_in(tmp_path), [attack], seeds=1)["attack"]

    assert train_against((1,)) == train_against((1,)) != train_against((2,))
    assert len(trained) == 2 == len({*trained})
    assert all(re.fullmatch("attack-[0-9a-f]{6}-seed0", name) for name, _ in trained)


def test_a_warm_start_from_other_weights_is_another_training(
    trained, players, tmp_path, monkeypatch
):
    """Two exports into one path, one after the other."""
    source, case = tmp_path / "source", TransferCase(name="a", source=str(tmp_path / "source"))
    monkeypatch.setattr(trainings, "round_robin", lambda *given, **settings: [])
    monkeypatch.setattr(transfer, "_curve", lambda work, run: [])
    scale = {"seeds": 1, "config": TINY, "opening_plies": 0}
    work = work_in(tmp_path, read_scales({"transfer": scale}))
    base = trainings.base_config(work.scale.transfer, where="transfer")

    def train_from(seed):
        put(players[seed], source)
        return transfer.train_case(work, base, case).trained

    assert train_from(0) == train_from(0) and len(trained) == 3
    train_from(1)  # the one from nothing is the same
    assert len(trained) == 5


def test_a_frozen_opponent_is_known_by_its_weights(players, tmp_path):
    player, found = tmp_path / "player", []
    config = TINY | {"selfplay": {"opponent": str(player)}}
    scale = read_scales({"blocks": {"config": config, "opening_plies": 0}}).blocks
    for seed in (0, 1, 0):
        put(players[seed], player)
        found.append(block_variants(scale, ["R"])[0].made_by)
    assert found[0] == found[2] != found[1]
    assert block_variants(read_scales().blocks, ["R"])[0].made_by is None


def test_hours_count_what_was_done_before_an_interruption(trained, tmp_path):
    """The run took two hours before the last start, which its stand-in ends at once."""
    run, work = tmp_path / "runs" / "R-seed0", work_in(tmp_path)
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps(config_to_dict(variant(3).run_config(0))))
    rows = [{"iteration": n, "elapsed_seconds": 3600.0 * n} for n in (1, 2)]
    (run / METRICS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    train_all(work, [variant(3)], seeds=1)
    assert trained and work.hours == pytest.approx(2, abs=0.01)
