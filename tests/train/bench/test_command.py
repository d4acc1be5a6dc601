"""`python -m train bench`: its options, the files it writes, and the whole at tiny size."""

import dataclasses
import json
import shlex
from pathlib import Path

import jax
import pytest

from tests.support.learner import tiny
from tests.support.learner.counting_game import counting_game
from train.__main__ import main
from train.bench import games, search, suite
from train.bench import trainer as bench_training
from train.cli.bench import BenchCommand
from train.cli.options import check
from train.loop.iterations import Iteration
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError

MIXED = tiny.PATH.parents[3] / "configs" / "mixed.toml"
QUICK = {"seconds": 1e-4, "repeats": 2, "batch": "4,8", "scaling": "1,2,4"}
ONE_BATCH = QUICK | {"batch": "4", "scaling": "1,2"}


@pytest.fixture
def counted(monkeypatch):
    """All parts measure the counting game, which compiles at once."""

    def maker(request, batch):
        yield games.make_bench(counting_game(), batch, all_devices(1))

    monkeypatch.setattr(suite, "PARTS", dict.fromkeys(suite.PARTS, maker))
    monkeypatch.setattr(search, "tree_line", lambda *sizes: "")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"what": "env,fun"}, "fun"),
        ({"against": "gym"}, "gym"),
        ({"batch": "many"}, "many"),
        ({"seconds": 0.0}, "--seconds"),
        ({"scaling": "1,x", "plot": Path("p.png")}, "--scaling"),
        ({"minutes": 2.0}, "--report"),
        ({"scaling": "1,4"}, "--plot"),
        ({"player": "wjx"}, "engine"),
        ({"what": "env,learn", "simulations": 8}, "--simulations"),
        ({"what": "env", "against": "pgx,mctx"}, "mctx"),
        ({"what": "selfplay", "against": "parts"}, "full_search_prob"),
        ({"plot": Path("p.png"), "report": Path("out")}, "--plot"),
        ({"what": "engine,env"}, "with other parts"),
        ({"what": "engine", "batch": "4"}, "--batch"),
        ({"what": "engine", "config": tiny.PATH}, "CONFIG"),
        ({"what": "engine", "sessions": "9999"}, "9999"),
        ({"what": "engine", "player": "heuristic-search:wjx@1s"}, "simulations"),
        *(({"what": what, "config": MIXED}, "one rule set") for what in ("env", "compile")),
        # Before the target is looked at.
        ({"what": "compile", "target": "v5e:1x1", "programs": "search,fun"}, "selfplay, learn"),
    ],
)
def test_wrong_options_are_one_line(options, word):
    bench = BenchCommand(**options)
    with pytest.raises(UsageError, match=word) as refused:
        check(bench)
        bench.run([])
    assert "\n" not in str(refused.value)


def test_a_board_in_a_larger_grid_is_refused():
    with pytest.raises(UsageError, match="rules must be one rule set, on a grid of its"):
        BenchCommand(tiny.PATH, what="search").run(["--grid", "5", "--network.playable", "true"])


def test_command_writes_json_and_plot(counted, tmp_path, capsys):
    bench = BenchCommand(
        tiny.PATH, what="env", json=tmp_path / "a" / "b.json", plot=tmp_path / "p.png"
    )
    assert dataclasses.replace(bench, **QUICK).run(["--seed", "3"]) == 0
    record = json.loads((tmp_path / "a" / "b.json").read_text())
    assert [(x["part"], x["name"], x["batch"]) for x in record["rows"]] == [
        *(("env", "counting", batch) for batch in (4, 8)),
        *(("plot", "counting", batch) for batch in (1, 2, 4)),
    ]
    assert record["config"]["seed"] == 3 and record["repeats"] == QUICK["repeats"]
    assert record["rows"][0]["rates"].keys() == {"plies", "games"}
    assert record["rows"][0]["stats"]["peak_bytes"] > 0
    assert record["environment"]["versions"]["jax"] == jax.__version__
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "counting" in capsys.readouterr().out


def wave(games, *, simulations=16):
    """Rows of equal speed, 1,000 positions a second, whose games have 36 plies and end in waves."""
    return [
        {"games": each, "mean_length": 36.0 if each else None, "positions": 2000.0}
        | {"selfplay_seconds": 1.5, "learn_seconds": 0.5, "simulations": simulations}
        for each in games
    ]


MILLION = (
    "a million games of 36.0 plies, at 1,000 positions a second in the stage of 16 simulations: "
    "10 hours"
)


def test_hours_of_a_million_games_are_those_of_the_stage():
    """36 plies at 1,000 positions a second: 36,000 s for a million games, ten hours, wherever a
    wave of games stands. The first iteration starts up, the bootstrap is quicker than a search."""
    slow = [row | {"selfplay_seconds": 99.0} for row in wave((5,))]
    quick = [row | {"selfplay_seconds": 0.5} for row in wave((5, 80), simulations=0)]
    for before in ([], slow, quick):
        for ended in ((0, 224), (0, 224, 57), (224, 57), (0, 224, 57, 0)):
            assert bench_training.training_lines([*before, *wave(ended)])[1:] == [MILLION]
    assert bench_training.training_lines(wave((9,)))[1:] == [MILLION]
    (told,) = bench_training.training_lines(quick)[1:]
    assert "in the bootstrap: 5 hours" in told
    assert len(bench_training.training_lines(wave((0,)))) == 1  # no game has ended


def test_the_report_names_the_command_that_made_it(monkeypatch, tmp_path):
    bench = BenchCommand(
        tiny.PATH,
        batch="4,8",
        against="pgx",
        seconds=0.01,
        minutes=0.5,
        json=tmp_path / "a b.json",
        report=tmp_path / "the report",
    )
    overrides = ["--search.prior_boost", '["stay=2"]', "--seed=3"]
    found = []
    monkeypatch.setattr(BenchCommand, "run", lambda self, words: found.append((self, words)) or 0)
    assert main(["bench", *shlex.split(shlex.join(bench._words(overrides)))]) == 0
    assert found == [(bench, overrides)]


def test_report_is_written(counted, monkeypatch, tmp_path):
    lines = bench_training.training_lines(wave((0, 224)))
    monkeypatch.setattr(bench_training, "train_a_little", lambda config, out, minutes: lines)
    bench = BenchCommand(tiny.PATH, report=tmp_path / "out")
    assert dataclasses.replace(bench, **ONE_BATCH).run([]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert text.startswith("# Speed report")
    assert "\n| counting | 4 | " in text
    assert "the last: 1.5 s of self-play, 0.5 s of learning" in text
    assert (tmp_path / "out" / "scaling.png").exists()
    record = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert record["training"] == lines


def test_an_interrupted_report_keeps_what_was_measured(counted, monkeypatch, tmp_path):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setitem(suite.PARTS, "search", stop)
    bench = BenchCommand(tiny.PATH, report=tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(bench, **ONE_BATCH).run([])
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| counting | 4 |" in text
    assert "## A short training run\n\nNot measured yet." in text
    assert json.loads((tmp_path / "out" / "bench.json").read_text())["rows"]


def test_training_ends_after_its_minutes(monkeypatch, tmp_path):
    """The clock begins after the first compiling; the iteration under way is finished and saved."""
    now = [0.0]
    monkeypatch.setattr(bench_training.time, "perf_counter", lambda: now[0])
    rows = [{"iteration": 1 + i} | row for i, row in enumerate(wave(range(9)))]
    saved = []

    def run_all(config, directory):
        now[0] += 100.0  # it compiles
        assert config.evaluation.every == 0
        yield Iteration("run", "first", None)
        for row in rows:
            now[0] += 20.0
            yield Iteration("run", f"state {row['iteration']}", row)

    def save(run, state, row):
        assert (run, state) == ("run", f"state {row['iteration']}")
        saved.append(row["iteration"])

    monkeypatch.setattr(bench_training, "iterations", run_all)
    monkeypatch.setattr(bench_training, "save", save)
    lines = bench_training.train_a_little(tiny.config(), tmp_path, 0.75)
    assert saved == [3]
    assert lines[0] == "3 iterations of `tiny`: 60 s, compilation left out"
    assert lines[2] == MILLION
