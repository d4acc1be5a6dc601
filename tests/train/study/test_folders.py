"""Studies as users run them: scales, kept pieces, folders, bad input."""

import json

import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.api import measures
from train.metrics.intervals import Interval, intervals_figure
from train.runtime.errors import UsageError
from train.study import study as study_lib
from train.study.frame.pieces import Pieces
from train.study.frame.report import Picture, Report, Table
from train.study.scale.reading import StudyConfig, read_scale, scale_from_dict
from train.study.topics import TOPICS

THREE = {"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}


def test_a_kept_piece_is_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return {"n": len(made)}

    first = Pieces(tmp_path, where="here").keep("x", {"games": 1}, make)
    assert first == Pieces(tmp_path, where="here").keep("x", {"games": 1}, make) == {"n": 1}
    assert Pieces(tmp_path, where="here").keep("x", {"games": 2}, make) == {"n": 2}
    damaged = next(iter((tmp_path / "pieces").glob("x-*.json")))
    damaged.write_text("{")
    pieces = Pieces(tmp_path, where="here")
    with pytest.raises(UsageError, match="not a piece of a study; remove the file"):
        [pieces.keep("x", {"games": games}, make) for games in (1, 2)]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"balance": {"gamez": 3}}, "gamez"),
        ({"sizes": {}}, "sizes"),
        ({"balance": {"games": 1}}, "games"),
        ({"size": {"rules": ["go"]}}, "go"),
        ({"footing": {"doublings": [4, 2]}}, "rising"),
        ({"footing": {"games": 3}}, "even"),
        ({"footing": {"budgets": []}}, "budgets"),
        ({"mobility": {"simulations": "x"}}, "simulations"),
        ({"features": {"planes": ["B"], "blocks": ["R"]}}, "blocks"),
        ({"features": {"planes": ["B", "B"]}}, "planes"),
        ({"features": {"config": {"network": {"blocks": "R"}}}}, "set"),
        ({"blocks": {"config": {"seed": 1}}}, "seed"),
        ({"corridors": {"heads": 1}}, "heads"),
        ({"corridors": {"held_out": 11}}, "held_out"),
        ({"corridors": {"rules": "wallzero-3p"}}, "wallzero-3p"),
        ({"adversary": {"blocks": []}}, "block"),
        ({"adversary": {"config": {"rules": "hkoi"}}}, "rules"),
        ({"mixed": {"config": {"iterations": 3}}}, "iterations"),
        ({"mixed": {"rules": ["hkoi"]}}, "two"),
        ({"mixed": {"rules": ["hkoi", "playwallgo-3p"]}}, "entry 2"),
        ({"mixed": {"unseen": THREE}}, "unseen"),
        ({"mixed": {"minutes": 0}}, "minutes"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_scales_are_told_in_one_line(fields, word):
    with pytest.raises(UsageError, match=word) as error:
        scale_from_dict(fields, where="study s.toml")
    assert str(error.value).startswith("study s.toml: ")
    assert "\n" not in str(error.value)


def test_the_default_scale_is_that_of_the_config(tmp_path):
    assert read_scale(None) == read_scale(tiny.PATH.parents[3] / "configs/study/cpu.toml")
    assert read_scale(tiny.PATH.parents[3] / "configs/study/accelerator.toml") != StudyConfig()
    (tmp_path / "bad.toml").write_text("x = [")
    with pytest.raises(UsageError, match=r"bad.toml: not TOML: "):
        read_scale(tmp_path / "bad.toml")
    with pytest.raises(UsageError, match="no such file"):
        read_scale(tmp_path / "none.toml")


def test_a_table_that_is_too_wide_becomes_blocks():
    table = Table("T", ("one", "two"), (("`a`", "b" * 30),))
    assert table.lines(80) == ["T", "one  two", f"a    {'b' * 30}", ""]
    assert table.lines(20) == ["T", "  one  a", f"  two  {'b' * 30}", ""]
    assert "| `a` |" in table.markdown()


@pytest.mark.parametrize(
    ("topic", "fields", "word"),
    [
        ("features", {"config": {"rules": "playwallgo-3p"}}, "two players"),
        ("blocks", {"opening_plies": 500}, "opening_plies"),
        ("transfer", {"opponent": "nobody"}, "nobody"),
        ("transfer", {"cases": [{"name": "b", "source": "pretrained:nobody"}]}, "nobody"),
        ("transfer", {"cases": [{"name": "a", "freeze": ["nose=1"]}]}, "nose"),
        (
            "transfer",
            {"cases": [{"name": "a", "source_config": {"rules": "playwallgo-3p"}}]},
            "two players",
        ),
        ("footing", {"budgets": ["2", "0s"]}, "0s"),
        ("footing", {"opening_plies": 500}, "opening_plies"),
    ],
)
def test_what_no_match_can_have_is_told_before_anything_is_trained(topic, fields, word, tmp_path):
    with pytest.raises(UsageError, match=word) as error:
        train.run_study(topic, {topic: fields}, out=tmp_path)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def made(monkeypatch) -> list[int]:
    """The topic `size` makes two pieces in place of its own; returns the numbers of those made.
    A 0 in them interrupts it once, before the second."""
    found = []

    def report(work) -> Report:
        def make(number: int) -> int:
            if number == 2 and found.count(0):
                found.remove(0)
                raise KeyboardInterrupt
            found.append(number)
            return number

        pieces = [
            work.pieces.keep("part", {"number": number}, lambda number=number: make(number))
            for number in (1, 2)
        ]
        figure = intervals_figure([Interval("a", 0.5, 0.4, 0.6)], title="T", x_label="x")
        table = Table("T", ("one", "two"), (("a", "b"),))
        pictures = [Picture("plot", "what it shows", figure)]
        return Report("Title", ["Text."], [table], pictures, {"pieces": pieces})

    monkeypatch.setattr(measures, "TOPICS", TOPICS | {"size": report})
    monkeypatch.setattr(study_lib, "TOPICS", TOPICS | {"size": report})
    return found


def test_a_topic_writes_its_folder_and_is_reused(made, tmp_path):
    words = ["study", "size", "--out", tmp_path / "out"]
    first = command(*words)
    assert (first.code, first.err) == (0, "")
    folder = tmp_path / "out" / "size"
    result = json.loads((folder / "result.json").read_text())
    page = (folder / "README.md").read_text()
    assert result["made"]["command"] in page and "python -m train study" in page
    assert result["made"]["hours"] >= 0 and result["made"]["machines"]
    assert "(plot.svg)" in page and (folder / "plot.svg").is_file()
    assert (folder / "plot.png").is_file()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pieces").iterdir()}
    second = command(*words)
    assert second.code == 0 and first.out.endswith(second.out)
    assert kept == {path: path.stat().st_mtime_ns for path in kept} and made == [1, 2]


def test_an_interrupted_topic_goes_on_from_python_too(made, tmp_path):
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


def test_players_of_a_study_are_networks_without_simulations(tmp_path):
    scale, shipped = tmp_path / "s.toml", "pretrained:wallzero-4stone"
    for topic, text, word in (
        ("balance", 'players = ["random"]', "network"),
        ("balance", f'players = ["{shipped}@4"]', "without"),
        ("adversary", f'blocks = []\nvictims = ["{shipped}@4"]', "without"),
        ("adversary", 'blocks = []\nvictims = ["net:a"]', "searches"),
        ("corridors", 'blocks = []\ntrunks = ["random"]', "network"),
        ("corridors", f'blocks = []\ntrunks = ["{shipped}@4"]', "without"),
        ("corridors", 'blocks = []\ntrunks = ["nowhere"]', "nowhere"),
    ):
        scale.write_text(f"[{topic}]\n{text}\n")
        words = ["study", topic, "--config", scale, "--out", tmp_path / "out"]
        assert word in complaint(command(*words))
