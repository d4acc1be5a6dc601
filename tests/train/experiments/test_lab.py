"""Results are kept by what decides them; trainings go on where they were interrupted."""

import dataclasses
import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support.import_graph import ROOT, read_modules
from tests.support.learner import saved, tiny
from train.config import RunConfig
from train.experiments import lab
from train.runtime import files

PUBLIC = ("considered", "doublings", "features")
"""Experiments that take names of the public interface alone, and of their own folder."""


def work_in(folder) -> lab.Lab:
    return lab.Lab("name", lab.Options(folder))


def test_a_result_is_found_by_its_whole_key(tmp_path):
    made = []

    def make(value):
        made.append(value)
        return {"value": value}

    work = work_in(tmp_path)
    for key in ({"a": 1}, {"a": 1, "b": (2,)}, {"a": 1}, {"b": [2], "a": 1}):
        assert work.keep("kind", key, lambda key=key: make(len(key))) == {"value": len(key)}
    assert made == [1, 2]
    assert work_in(tmp_path).find("kind", {"a": 1}) == {"value": 1}
    assert work_in(tmp_path).find("other", {"a": 1}) is None
    # A process that was killed leaves a part of a line.
    with (tmp_path / "kind.jsonl").open("a") as file:
        file.write('{"key": {"a": 3}, "res')
    assert work.keep("kind", {"a": 3}, lambda: make(3)) == {"value": 3}
    assert work_in(tmp_path).find("kind", {"a": 3}) == {"value": 3}


def test_a_full_disk_costs_no_result(tmp_path, monkeypatch):
    def fail(path, line):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(files, "append_line", fail)
    assert work_in(tmp_path).keep("kind", {}, lambda: 1) == 1
    assert files.read_json_lines(tmp_path / "kind.jsonl") == []


@pytest.fixture
def trained(monkeypatch):
    """Names of the runs that were begun and resumed; a run that is stopped leaves its weights."""
    done = SimpleNamespace(started=[], resumed=[], stops=False)

    def finish(folder):
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        (folder / "resume").mkdir(exist_ok=True)
        if done.stops:
            raise KeyboardInterrupt
        return []

    def going(folder):
        row = {"selfplay_seconds": 60.0, "learn_seconds": 60.0, "games": 3, "positions": 4}
        row |= {"iteration": 1, "full_search_share": 0.5}
        return SimpleNamespace(rows=[row], finish=lambda: finish(folder))

    def start(config, *, runs, progress):
        assert not (runs / config.name).exists()
        done.started.append(config.name)
        return going(runs / config.name)

    def resume(run, *, progress):
        done.resumed.append(run.name)
        return going(run)

    monkeypatch.setattr(lab.train, "start", start, raising=False)
    monkeypatch.setattr(lab.train, "resume", resume, raising=False)
    return done


def test_an_interrupted_training_goes_on(trained, tmp_path):
    work = work_in(tmp_path)
    trained.stops = True
    with pytest.raises(KeyboardInterrupt):
        work.train("a", RunConfig())
    trained.stops = False
    found = work.train("a", RunConfig())
    assert trained.started == trained.resumed and found["minutes"] == 2.0
    assert found["run"] == str(tmp_path / "runs" / trained.started[0])
    assert not (tmp_path / "runs" / trained.started[0] / "resume").exists()  # its replay
    assert work.train("a", dataclasses.replace(RunConfig(), name="elsewhere")) == found
    assert len(trained.started + trained.resumed) == 2


def test_a_training_that_left_no_weights_begins_anew(trained, tmp_path):
    work = work_in(tmp_path)
    work.train("a", RunConfig())
    run = tmp_path / "runs" / trained.started[0]
    (run / "checkpoints").rmdir()
    (run / "resume").mkdir()
    (tmp_path / "trainings.jsonl").unlink()
    work.train("a", RunConfig())
    assert len(trained.started) == 2 and not trained.resumed


def test_other_settings_and_other_weights_are_another_training(trained, tmp_path):
    work, source = work_in(tmp_path), tmp_path / "source"
    work.train("a", dataclasses.replace(RunConfig(), iterations=3))
    work.train("a", dataclasses.replace(RunConfig(), iterations=5))
    for seed in (0, 1):
        saved.save_run(tmp_path / str(seed), seeds={1: seed})
    for seed in (0, 1, 0):
        source.unlink(missing_ok=True)
        source.symlink_to(tmp_path / str(seed))
        work.train("a", dataclasses.replace(tiny.config(), init_from=str(source)))
    assert len(trained.started) == len({*trained.started}) == 4


def test_matches_are_known_by_the_players_weights(tmp_path):
    work = work_in(tmp_path)
    counts = work.match("random", "greedy", rules=tiny.RULES, games=4, seed=1, opening_plies=0)
    assert counts["won"] + counts["drawn"] + counts["lost"] == 4
    again = work.match("random", "greedy", rules=tiny.RULES, games=4, seed=1, opening_plies=0)
    assert again == counts and len(files.read_json_lines(tmp_path / "matches.jsonl")) == 1
    work.match("random", "greedy", rules=tiny.RULES, games=4, seed=2, opening_plies=0)
    assert len(files.read_json_lines(tmp_path / "matches.jsonl")) == 2


def test_scripts_use_the_public_interface():
    allowed = ("train", "train.experiments", "train.metrics.intervals", "wallgo_jax")
    texts = read_modules()
    for name in PUBLIC:
        lines = texts[f"train/experiments/{name}.py"].splitlines()
        imported = [line.split()[1] for line in lines if line.startswith(("from ", "import "))]
        for module in imported:
            if module.startswith(("train", "wallgo_jax")):
                is_own = module.startswith("train.experiments.")
                assert is_own or module in allowed, f"{name} imports {module}"


def test_a_script_refuses_in_a_line(tmp_path):
    words = ["-m", "train.experiments.doublings", "--player", "random", "--out", tmp_path / "out"]
    said = subprocess.run(
        [sys.executable, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2 and said.stderr.startswith("error: ")
    assert said.stderr.count("\n") == 1 and "network" in said.stderr
