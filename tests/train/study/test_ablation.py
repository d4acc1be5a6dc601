"""Ablations: what is done, in which order, and what is left after an interruption.

Training and matches are stood in for; the last test runs the command for real at tiny scale.
"""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.programs.selfplay import stage_at
from train.study import ablation, report
from train.study.ablation import Options, Study, steps_of
from train.study.changes import read_changes
from train.study.frame.budget import Pace
from train.study.progress import Progress
from train.study.results import Results

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
OPTIONS = Options(minutes=0.5, seeds=2, games=8, simulations=2, opening_plies=(0, 1))


@pytest.fixture
def path(tmp_path):
    (tmp_path / "list.toml").write_text(LIST)
    return tmp_path / "list.toml"


@pytest.fixture
def calls(monkeypatch):
    """Stand-ins: 10 s an iteration; wide wins 3 of 4 games, wider none. Returns what they did."""
    done = SimpleNamespace(trained=[], matches=[], timed=[], stops_at="")

    def pace(config, *, on_progress):
        done.timed.append(config.network.width)
        return Pace({stage_at(config, 0): 10.0}, 1.0, 3)

    def pace_beside(config, base, base_seconds, *, on_progress):
        assert (base.network.width, base_seconds) == (8, {stage_at(base, 0): 10.0})
        return pace(config, on_progress=on_progress)

    def train(config, runs, *, resume):
        done.trained.append((config.network.width, config.seed, config.iterations, resume))
        run = runs / config.name
        (run / "resume").mkdir(parents=True, exist_ok=True)
        if config.name.startswith(done.stops_at or "?"):
            return False
        row = {"iteration": 1, "selfplay_seconds": 20.0, "learn_seconds": 9.0}
        row |= {"compile_seconds": 4.0, "games": 5.0, "positions": 40.0}
        (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        return True

    def play_match(first, second, rules, how, *, key, on_progress):
        key = tuple(np.asarray(jax.random.key_data(key)).tolist())
        done.matches.append((first, second, how.games, how.opening_plies, key))
        wins = 3 if "/wide-" in first else 0
        return SimpleNamespace(wins=wins, draws=0, losses=4 - wins, distinct_games=4)

    monkeypatch.setattr(ablation.budget, "measure_pace", pace)
    monkeypatch.setattr(ablation.budget, "measure_pace_beside", pace_beside)
    monkeypatch.setattr(ablation.training, "train", train)
    monkeypatch.setattr(ablation, "play_match", play_match)
    monkeypatch.setattr(ablation.registry, "make_player", lambda name, rules: name)
    return done


def study(path, options=OPTIONS) -> Study:
    directory = path.parent / "out"
    results = Results(directory / ablation.RESULTS_FILE)
    return Study(read_changes(path), options, directory, results)


def run(path, options=OPTIONS) -> bool:
    return study(path, options).run(Progress(options, 0))


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


def test_a_finished_study_does_nothing_more(path, calls):
    assert run(path)
    forget(calls)
    assert run(path)
    assert not (calls.trained or calls.matches or calls.timed)
    assert run(path, Options(0.5, 3, 8, 2, (0, 1)))  # one more seed
    assert [seed for _, seed, *_ in calls.trained] == [2, 2, 2] and not calls.timed


def test_seeds_of_several_machines_are_put_together(path, calls):
    assert run(path, Options(0.5, 1, 8, 2, (0, 1)))
    first = study(path).results.rows
    (path.parent / "out" / ablation.RESULTS_FILE).rename(path.parent / "first.jsonl")
    forget(calls)
    assert run(path, Options(0.5, 1, 8, 2, (0, 1), first_seed=1))
    assert [seed for _, seed, *_ in calls.trained] == [1, 1, 1]
    second = study(path).results.rows
    lines = "".join(json.dumps(row) + "\n" for row in first + second)
    (path.parent / "out" / ablation.RESULTS_FILE).write_text(lines)
    forget(calls)
    assert run(path)  # both seeds: nothing is left
    assert not (calls.trained or calls.matches or calls.timed)
    assert report.lines_of(study(path))[1].rates == (0.75, 0.75)


def test_an_interrupted_training_goes_on(path, calls):
    calls.stops_at = "wider"
    assert not run(path)
    before = len(study(path).results.rows)
    with (path.parent / "out" / ablation.RESULTS_FILE).open("a") as file:
        file.write('{"row": "trai')  # killed while it wrote
    forget(calls)
    calls.stops_at = ""
    assert run(path)
    assert calls.trained[0] == (24, 0, 3, True)
    assert len(calls.trained) == 4 and len(calls.matches) == 6
    assert len(study(path).results.rows) == before + 10 == 3 + 6 + 8
    assert not list((path.parent / "out").rglob("resume"))  # the replays


def test_a_changed_definition_is_done_anew(path, calls):
    assert run(path)
    forget(calls)
    path.write_text(LIST.replace("24", "32"))
    assert run(path)
    assert [width for width, *_ in calls.trained] == [32, 32]
    assert len(calls.matches) == 4


def test_table_has_every_line(path, calls):
    run(path)
    found = study(path)
    base, wide, wider = report.lines_of(found)
    assert base.score is None and wide.rates == (0.75, 0.75) and wider.rates == (0.0, 0.0)
    page = report.markdown(found, title="list", command="python -m train ablate list.toml")
    rows = [line for line in page.splitlines() if line.startswith("| w")]
    assert rows[0].startswith("| wide | base | 75.0 % | 75.0 to 75.0 % | screening | 75.0 75.0 | 3")
    assert rows[1].startswith("| wider | wide | 0.0 %")
    assert "Screening" in page and "- `wide`: `network.width = 16`" in page


def test_unfinished_seeds_do_not_count(path, calls):
    calls.stops_at = "wider"
    run(path)
    _, wide, wider = report.lines_of(study(path))
    assert wide.rates == (0.75,) and wider.score is None and wider.trainings == ()


def test_steps_end_a_seed_before_the_next(path):
    steps = list(steps_of(read_changes(path), OPTIONS))
    assert [step.seed for step in steps] == sorted(step.seed for step in steps)
    assert len(steps) == 2 * (3 + 2 * 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--minutes", "0"], "ablate: minutes (0.0) must be a number above 0"),
        (["--seeds", "0"], "ablate: seeds (0) must be at least 1"),
        (["--first-seed", "-1"], "ablate: first_seed (-1) must be from 0 to 2147483642"),
        (["--games", "6"], "ablate: games (6) must be a multiple of 4"),
        (["--opening-plies", "2", "2"], "ablate: opening_plies must be different numbers"),
        (["--opening-plies", "2", "40"], "match: opening_plies (40) must be below"),
        (["--only", "tall"], "no change 'tall'"),
    ],
)
def test_wrong_options_are_one_line(path, words, said):
    assert said in complaint(command("ablate", path, "--out", path.parent / "out", *words))


def test_matches_of_three_are_refused_before_anything_is_trained(path):
    path.write_text(LIST + "[base.rules]\nsize = 3\nplayers = 3\nstones = 1\norder = [0, 1, 2]\n")
    said = complaint(command("ablate", path, "--out", path.parent / "out"))
    assert "ablate: base: the rules are for 3 players, a match is for 2" in said


def test_a_foreign_line_is_named(path):
    out = path.parent / "out"
    out.mkdir()
    (out / ablation.RESULTS_FILE).write_text('{"row": "game"}\n')
    said = complaint(command("ablate", path, "--out", out))
    assert "results.jsonl: line 1: not a row of a study" in said


@pytest.mark.slow
def test_command_at_tiny_scale(path):
    """For real: two trainings, a match of each number of opening plies, a table."""
    out = path.parent / "out"
    words = ["--minutes", "0.005", "--seeds", "1", "--games", "8", "--simulations", "2"]
    said = command(
        "ablate", path, "--out", out, "--only", "wide", "--opening-plies", "0", "1", *words
    )
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    kinds = ["budget", "training", "budget", "training", "match", "match"]
    assert [row["row"] for row in rows] == kinds
    assert all(row["wins"] + row["draws"] + row["losses"] == 4 for row in rows[4:])
    assert "| wide | base |" in (out / "table.md").read_text()
