"""Studies as users run them: scales, kept pieces, folders, bad input."""

import json
import tomllib

import pytest

import train
from tests.support.learner import saved, tiny
from tests.support.learner.commands import command, complaint
from train.programs.selfplay import stage_at
from train.runtime.errors import UsageError
from train.study.frame.budget import Pace
from train.study.frame.pieces import Pieces
from train.study.frame.report import Table
from train.study.scale.reading import StudyConfig, read_scale, scale_from_dict
from train.study.topics import TOPICS
from train.study.trainings import mixed

SMALL = """
seed = 3
[features]
planes = ["B", "BT"]
blocks = ["R"]
seeds = 1
games = 4
simulations = 2
config = {tiny}
[blocks]
blocks = ["R", "W"]
seeds = 1
games = 4
simulations = 2
config = {tiny}
[size]
rules = ["playwallgo-4p"]
random_games = 20
players = ["{run}"]
simulations = 2
strong_games = 6
[balance]
players = ["{run}"]
simulations = [2]
games = 6
opening_depth = 3
[mobility]
player = "{run}"
simulations = 2
games = 6
searched_games = 2
search_simulations = 2
[footing]
player = "{run}"
doublings = [1, 2]
doubling_games = 4
opponents = ["heuristic-search:wjx"]
budgets = ["2"]
games = 4
[transfer]
seeds = 1
games = 4
simulations = 2
opponent = "random"
points = 2
curve_games = 4
config = {tiny}
[[transfer.cases]]
name = "trained"
source_config = {{network = {{planes = "B", width = 8, value_width = 8}}}}
[[transfer.cases]]
name = "named"
source = "{run}"
freeze = []
[padding]
players = ["{run}"]
size = 3
stones = 1
grid = 4
games = 6
simulations = 2
[corridors]
trunks = ["{run}"]
blocks = ["R"]
untrained = ["W"]
questions = 40
held_out = 20
heads = 2
[adversary]
blocks = ["R"]
victim_simulations = 2
seeds = 1
games = 4
simulations = 2
config = {attack}
[mixed]
rules = [
    {{name = "one", rules = {{size = 3, stones = 1, order = [0, 1]}}}},
    {{name = "two", rules = {{size = 3, stones = 1, order = [0, 1], stay_needs_room = true}}}},
]
minutes = 0.02
games = 4
simulations = 2
unseen = {{size = 4, stones = 1, order = [0, 1]}}
opponents = ["random"]
config = {several}
"""


TINY = (
    "{rules = {size = 3, stones = 1, order = [0, 1]}, iterations = 2, "
    "network = {width = 8, value_width = 8, destination_head = false}, search = {simulations = 2}, "
    "selfplay = {boards = 8, plies = 4, cheap_simulations = 1, opening_plies = 0}, "
    "replay = {positions = 64}, learner = {batch = 8, steps = 1}}"
)


ATTACK = TINY.replace("rules = {size = 3, stones = 1, order = [0, 1]}, ", "")
THREE = {"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}
SEVERAL = ATTACK.replace("iterations = 2, ", "")


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
    ("fields", "said"),
    [
        ({"balance": {"gamez": 3}}, "unknown key balance.gamez; known: players"),
        ({"sizes": {}}, "unknown key sizes; known: seed, features, blocks, size"),
        ({"balance": {"games": 1}}, "balance: games (1) must be at least 2"),
        ({"size": {"rules": ["go"]}}, "size: rules has 'go'; known presets: hkoi"),
        ({"footing": {"doublings": [4, 2]}}, "footing: doublings must be two or more rising"),
        ({"footing": {"games": 3}}, "footing: games (3) must be even"),
        ({"mobility": {"simulations": "x"}}, "mobility.simulations: Input should be a valid"),
        ({"features": {"planes": ["B"], "blocks": ["R"]}}, "features: planes and blocks must give"),
        ({"blocks": {"config": {"seed": 1}}}, "blocks: config.seed is set by the study"),
        ({"corridors": {"heads": 1}}, "corridors: heads (1) must be at least 2"),
        ({"corridors": {"trunks": ["a", "a"]}}, "corridors: trunks must each be named once"),
        ({"corridors": {"held_out": 11}}, "corridors: held_out (11) must be even, 10 or more"),
        ({"corridors": {"rules": "wallzero-3p"}}, "corridors: rules is 'wallzero-3p', not one of"),
        ({"features": {"planes": ["B", "B"]}}, "features: planes must be at least one, each said"),
        ({"blocks": {"blocks": ["R", "R"]}}, "blocks: blocks must be at least one, each said once"),
        (
            {"features": {"config": {"network": {"blocks": "R"}}}},
            "features: config.network.blocks is set by the study",
        ),
        ({"footing": {"budgets": []}}, "footing: budgets must be at least one, each said once"),
        ({"footing": {"opponents": []}}, "footing: opponents must be at least one, each said"),
        ({"adversary": {"blocks": ["R", "R"]}}, "adversary: blocks and victims must each be named"),
        ({"adversary": {"config": {"rules": "hkoi"}}}, "adversary: config: rules is set by the"),
        ({"mixed": {"config": {"iterations": 3}}}, "mixed: config.iterations is set by the study"),
        ({"mixed": {"rules": ["hkoi"]}}, "mixed: rules must be at least two rule sets"),
        (
            {"mixed": {"rules": ["hkoi", "playwallgo-3p"]}},
            "mixed: rules: entry 2: is for 3 players",
        ),
        ({"mixed": {"unseen": {"sise": 8}}}, "mixed: rules: unknown key 'sise'"),
        ({"mixed": {"unseen": THREE}}, "mixed: rules and unseen must be for two players"),
        (
            {"mixed": {"opponents": ["wjx"] * 2}},
            "mixed: opponents must be at least one, each",
        ),
        ({"mixed": {"minutes": 0}}, "mixed: minutes (0.0) must be above 0"),
        ({"adversary": {"blocks": []}}, "adversary: name at least one block string or victim"),
        ({"seed": -1}, "seed (-1) must be from 0 to"),
    ],
)
def test_wrong_scales_are_told_in_one_line(fields, said):
    with pytest.raises(UsageError) as error:
        scale_from_dict(fields, where="study s.toml")
    assert str(error.value).startswith(f"study s.toml: {said}")
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
    ("topic", "fields", "said"),
    [
        (
            "features",
            {"config": {"rules": "playwallgo-3p"}},
            "study features: config: rules must be for two players, who meet in matches",
        ),
        (
            "blocks",
            {"opening_plies": 500},
            "study blocks: config: match: opening_plies (500) must be below",
        ),
        ("transfer", {"opponent": "nobody"}, "player 'nobody'"),
        (
            "transfer",
            {"cases": [{"name": "a"}, {"name": "b", "source": "pretrained:nobody"}]},
            "study transfer: b: source: pretrained model 'nobody': unknown",
        ),
        (
            "transfer",
            {"cases": [{"name": "a", "freeze": ["nose=1"]}]},
            "study transfer: a: learner.freeze: no group 'nose'; this network has: trunk",
        ),
        (
            "transfer",
            {"cases": [{"name": "a", "source_config": {"rules": "playwallgo-3p"}}]},
            "study transfer: a: rules must be for two players",
        ),
        ("footing", {"budgets": ["2", "0s"]}, "player 'pretrained:wallzero-4stone@0s'"),
        ("footing", {"opening_plies": 500}, "match: opening_plies (500) must be below"),
    ],
)
def test_what_no_match_can_have_is_told_before_anything_is_trained(topic, fields, said, tmp_path):
    with pytest.raises(UsageError) as error:
        train.run_study(topic, {topic: fields}, out=tmp_path)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupted_topic_goes_on_from_python_too(tmp_path, monkeypatch):
    run = saved.save_run(tmp_path / "run", seeds={1: 0})
    text = SMALL.format(run=run, tiny=TINY, attack=ATTACK, several=SEVERAL)
    scale = {"footing": tomllib.loads(text)["footing"]}
    keep, made = Pieces.keep, []

    def interrupted(pieces, name, settings, make):
        if len(made) == 1:
            raise KeyboardInterrupt
        made.append(name)
        return keep(pieces, name, settings, make)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Pieces, "keep", interrupted)
        train.run_study("footing", scale, out=tmp_path / "out")
    (first,) = (tmp_path / "out" / "pieces").iterdir()
    before = first.stat().st_mtime_ns
    report = train.run_study("footing", scale, out=tmp_path / "out")
    assert first.stat().st_mtime_ns == before
    again = train.run_study("footing", scale, out=tmp_path / "new")
    assert report.data == again.data
    result = json.loads((tmp_path / "out" / "footing" / "result.json").read_text())
    assert result["made"]["scale"]["seed"] == 0
    assert result["made"]["scale"]["footing"]["doublings"] == [1, 2]
    assert result["made"]["command"].startswith("train.run_study('footing', {'footing': {")


def half_a_second(config, *others):
    """Stands for `measure_pace` and `measure_pace_beside`."""
    stages = {stage_at(config, iteration) for iteration in range(config.iterations)}
    return Pace(dict.fromkeys(stages, 0.5), compile_seconds=0.0, iterations=1)


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_a_small_version_writes_its_folder_and_is_reused(topic, tmp_path, monkeypatch):
    # Iterations are timed in tests of their own.
    monkeypatch.setattr(mixed, "measure_pace", half_a_second)
    monkeypatch.setattr(mixed, "measure_pace_beside", half_a_second)
    run = saved.save_run(tmp_path / "run", seeds={1: 0})
    scale = tmp_path / "small.toml"
    scale.write_text(SMALL.format(run=run, tiny=TINY, attack=ATTACK, several=SEVERAL))
    words = ["study", topic, "--config", scale, "--out", tmp_path / "out"]
    first = command(*words)
    assert first.code == 0, first.err
    folder = tmp_path / "out" / topic
    result = json.loads((folder / "result.json").read_text())
    page = (folder / "README.md").read_text()
    assert result["made"]["command"] in page and "python -m train study" in page
    assert result["made"]["hours"] >= 0 and result["made"]["machines"]
    for picture in folder.glob("*.svg"):
        assert f"({picture.name})" in page and picture.with_suffix(".png").is_file()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pieces").iterdir()}
    second = command(*words)
    assert second.code == 0 and first.out.endswith(second.out)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_players_of_a_study_are_networks_without_simulations(tmp_path):
    scale = tmp_path / "s.toml"
    for player, said in (("random", "has no network"), ("pretrained:wallzero-4stone@4", "without")):
        scale.write_text(f'[balance]\nplayers = ["{player}"]\n')
        words = ["study", "balance", "--config", scale, "--out", tmp_path / "out"]
        assert said in complaint(command(*words))
    for victim, said in (("pretrained:wallzero-4stone@4", "without"), ("net:a", "that searches")):
        scale.write_text(f'[adversary]\nblocks = []\nvictims = ["{victim}"]\n')
        words = ["study", "adversary", "--config", scale, "--out", tmp_path / "out"]
        assert said in complaint(command(*words))
