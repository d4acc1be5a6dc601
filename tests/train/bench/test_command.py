"""`python -m train bench`: its options, the files it writes, and the whole at tiny size."""

import contextlib
import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.learner.counting_game import counting_game
from tests.support.learner.engines import opposed_evaluator
from train.__main__ import main
from train.bench import engine_speed, scaling, suite
from train.bench.harness import play
from train.bench.parts import learn, memory, search, selfplay
from train.checkpoints.calibration import Calibration
from train.cli import bench_report
from train.cli.bench import Bench
from train.cli.common import options
from train.config import RunConfig
from train.engine.trees.guide import Guide
from train.loop.training import OpenRun
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from train.search.config import SearchConfig

QUICK = {"seconds": 1e-4, "repeats": 2, "batch": "4,8", "scaling": "1,2,4"}


@pytest.fixture
def counted(monkeypatch):
    """All parts measure the counting game, which compiles at once."""
    makers = {
        part: lambda request, batch: iter(
            [lambda: play.make_bench(counting_game(), batch, all_devices(1))]
        )
        for part in suite.PARTS
    }
    monkeypatch.setattr(suite, "_MAKERS", makers)
    monkeypatch.setattr(scaling.games, "core_game", lambda rules, on_bits: counting_game())
    tree = memory.TreeMemory(4, 4, 52, 1, 1.0, 1)
    monkeypatch.setattr(suite.memory, "tree_memory", lambda config, **fit: tree)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "env,fun"}, "--what 'fun' is unknown; allowed: env, search, selfplay, learn"),
        ({"what": ","}, "--what names nothing"),
        (
            {"against": "gym"},
            "--against 'gym' is unknown; allowed: pgx, pgx-animal_shogi, pgx-chess, "
            "pgx-connect_four, pgx-gardner_chess, pgx-go_9x9, pgx-hex, pgx-alphazero, mctx, "
            "mctx-public",
        ),
        ({"batch": "0"}, "--batch '0' must be numbers"),
        ({"batch": "many"}, "--batch 'many' must be numbers"),
        ({"repeats": 0}, r"--repeats \(0\) must be at least 1"),
        ({"simulations": 0}, r"--simulations \(0\) must be at least 1"),
        ({"minutes": 0.0, "report": Path("out")}, r"--minutes \(0.0\) must be above 0"),
        ({"wide": 0, "report": Path("out")}, r"--wide \(0\): width must be at least 1"),
        ({"scaling": "1,x", "plot": Path("p.png")}, "--scaling '1,x' must be numbers"),
        ({"seconds": 0.0}, r"--seconds \(0.0\) must be above 0"),
        ({"fit": "4096"}, "--fit must be boards, then simulations"),
    ],
)
def test_wrong_option_is_named(options, said):
    with pytest.raises(UsageError, match=f"^bench: {said}"):
        Bench(**options).run([])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"minutes": 3.0}, "--minutes is for --report"),
        ({"wide": 64}, "--wide is for --report"),
        ({"trained": Path("run")}, "--trained is for --what strength"),
        ({"games": 20}, "--games is for --what strength"),
        ({"opening_plies": 4}, "--opening-plies is for --what strength"),
        ({"player": "wjx"}, "--player is for --what engine"),
        ({"sessions": "1"}, "--sessions is for --what engine"),
        ({"plies_a_game": 30.0}, "--plies-a-game is for --what arithmetic"),
        ({"scaling": "1,4"}, "--scaling is for --plot"),
        ({"what": "env,learn", "simulations": 8}, "--simulations is for --what search"),
        ({"what": "env", "fit": "64,8"}, "--fit is for --what search"),
        ({"what": "env", "against": "pgx,mctx"}, "--against 'mctx' is for --what search"),
        ({"what": "env", "report": Path("out")}, "--what is not for --report"),
        ({"plot": Path("p.png"), "report": Path("out")}, "--plot is not for --report"),
        ({"what": "engine", "report": Path("out")}, "--what engine is measured alone, without"),
        ({"what": "engine", "batch": "4"}, "--batch is not for --what engine"),
        ({"what": "engine", "repeats": 0}, r"--repeats \(0\) must be at least 1"),
        ({"what": "engine", "seconds": float("inf")}, r"--seconds \(inf\) must not be negative"),
        ({"what": "arithmetic", "seconds": 1.0}, "--seconds is not for --what arithmetic"),
        ({"what": "arithmetic", "player": "wjx"}, "--player is not for --what arithmetic"),
    ],
)
def test_options_without_an_effect_are_refused(options, said):
    with pytest.raises(UsageError, match=f"^bench: {said}"):
        Bench(**options).run([])


MIXED = tiny.PATH.parents[3] / "configs" / "mixed.toml"
SPARE = ["--grid", "5", "--network.playable", "true"]


@pytest.mark.parametrize(("config", "words"), [(MIXED, []), (tiny.PATH, SPARE)])
@pytest.mark.parametrize("what", ["env", "search", "selfplay", "learn", "arithmetic"])
def test_rules_of_several_sizes_are_refused(config, words, what):
    with pytest.raises(UsageError, match=r"^bench: rules must be one rule set, on a grid of its"):
        Bench(config, what=what).run(words)


def test_command_writes_json_and_plot(counted, tmp_path, capsys):
    bench = Bench(tiny.PATH, what="env", json=tmp_path / "a" / "b.json", plot=tmp_path / "p.png")
    assert dataclasses.replace(bench, **QUICK).run(["--seed", "3"]) == 0
    record = json.loads((tmp_path / "a" / "b.json").read_text())
    assert [(x["part"], x["name"], x["batch"]) for x in record["rows"]] == [
        ("env", "counting", 4),
        ("env", "counting", 8),
    ]
    assert record["config"]["seed"] == 3
    assert [x["batch"] for x in record["scaling"]] == [1, 2, 4]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "counting" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["native", "mctx"])
def test_command_says_which_engine_searched(counted, engine, capsys):
    bench = dataclasses.replace(Bench(tiny.PATH, what="selfplay"), **QUICK | {"scaling": ""})
    assert bench.run(["--search.engine", engine]) == 0
    assert f"search engine: {engine}\n" in capsys.readouterr().out


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


@pytest.mark.parametrize("games", [(0, 224), (0, 224, 57), (224, 57), (0, 224, 57, 0), (9,)])
def test_hours_of_a_million_games_do_not_depend_on_the_wave(games):
    """36 plies at 1,000 positions a second: 36,000 s for a million games, ten hours."""
    assert bench_report.training_lines(wave(games))[1:] == [MILLION]


def test_hours_of_a_million_games_are_those_of_the_stage():
    """The first iteration starts up, the bootstrap is quicker than any search."""
    quick = [row | {"selfplay_seconds": 0.5} for row in wave((5, 80), simulations=0)]
    assert bench_report.training_lines([*quick, *wave((0, 224))])[1:] == [MILLION]
    (told,) = bench_report.training_lines(quick)[1:]
    assert "in the bootstrap, which does not search: 5 hours" in told
    slow = [row | {"selfplay_seconds": 99.0} for row in wave((5,))]
    assert bench_report.training_lines([*slow, *wave((0, 224))])[1:] == [MILLION]
    assert len(bench_report.training_lines(wave((0,)))) == 1  # no game has ended


def test_the_report_names_the_command_that_made_it(monkeypatch, tmp_path):
    bench = Bench(
        tiny.PATH,
        batch="4,8",
        against="pgx",
        seconds=0.01,
        minutes=0.5,
        wide=8,
        json=tmp_path / "a b.json",
        report=tmp_path / "the report",
    )
    overrides = ["--search.prior_boost", '["stay=2"]', "--seed=3"]
    found = []
    monkeypatch.setattr(Bench, "run", lambda self, words: found.append((self, words)) or 0)
    program, *words = bench._command(overrides).split(" ", 4)[2:]
    assert program == "train" and main(shlex.split(" ".join(words))) == 0
    assert found == [(bench, overrides)]


@pytest.mark.slow
def test_report_is_written(counted, monkeypatch, tmp_path):
    trained = []

    def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
        trained.append((config.name, config.iterations, resume))
        (runs / config.name).mkdir(parents=True)
        rows = wave((0, 224))
        lines = "".join(json.dumps(each) + "\n" for each in rows)
        (runs / config.name / "metrics.jsonl").write_text(lines)
        return True

    monkeypatch.setattr("train.loop.training.train", train)
    bench = Bench(tiny.PATH, report=tmp_path / "out")
    assert dataclasses.replace(bench, **QUICK).run([]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert text.startswith("# Speed report")
    assert "| core, plies a second | ≥ 200 M | not measured |  |" in text
    assert "the last: 1.5 s of self-play, 0.5 s of learning" in text
    assert trained == [("tiny-1", 3, False)]
    assert (tmp_path / "out" / "scaling.png").exists()
    record = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert "wide" in record
    assert record["training"][2] == MILLION


@pytest.mark.parametrize("is_late", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_report_keeps_what_was_measured(counted, monkeypatch, tmp_path, is_late):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    if is_late:
        monkeypatch.setattr(bench_report.suite, "wide_request", stop)
    else:
        monkeypatch.setitem(suite._MAKERS, "search", stop)
    bench = Bench(tiny.PATH, report=tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(bench, **QUICK).run([])
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| counting | 8 |" in text
    assert "## 1 block of 256 channels\n\nNot measured yet." in text
    assert "## A short training run\n\nNot measured yet." in text
    assert json.loads((tmp_path / "out" / "bench.json").read_text())["rows"]


def test_training_ends_after_its_minutes(monkeypatch, tmp_path):
    """The clock begins after the first compiling; the iteration under way is finished and saved."""
    now = [0.0]
    monkeypatch.setattr(bench_report.time, "perf_counter", lambda: now[0])
    rows = [{"iteration": 1 + i} | row for i, row in enumerate(wave(range(9)))]
    saved = []

    def run_all(session, state, compile_for, iterate, should_stop):
        for iteration in range(session):
            compile_for(state, iteration)
            now[0] += 20.0
            stops = should_stop()
            yield state, rows[iteration]
            if stops:
                saved.append(iteration + 1)
                return

    @contextlib.contextmanager
    def open_run(config, directory, resume):
        def compile_for(state, iteration):
            now[0] += 100.0 * (iteration == 0)
            return 100.0

        yield OpenRun(9, None, "state", compile_for, None, None)

    monkeypatch.setattr(bench_report.training, "open_run", open_run)
    monkeypatch.setattr(bench_report, "iterations", run_all)
    lines = bench_report.train_a_little(tiny.config(), tmp_path, 0.75)
    assert saved == [3]
    assert lines[0] == "3 iterations of `tiny`: 60 s, compilation left out"
    assert lines[2] == MILLION


@pytest.mark.slow
def test_selfplay_over_network_with_mctx(capsys):
    """One command measures self-play with a given engine."""
    bench = Bench(tiny.PATH, what="selfplay", batch="4", repeats=2, seconds=0.02)
    assert bench.run(["--search.engine", "mctx"]) == 0
    said = capsys.readouterr().out
    assert "search engine: mctx" in said
    assert "time of self-play over network alone, batch 4: " in said


@pytest.mark.slow
def test_everything_at_tiny_size(tmp_path):
    """The whole command runs, with the trainer's own programs."""
    bench = Bench(
        tiny.PATH,
        batch="4",
        scaling="1,4",
        repeats=2,
        seconds=0.02,
        simulations=2,
        fit="4,4",
        wide=8,
        against="mctx-public",
        report=tmp_path,
    )
    assert bench.run([]) == 0
    record = json.loads((tmp_path / "bench.json").read_text())
    names = {x["name"] for x in record["rows"]}
    assert {selfplay.SELFPLAY, selfplay.FORWARD, learn.LEARNER, search.PUBLIC} <= names
    assert len(record["ratios"]) == 6
    assert set(record["compiled"]) == {"env.step", "env.step_auto_reset"}
    found = record["memory"]
    assert found["measured"] == pytest.approx(found["formula"], rel=0.2)


@pytest.mark.slow
def test_an_engine_is_timed_by_sessions_that_play(tmp_path, monkeypatch):
    config = SearchConfig()
    guide = Guide(
        "random", opposed_evaluator, (), config, 1, 4, None, None, None, True, Calibration()
    )
    monkeypatch.setattr(engine_speed, "make_guide", lambda player: guide)
    path = tmp_path / "engine.json"
    # Forty rounds go beyond the end of a game on this board.
    measured = Bench(what="engine", sessions="2,1", seconds=0.0, repeats=40, json=path)
    monkeypatch.setattr(options, "read_rules_for", lambda text, names: tiny.RULES)
    assert measured.run(()) == 0
    record = json.loads(path.read_text())
    assert [one["sessions"] for one in record["speeds"]] == [1, 2]
    for one in record["speeds"]:
        assert one["rounds"] == 40
        assert 0 < one["median_seconds"] <= one["worst_seconds"]
        assert one["answers_per_second"] >= one["sessions"] / one["worst_seconds"]
    assert 0 < record["start_seconds"] <= record["compile_seconds"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "engine,env"}, "--what engine is measured alone"),
        ({"what": "engine", "config": tiny.PATH}, "takes --player in place of a config"),
        ({"what": "engine", "sessions": "0"}, "--sessions '0' must be numbers"),
        ({"what": "engine", "sessions": "9999"}, "sessions: 9999 is not from 1 to 4096"),
        ({"what": "engine", "player": "heuristic-search:wjx@1s"}, "name its simulations"),
    ],
)
def test_what_an_engine_is_timed_by_is_checked(options, said):
    with pytest.raises(UsageError, match=said):
        Bench(**options).run(())
