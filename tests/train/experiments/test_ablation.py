"""Ablations: lists of changes, what is done, in which order, what is left after an interruption.

Training and matches are stood in for.
"""

import json
from types import SimpleNamespace

import pytest

from tests.support.import_graph import ROOT
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.config import read_config
from train.experiments import ablation as ablation_lib
from train.experiments import lab
from train.experiments.ablation import Ablation, AblationOptions, read_changes
from train.experiments.pace import Pace
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

    def pace(config, base=None, base_seconds=None):
        if base is not None:
            assert (base.network.width, base_seconds) == (8, {simulations_of(base, 0): 10.0})
        done.timed.append(config.network.width)
        return Pace({simulations_of(config, 0): 10.0}, 1.0, 3)

    def train(config, runs, progress):
        done.trained.append((config.network.width, config.seed, config.iterations))
        if config.name.startswith(done.diverges):
            raise NotFiniteError("step 3: the loss is NaN")
        if config.name.startswith(done.stops_at or "?"):
            raise KeyboardInterrupt
        figures = {"minutes": 29 / 60, "compile_seconds": 4.0, "games": 5, "positions": 40}
        return {"iterations": config.iterations, **figures, "curve": []}

    def match(work, first, second, **options):
        done.matches.append((first, second, options))
        won = 3 if "/wide-" in first else 0
        return {"won": won, "drawn": 0, "lost": 4 - won}

    monkeypatch.setattr(ablation_lib, "_forget_programs", lambda: None)
    monkeypatch.setattr(ablation_lib.pace, "measure_pace", pace)
    monkeypatch.setattr(lab, "_train", train)
    monkeypatch.setattr(lab.Lab, "match", match)
    return done


class _Unchecked(Ablation):
    def _check(self, change):
        """What trainings start with is tried by the commands below."""


def run(path, options=OPTIONS) -> bool:
    """Whether all was done."""
    work = lab.Lab("list", lab.Options(path.parent / "out"), "command")
    study = _Unchecked(read_changes(path), options, work, lambda text: None)
    try:
        study.run()
    except KeyboardInterrupt:
        return False
    return True


def page_of(path) -> str:
    return (path.parent / "out" / "list" / "README.md").read_text()


def line_of(path, name: str) -> list[str]:
    """Cells of a change in the table: name, against, rate, verdict, by seed, ..."""
    (row,) = (line for line in page_of(path).splitlines() if line.startswith(f"| {name} |"))
    return row.strip("| ").split(" | ")


def pieces(path, kind: str) -> dict:
    """The finished pieces of a kind, by the change."""
    lines = (path.parent / "out" / f"{kind}.jsonl").read_text().splitlines()
    return {each["key"]["change"]: each["result"] for each in map(json.loads, lines)}


def forget(calls) -> None:
    for done in (calls.trained, calls.matches, calls.timed):
        done.clear()


def test_every_seed_is_paired(path, calls):
    assert run(path)
    assert calls.timed == [8, 16, 24]  # once a change, not once a seed
    assert calls.trained == [(w, s, 3) for s in (0, 1) for w in (8, 16, 24)]
    assert len(calls.matches) == 8
    for first, second, options in calls.matches:
        seed = options["seed"]
        assert options["games"] == 4 and f"-seed{seed}-" in first and f"-seed{seed}-" in second
    assert ["/base-" in second for _, second, _ in calls.matches] == [1, 1, 0, 0] * 2
    # Matches of a seed share openings, other seeds and numbers of plies have others.
    sides = {(options["seed"], options["opening_plies"]) for *_, options in calls.matches}
    assert sides == {(seed, plies) for seed in (0, 1) for plies in (0, 1)}


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
    rows = pieces(path, "budgets")
    assert (rows["slower"]["timed_as"], rows["wide-mixed"]["timed_as"]) == ("base", "wide")
    assert all(row["iterations"] == 3 for row in rows.values()) and len(rows) == 5
    assert "timed_as" not in rows["wide"]


def test_an_interrupted_training_goes_on(path, calls):
    calls.stops_at = "wider"
    assert not run(path)
    forget(calls)
    assert line_of(path, "wide")[4] == "75.0" and "| wider | wide |  |  |  |  |  |" in page_of(path)
    calls.stops_at = ""
    assert run(path)
    assert calls.trained == [(24, 0, 3), *((width, 1, 3) for width in (8, 16, 24))]
    assert not calls.timed


def test_a_changed_definition_is_done_anew(path, calls):
    assert run(path)
    forget(calls)
    path.write_text(LIST.replace("24", "32"))
    assert run(path)
    assert [width for width, *_ in calls.trained] == [32, 32]


def test_a_diverging_change_stops_nothing_else(path, calls):
    """Its line says so, it is not tried again, and matches that need it are left out."""
    calls.diverges = "wide-"
    assert run(path)
    assert [width for width, *_ in calls.trained] == [8, 16, 24] * 2 and not calls.matches
    assert line_of(path, "wide")[3] == "diverged with seed 0 1"
    assert line_of(path, "wider")[3:] == ["", "", "3", "0.5 0.5", "4 s"]
    forget(calls)
    assert run(path)
    assert not (calls.trained or calls.matches)


def test_table_has_every_line(path, calls):
    words = [path, "--out", path.parent / "out", "--minutes", "0.5", "--seeds", "2"]
    sizes = ["--games", "8", "--simulations", "2", "--opening-plies", "0", "1"]
    said = command("ablation", *words, *sizes)
    assert (said.code, said.err) == (0, "")
    assert len(calls.trained) == 6 and "75.0" in said.out
    wide = ["wide", "base", "75.0 (75.0–75.0)", "screening", "75.0 75.0", "3"]
    assert line_of(path, "wide")[:6] == wide and line_of(path, "base")[3] == "the base"
    assert line_of(path, "wider")[:3] == ["wider", "wide", "0.0 (0.0–0.0)"]
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
