"""Ablations: what is done, in which order, and what is left after an interruption.

Training and matches are stood in for.
"""

import json
import shutil
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.support.learner import saved, tiny
from tests.support.learner.commands import command, complaint
from train.config import CONFIG_FILE
from train.experiments import ablation as ablation_lib
from train.experiments.ablation import Ablation, AblationOptions, report
from train.experiments.changes import read_changes
from train.experiments.lib import trainings
from train.experiments.lib import work as work_lib
from train.experiments.lib.work import Work
from train.experiments.pace import Pace
from train.experiments.scales import read_scales
from train.loop.run_directory import STARTS_FILE
from train.loop.selfplay import stage_at
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
            assert (base.network.width, base_seconds) == (8, {stage_at(base, 0): 10.0})
        done.timed.append(config.network.width)
        return Pace({stage_at(config, 0): 10.0}, 1.0, 3)

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

    monkeypatch.setattr(ablation_lib.pace, "measure_pace", pace)
    monkeypatch.setattr(trainings.training, "train", train)
    monkeypatch.setattr(work_lib, "play_match", play_match)
    make_player = lambda name, rules: SimpleNamespace(name=name)  # noqa: E731
    monkeypatch.setattr(ablation_lib, "make_player", make_player)
    return done


def study(path, options=OPTIONS) -> Ablation:
    work = Work(read_scales(), path.parent / "out")
    return Ablation(read_changes(path), options, work)


def run(path, options=OPTIONS) -> bool:
    """Whether all was done."""
    try:
        study(path, options).run(lambda text: None)
    except KeyboardInterrupt:
        return False
    return True


def pieces(path, name: str) -> dict:
    """The finished pieces whose names begin so, by what decides them."""
    files = sorted((path.parent / "out" / "pieces").glob(f"{name}-*.json"))
    found = [json.loads(file.read_text()) for file in files]
    return {piece["settings"]["change"]: piece["result"] for piece in found}


def page_of(path, options=OPTIONS) -> str:
    made = report(study(path, options), title="list")
    return "\n".join([*made.text, *(table.markdown() for table in made.tables)])


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


def test_a_finished_study_does_nothing_more(path, calls):
    assert run(path)
    forget(calls)
    assert run(path)
    assert not (calls.trained or calls.matches or calls.timed)
    assert run(path, AblationOptions(0.5, 3, 8, 2, (0, 1)))  # one more seed
    assert [seed for _, seed, *_ in calls.trained] == [2, 2, 2] and not calls.timed


def test_seeds_of_several_machines_are_put_together(path, calls):
    """The pieces of both in one folder; their budgets may differ."""
    out, elsewhere = path.parent / "out", path.parent / "elsewhere"
    assert run(path, AblationOptions(0.5, 1, 8, 2, (0, 1)))
    out.rename(elsewhere)
    forget(calls)
    assert run(path, AblationOptions(0.5, 1, 8, 2, (0, 1), first_seed=1))
    assert [seed for _, seed, *_ in calls.trained] == [1, 1, 1]
    shutil.copytree(elsewhere, out, dirs_exist_ok=True)
    forget(calls)
    assert run(path)  # both seeds: nothing is left
    assert not (calls.trained or calls.matches or calls.timed)
    assert study(path).lines()[1].rates == (0.75, 0.75)


def test_an_interrupted_training_goes_on(path, calls):
    calls.stops_at = "wider"
    assert not run(path)
    folder = path.parent / "out" / "pieces"
    before = len(list(folder.iterdir()))
    forget(calls)
    _, wide, wider = study(path).lines()  # seeds whose matches are not all done do not count
    assert wide.rates == (0.75,) and wider.score is None and wider.trained == ()
    calls.stops_at = ""
    assert run(path)
    assert calls.trained[0] == (24, 0, 3, True)
    assert len(calls.trained) == 4 and len(calls.matches) == 6
    assert len(list(folder.iterdir())) == before + 10 == 3 + 6 + 8
    assert not list((path.parent / "out").rglob("resume"))  # the replays


def test_a_training_killed_before_its_config_begins_anew(path, calls):
    found = study(path)
    run_directory = found.run_of(found.changes[1], 0)
    (run_directory / "resume").mkdir(parents=True)
    (run_directory / "metrics.jsonl").write_text("{}\n")
    assert run(path)
    assert (16, 0, 3, False) in calls.trained


@pytest.mark.parametrize("name", ["resume/2", "checkpoints/2", "checkpoints/2.aside"])
def test_a_checkpoint_is_never_removed(path, calls, name):
    found = study(path)
    checkpoint = found.run_of(found.changes[0], 0) / name
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


def test_other_weights_by_the_same_name_are_another_definition(path, calls):
    source = path.parent / "source"
    folders = [saved.save_run(path.parent / f"w{seed}", seeds={1: seed}) for seed in (0, 1)]
    for key in ("start_weights", "init_from", "selfplay.opponent"):
        path.write_text(LIST.replace("[[change]]", f'{key} = "{source}"\n[[change]]', 1))
        digests = []
        for folder in (*folders, folders[0]):
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(folder, source)
            digests.append({change.digest for change in read_changes(path)})
        assert digests[0] == digests[2] and not digests[0] & digests[1]
        assert all(len(each) == 3 for each in digests)


def test_a_diverging_change_stops_nothing_else(path, calls):
    """Its line says so, it is not tried again, and matches that need it are left out."""
    calls.diverges = "wide-"
    assert run(path)
    assert [width for width, *_ in calls.trained] == [8, 16, 24] * 2 and not calls.matches
    base, wide, wider = study(path).lines()
    assert (base.diverged, wide.diverged, wider.diverged) == ((), (0, 1), ())
    assert len(wider.trained) == 2 and wider.score is None
    page = page_of(path)
    assert "| wide | base |  |  | diverged with seed 0 1 |" in page
    forget(calls)
    assert run(path)
    assert not (calls.trained or calls.matches)


def test_weights_that_a_match_needs_are_missed_before_anything_is_trained(path, calls):
    assert run(path)
    (base,) = (path.parent / "out" / "runs").glob("base-*-seed1")
    shutil.rmtree(base)
    study(path).check()  # all matches are done
    path.write_text(LIST + '[[change]]\nname = "widest"\nnetwork.width = 32\n')
    with pytest.raises(
        UsageError, match=f"ablation: {base}: has no weights, and a match of widest"
    ):
        study(path).check()


def test_table_has_every_line(path, calls):
    run(path)
    found = study(path)
    base, wide, wider = found.lines()
    assert base.score is None and wide.rates == (0.75, 0.75) and wider.rates == (0.0, 0.0)
    page = page_of(path)
    rows = [line for line in page.splitlines() if line.startswith("| w")]
    assert rows[0].startswith("| wide | base | 75.0 % | 75.0 to 75.0 | screening | 75.0 75.0 | 3")
    assert rows[1].startswith("| wider | wide | 0.0 %")
    assert "Screening" in page and "- `wide`: `network.width = 16`" in page


def test_the_old_command_is_the_new_one(path, calls):
    words = [path, "--out", path.parent / "out", "--minutes", "0.5", "--seeds", "1"]
    sizes = ["--games", "8", "--simulations", "2", "--opening-plies", "0", "1"]
    said = command("ablate", *words, *sizes)
    assert said.code == 0 and "ablate is now python -m train experiment ablation" in said.err
    assert len(calls.trained) == 3 and "75.0 %" in said.out
    page = (path.parent / "out" / "README.md").read_text()
    assert f"python -m train experiment ablation {path}" in page and "| wide | base |" in page


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--minutes", "0"], "minutes"),
        (["--games", "6"], "games"),
        (["--opening-plies", "2", "2"], "different"),
        (["--opening-plies", "2", "40"], "40"),
        (["--only", "tall"], "tall"),
    ],
)
def test_wrong_options_are_one_line(path, words, word):
    assert word in complaint(
        command("experiment", "ablation", path, "--out", path.parent / "out", *words)
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (LIST + "replay.positions = 2_000_000_000\n", "replay.positions"),
        (LIST + 'selfplay.bootstrap_player = "net:runs/x"\n', "bootstrap_player"),
        (LIST + 'selfplay.bootstrap_player = "wjy"\n', "wjy"),
        (LIST + 'selfplay.opponent = "no/run"\n', "selfplay.opponent"),
        (LIST.replace("[base]", '[base]\nstart_weights = "no/run"', 1), "start_weights"),
        (
            LIST + "[base.rules]\nsize = 3\nplayers = 3\nstones = 1\norder = [0, 1, 2]\n",
            "3 players",
        ),
    ],
)
def test_every_change_is_tried_before_anything_is_trained(path, calls, text, word):
    path.write_text(text)
    said = complaint(command("experiment", "ablation", path, "--out", path.parent / "out"))
    name = "base" if word in ("start_weights", "3 players") else "wider"
    assert said.startswith(f"ablation: {name}: ") and word in said
    assert not (calls.trained or calls.timed)
