"""Experiments as users run them: scales, cached results, folders, bad input, and a smoke test that
goes through all of them."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import train
from tests.support.learner import tiny
from tests.support.learner.commands import command
from train.experiments import catalogue, mixed
from train.experiments.catalogue import EXPERIMENTS
from train.experiments.lib import trainings
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.scales import read_scales
from train.experiments.lib.stats import Estimate, MatchCounts
from train.experiments.lib.trainings import Trained
from train.experiments.lib.work import Work
from train.metrics.intervals import Curve, curves_figure
from train.runtime import files
from train.runtime.display import Table
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS

ROOT = Path(__file__).parents[3]
THREE = {"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}
CONFIG = {
    "rules": tiny.RULES.to_dict(),
    "network": {"width": 8, "value_width": 8},
    "iterations": 2,
    "search": {"simulations": 2, "max_considered_actions": 2},
    "selfplay": {"boards": 8, "plies": 4},
    "replay": {"positions": 256},
    "learner": {"batch": 8, "steps": 1},
}
SHIPPED, OF_THREE = "pretrained:wallzero-4stone", {"rules": "playwallgo-3p"}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"balance": {"gamez": 3}}, "gamez"),
        ({"size": {"rules": ["go"]}}, "go"),
        ({"footing": {"doublings": [4, 2]}}, "rising"),
        ({"features": {"config": {"network": {"blocks": "R"}}}}, "set"),
        ({"transfer": {"cases": [{"name": "a"}, {"name": "a"}]}}, "once"),
        ({"mixed": {"unseen": THREE}}, "unseen"),
        ({"ppo": {"changes": {"learner": {"value_mix": 0.5}}}}, "value_mix"),
    ],
)
def test_wrong_scales_are_refused_in_one_line(fields, word):
    with pytest.raises(UsageError, match=word) as error:
        read_scales(fields)
    assert str(error.value).startswith("scale: ")
    assert "\n" not in str(error.value)


def test_scales_change_keys_of_that_of_a_cpu():
    cpu = read_scales()
    assert cpu == read_scales(ROOT / "configs/study/cpu.toml")
    large = read_scales(ROOT / "configs/study/accelerator.toml")
    assert (large.size.rules, large.size.random_games) == (cpu.size.rules, 1_000_000)


@pytest.mark.parametrize(
    ("name", "fields", "word"),
    [
        ("features", {"config": OF_THREE}, "two players"),
        ("blocks", {"opening_plies": 500}, "opening_plies"),
        ("transfer", {"cases": [{"name": "b", "source": "pretrained:nobody"}]}, "nobody"),
        ("transfer", {"cases": [{"name": "a", "freeze": ["nose=1"]}]}, "nose"),
        ("ppo", {"changes": {"learner": {"batch": 9000}}}, "batch"),
        ("transfer", {"cases": [{"name": "a", "source_config": OF_THREE}]}, "two players"),
        ("balance", {"players": ["random"]}, "network"),
        ("setups", {"beam": [0]}, "3 turns: beam needs 2 numbers, frontier 3"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(name, fields, word, tmp_path):
    with pytest.raises(UsageError, match=word) as error:
        train.run_study(name, {name: fields}, out=tmp_path)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def made(monkeypatch) -> list[int]:
    """The experiment `size` makes two pieces in place of its usual ones; returns the numbers of
    those made. A 0 in them interrupts it once, before the second."""
    numbers = []

    def report(work) -> Report:
        def make(number: int) -> int:
            if number == 2 and numbers.count(0):
                numbers.remove(0)
                raise KeyboardInterrupt
            numbers.append(number)
            return number

        pieces = [work.cached("part", {"n": n}, lambda n=n: make(n)) for n in (1, 2)]
        curve = Curve("a", dict.fromkeys((1, 2), Estimate(0.5, 0.4, 0.6, 2)))
        figure = curves_figure([curve], title="T", x_label="x", y_label="y")
        table = Table("T", ("one", "two"), (("`a`", "b"),))
        pictures = [Picture("plot", "what it shows", figure)]
        return Report("Title", [table], {"pieces": pieces}, pictures=pictures)

    monkeypatch.setattr(catalogue, "EXPERIMENTS", EXPERIMENTS | {"size": report})
    return numbers


def test_an_experiment_writes_its_folder_and_is_reused(made, tmp_path):
    words = ["experiment", "size", "--out", tmp_path / "out"]
    first = command(*words)
    assert (first.code, first.err) == (0, "")
    folder = tmp_path / "out" / "size"
    result = json.loads((folder / "result.json").read_text())
    page = (folder / "README.md").read_text()
    assert result["made"]["command"] in page and "python -m train experiment size" in page
    assert result["made"]["hours"] >= 0 and result["made"]["machines"]
    assert "(plot.svg)" in page and (folder / "plot.svg").is_file() and "| `a` | b |" in page
    assert (folder / "plot.png").is_file()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pieces").iterdir()}
    second = command(*words)
    assert (second.code, second.err) == (0, "") and first.out.endswith(second.out)
    assert kept == {path: path.stat().st_mtime_ns for path in kept} and made == [1, 2]


def test_a_full_disk_costs_no_report(made, tmp_path, monkeypatch):
    def fail(path, content):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(files, "write_whole", fail)
    said = command("experiment", "size", "--out", tmp_path / "out")
    assert (said.code, made) == (2, [1, 2])
    assert "one" in said.out and "written" not in said.out
    lost = [line.partition(": cannot be written: No space")[0] for line in said.err.splitlines()]
    names = [Path(path).name.partition("-")[0] for path in lost]
    assert names == ["part", "part", "plot.svg", "README.md", "result.json"]


def test_an_interrupted_experiment_goes_on_from_python_too(made, tmp_path):
    scale = {"seed": 3}
    made.append(0)
    with pytest.raises(KeyboardInterrupt):
        train.run_study("size", scale, out=tmp_path / "out")
    assert made == [1]
    report = train.run_study("size", scale, out=tmp_path / "out")
    assert made == [1, 2] and report.data == {"pieces": [1, 2]}
    result = json.loads((tmp_path / "out" / "size" / "result.json").read_text())
    assert result["made"]["scale"]["seed"] == 3
    assert result["made"]["command"].startswith("train.run_study('size', {'seed': 3}")


def test_a_specialists_targets_look_as_far_ahead_as_its_games_allow():
    words = ["--rules", "wallzero-4stone", "--learner.value_mix", "0.5", "--learner.td_steps", "20"]
    base, long = tiny.config(*words), PRESETS["wallzero-4stone"]
    steps = [mixed.specialist_config(base, rules).learner.td_steps for rules in (tiny.RULES, long)]
    # Two placements, and at most a wall on each of the twelve inner edges of 3x3.
    assert steps == [13, 20]


TRAININGS = {"seeds": 1, "games": 2, "simulations": 2, "opening_plies": 0, "config": CONFIG}
SMALL = {
    "features": TRAININGS | {"planes": ["B", "BT", "BTR", "BTRH", "BTRD"], "blocks": ["R", "W"]},
    "blocks": TRAININGS | {"blocks": ["R", "W"]},
    "size": {"rules": ["hkoi"], "random_games": 4, "players": [SHIPPED], "strong_games": 2}
    | {"simulations": 1},
    "balance": {"players": [SHIPPED], "simulations": [1], "games": 4},
    "mobility": {"simulations": 1, "games": 2, "searched_games": 2, "search_simulations": 2},
    "footing": {
        "doublings": [1, 2],
        "doubling_games": 2,
        "considering": [SHIPPED],
        "considered": [2],
        "considered_simulations": [2],
        "considered_games": 2,
    },
    "transfer": TRAININGS | {"cases": [{"name": "case"}], "opponent": "random", "curve_games": 2},
    "mixed": TRAININGS | {"config": {"network": CONFIG["network"]}, "minutes": 0.01},
    "ppo": TRAININGS
    | {
        "variants": [{"name": "pool", "pool_every": 1, "config": {"selfplay": {"plies": 5}}}],
        "changes": {"selfplay": {"full_search_prob": 1.0}},
        "iterations": 3,
    },
    "setups": {
        "players": [SHIPPED, f"{SHIPPED}-v1"],
        "beam": [1, 2],
        "frontier": [1, 1, 1],
        "simulations": 2,
        "lines": 1,
        "games": 2,
        "book": 1,
        "book_games": 2,
        "game_simulations": 1,
    },
    "exact": {"boards": [tiny.RULES.to_dict()]},
}


def test_plane_sets_meet_all_others(monkeypatch, tmp_path):
    """Stand-ins: trainings of a minute, and matches that the first wins with 3 of 4 games."""
    trained = Trained("run", 2, 60.0, 1.0, 3, 4, [])
    meeting = lambda work, pair, runs, seed, scale, **how: MatchCounts(  # noqa: E731
        pair[0].name, pair[1].name, seed, 3, 0, 1
    )
    monkeypatch.setattr(trainings, "meet", meeting)
    monkeypatch.setattr(
        trainings, "train_all", lambda work, them, *, seeds: {v.name: [trained] * 3 for v in them}
    )
    work = Work(read_scales({"features": SMALL["features"] | {"seeds": 3}}), tmp_path)
    residual, walled, both = EXPERIMENTS["features"](work).tables
    for table in (residual, walled):
        assert [row[1] for row in table.rows] == ["75.0 %", "62.5 %", "50.0 %", "37.5 %", "25.0 %"]
        assert [row[3][:5] for row in table.rows] == ["", "-12.5", "-12.5", "-12.5", "-12.5"]
    assert both.rows[0][2] == "75.0 %" and both.rows[-1][2] == "25.0 %"


# `features` and `mixed` train many networks; test_supervised has `supervised`.
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*EXPERIMENTS} - {"features", "mixed", "supervised"}))
def test_every_experiment_goes_through(name, tmp_path):
    """Trains, plays, measures and prints at the smallest scale; what is finished is reused."""
    scale = {name: SMALL[name], "blocks": SMALL["blocks"]}
    first = train.run_study(name, scale, out=tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "pieces").iterdir()}
    again = train.run_study(name, scale, out=tmp_path)
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "pieces").iterdir()}
    pages = [[table.rows for table in report.tables] for report in (first, again)]
    np.testing.assert_equal(*pages)
    console = Console(width=200, record=True)
    console.print(first)
    assert first.tables[0].title in console.export_text()
    result = json.loads((tmp_path / name / "result.json").read_text())
    assert result["data"] and result["title"] == first.title
    for picture in first.pictures:
        assert (tmp_path / name / f"{picture.name}.svg").is_file()
