"""Ablations: lists of changes, what is done, in which order, what is left after an interruption.

Training and matches are stood in for.
"""

import json
import shutil
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.support.import_graph import ROOT
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.config import CONFIG_FILE, read_config
from train.experiments import ablation as ablation_lib
from train.experiments.ablation import Ablation, AblationOptions, read_changes
from train.experiments.lib import trainings
from train.experiments.lib import work as work_lib
from train.experiments.lib.scales import read_scales
from train.experiments.lib.work import Work
from train.experiments.pace import Pace
from train.loop.run_directory import STARTS_FILE
from train.loop.stages import simulations_of
from train.runtime.errors import NotFiniteError, UsageError

LIST = f"""
[base]
config = "{tiny.PATH}"
[[change]]
name = "wide"
network.width = 16
[[change]]
name = "wider"
against = "wide"
network.width = 24
"""
OPTIONS = AblationOptions(minutes=0.5, seeds=2, games=8, simulations=2, opening_plies=(0, 1))


@pytest.fixture
def path(tmp_path):
    (tmp_path / "list.toml").write_text(LIST)
    return tmp_path / "list.toml"


@pytest.fixture
def calls(monkeypatch):
    """Stand-ins: 10 s an iteration; wide wins 3 of 4 games, wider none. Returns what they did."""
    done = SimpleNamespace(trained=[], matches=[], timed=[], stops_at="", diverges="?")

    def pace(config, base=None, base_seconds=None, *, on_progress):
        if base is not None:
            assert (base.network.width, base_seconds) == (8, {simulations_of(base, 0): 10.0})
        done.timed.append(config.network.width)
        return Pace({simulations_of(config, 0): 10.0}, 1.0, 3)

    def train(config, runs, *, resume):
        done.trained.append((config.network.width, config.seed, config.iterations, resume))
        run = runs / config.name
        assert resume == (run / CONFIG_FILE).exists() == run.exists()
        if config.name.startswith(done.diverges):
            raise NotFiniteError("step 3: the loss is NaN")
        (run / "resume").mkdir(parents=True, exist_ok=True)
        (run / CONFIG_FILE).write_text("{}")
        start = {"versions": {"wallgo-jax": "0.1.0"}, "git": None}
        (run / STARTS_FILE).write_text(json.dumps({"starts": [start, start]}))
        if config.name.startswith(done.stops_at or "?"):
            return False
        row = {"iteration": 1, "selfplay_seconds": 20.0, "learn_seconds": 9.0}
        row |= {"compile_seconds": 4.0, "games": 5.0, "positions": 40.0}
        (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        (run / "checkpoints" / "3").mkdir(parents=True)
        return True

    def play_match(players, rules, how, *, key, on_progress):
        first, second = (player.name for player in players)
        key = tuple(np.asarray(jax.random.key_data(key)).tolist())
        done.matches.append((first, second, how.games, how.opening.plies, key))
        wins = 3 if "/wide-" in first else 0
        return SimpleNamespace(wins=wins, draws=0, losses=4 - wins, distinct_games=4)

    monkeypatch.setattr(ablation_lib, "_forget_programs", lambda: None)
    monkeypatch.setattr(ablation_lib.pace, "measure_pace", pace)
    monkeypatch.setattr(trainings.training, "train", train)
    monkeypatch.setattr(work_lib, "play_match", play_match)
    make_player = lambda name, rules: SimpleNamespace(name=name)  # noqa: E731
    monkeypatch.setattr(ablation_lib, "make_player", make_player)
    return done


class _Unchecked(Ablation):
    def _check(self, change):
        """What trainings start with is tried by the commands below."""


def run(path, options=OPTIONS) -> bool:
    """Whether all was done."""
    work = Work(read_scales(), path.parent / "out")
    study = _Unchecked(read_changes(path), options, work, "list", "command", lambda text: None)
    try:
        study.run()
    except KeyboardInterrupt:
        return False
    return True


def page_of(path) -> str:
    return (path.parent / "out" / "README.md").read_text()


def line_of(path, name: str) -> list[str]:
    """Cells of a change in the table: name, against, rate, interval, verdict, by seed, ..."""
    (row,) = (line for line in page_of(path).splitlines() if line.startswith(f"| {name} |"))
    return row.strip("| ").split(" | ")


def pieces(path, name: str) -> dict:
    """The finished pieces whose names begin so, by what decides them."""
    files = sorted((path.parent / "out" / "pieces").glob(f"{name}-*.json"))
    found = [json.loads(file.read_text()) for file in files]
    return {piece["settings"]["change"]: piece["result"] for piece in found}


def forget(calls) -> None:
    for done in (calls.trained, calls.matches, calls.timed):
        done.clear()


def test_every_seed_is_paired(path, calls):
    assert run(path)
    assert calls.timed == [8, 16, 24]  # once a change, not once a seed
    assert calls.trained == [(w, s, 3, False) for s in (0, 1) for w in (8, 16, 24)]
    assert len(calls.matches) == 8
    for first, second, games, _, _ in calls.matches:
        assert games == 4 and first[-8:] == second[-8:] and "seed" in first[-8:]
    assert ["/base-" in second for _, second, *_ in calls.matches] == [1, 1, 0, 0] * 2
    # Matches of a seed share openings, other seeds and numbers of plies have others.
    keys = {(first[-8:-2], plies, key) for first, _, _, plies, key in calls.matches}
    assert len(keys) == len({key for *_, key in keys}) == 4


def test_changes_of_equal_time_are_timed_once(path, calls):
    path.write_text(
        LIST
        + """
[[change]]
name = "slower"
learner.learning_rate = 1e-4
[[change]]
name = "wide-mixed"
network.width = 16
learner.value_mix = 0.5
"""
    )
    assert run(path)
    assert calls.timed == [8, 16, 24]
    rows = pieces(path, "budget")
    assert (rows["slower"]["timed_as"], rows["wide-mixed"]["timed_as"]) == ("base", "wide")
    assert all(row["iterations"] == 3 for row in rows.values()) and len(rows) == 5
    assert "timed_as" not in rows["wide"]


def test_seeds_of_several_machines_are_put_together(path, calls):
    """The pieces of both in one folder; their budgets may differ."""
    out, elsewhere = path.parent / "out", path.parent / "elsewhere"
    assert run(path, OPTIONS.model_copy(update={"seeds": 1}))
    out.rename(elsewhere)
    forget(calls)
    assert run(path, OPTIONS.model_copy(update={"seeds": 1, "first_seed": 1}))
    assert [seed for _, seed, *_ in calls.trained] == [1, 1, 1]
    shutil.copytree(elsewhere, out, dirs_exist_ok=True)
    forget(calls)
    assert run(path)  # both seeds: nothing is left
    assert not (calls.trained or calls.matches or calls.timed)
    assert line_of(path, "wide")[5] == "75.0 75.0"


def test_an_interrupted_training_goes_on(path, calls):
    calls.stops_at = "wider"
    assert not run(path)
    folder = path.parent / "out" / "pieces"
    before = len(list(folder.iterdir()))
    forget(calls)
    assert line_of(path, "wide")[5] == "75.0" and "| wider | wide |  |  |  |  |  |" in page_of(path)
    calls.stops_at = ""
    assert run(path)
    assert calls.trained[0] == (24, 0, 3, True)
    assert len(calls.trained) == 4 and len(calls.matches) == 6
    assert len(list(folder.iterdir())) == before + 10 == 3 + 6 + 8
    assert not list((path.parent / "out").rglob("resume"))  # the replays


def directory_of(path, place: int):
    """The directory of a change's training with seed 0."""
    change = read_changes(path)[place]
    return path.parent / "out" / "runs" / f"{change.name}-{change.digest[:6]}-0.5min-seed0"


def test_a_training_killed_before_its_config_begins_anew(path, calls):
    directory = directory_of(path, 1)
    (directory / "resume").mkdir(parents=True)
    (directory / "metrics.jsonl").write_text("{}\n")
    assert run(path)
    assert (16, 0, 3, False) in calls.trained


@pytest.mark.parametrize("name", ["resume/2", "checkpoints/2", "checkpoints/2.aside"])
def test_a_checkpoint_is_never_removed(path, calls, name):
    checkpoint = directory_of(path, 0) / name
    checkpoint.mkdir(parents=True)
    with pytest.raises(AssertionError):  # the stand-in's, in place of the line of a real training
        run(path)
    assert checkpoint.is_dir()


def test_a_changed_definition_is_done_anew(path, calls):
    assert run(path)
    forget(calls)
    path.write_text(LIST.replace("24", "32"))
    assert run(path)
    assert [width for width, *_ in calls.trained] == [32, 32]
    assert len(calls.matches) == 4


def test_a_diverging_change_stops_nothing_else(path, calls):
    """Its line says so, it is not tried again, and matches that need it are left out."""
    calls.diverges = "wide-"
    assert run(path)
    assert [width for width, *_ in calls.trained] == [8, 16, 24] * 2 and not calls.matches
    assert line_of(path, "wide")[4] == "diverged with seed 0 1"
    assert line_of(path, "wider")[4:] == ["", "", "3", "0.5 0.5", "4 s"]
    forget(calls)
    assert run(path)
    assert not (calls.trained or calls.matches)


def test_table_has_every_line(path, calls):
    words = [path, "--out", path.parent / "out", "--minutes", "0.5", "--seeds", "2"]
    sizes = ["--games", "8", "--simulations", "2", "--opening-plies", "0", "1"]
    said = command("ablation", *words, *sizes)
    assert (said.code, said.err) == (0, "")
    assert len(calls.trained) == 6 and "75.0 %" in said.out
    wide = ["wide", "base", "75.0 %", "75.0 to 75.0", "screening", "75.0 75.0", "3"]
    assert line_of(path, "wide")[:7] == wide and line_of(path, "base")[4] == "the base"
    assert line_of(path, "wider")[:3] == ["wider", "wide", "0.0 %"]
    page = page_of(path)
    assert "Screening" in page and "- `wide`: `network.width = 16`" in page
    assert f"python -m train ablation {path}" in page


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (LIST + "replay.positions = 2_000_000_000\n", "replay.positions"),
        (LIST + 'selfplay.bootstrap_player = "wjy"\n', "wjy"),
        (LIST.replace("[base]", '[base]\nstart_weights = "no/run"', 1), "start_weights"),
        (LIST.replace("[base]", "[base]\nrules = 'playwallgo-3p'", 1), "3 players"),
    ],
)
def test_every_change_is_tried_before_anything_is_trained(path, calls, text, word):
    path.write_text(text)
    said = complaint(command("ablation", path, "--out", path.parent / "out"))
    name = "base" if word in ("start_weights", "3 players") else "wider"
    assert said.startswith(f"ablation: {name}: ") and word in said
    assert not (calls.trained or calls.timed)


# Lists of changes.

LISTS = sorted((ROOT / "configs" / "ablations").glob("*.toml"))
GOOD = """
[base]
search.simulations = 8
[[change]]
name = "wide"
network.width = 48
[[change]]
name = "wide-slow"
against = "wide"
about = "slower"
network.width = 48
learner.learning_rate = 1e-3
[[change]]
name = "deep"
network.blocks = "RR"
"""


@pytest.fixture
def listed(tmp_path):
    def read(text, *only):
        path = tmp_path / "list.toml"
        path.write_text(text)
        return read_changes(path, only)

    return read


def test_changes_start_from_the_base(listed):
    base, wide, slow, deep = listed(GOOD)
    plain = read_config(None)
    assert base.config.search.simulations == 8 and base.config.network == plain.network
    assert (wide.config.network.width, wide.config.search.simulations) == (48, 8)
    assert (slow.config.learner.learning_rate, slow.against, slow.about) == (1e-3, "wide", "slower")
    assert (deep.config.network.blocks, deep.config.network.width) == ("RR", plain.network.width)
    assert slow.keys == ("network.width = 48", "learner.learning_rate = 0.001")
    assert len({change.digest for change in (base, wide, slow, deep)}) == 4


def test_chosen_changes_bring_those_they_meet(listed):
    assert [change.name for change in listed(GOOD, "wide-slow")] == ["base", "wide", "wide-slow"]
    with pytest.raises(UsageError, match="tall"):
        listed(GOOD, "tall")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[bass]\n" + GOOD, "bass"),
        (GOOD.replace('"deep"', '"base"'), "taken"),
        (GOOD.replace('against = "wide"', 'against = "deep"'), "earlier"),
        (GOOD.replace('network.blocks = "RR"', ""), "nothing"),
        (GOOD.replace("blocks", "blcks"), "'deep'"),
    ],
)
def test_wrong_list_is_one_line(listed, text, word):
    with pytest.raises(UsageError, match=word) as refused:
        listed(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_shipped_lists_are_read(path):
    changes = read_changes(path)
    assert len({change.digest for change in changes}) == len(changes)
    assert path.read_text().startswith("# ")
