"""The suite chooses what to measure, up to the end of memory; ratios, knees, table and record hold
its figures, here made up."""

import io
from types import SimpleNamespace

import jax
import pytest
from rich.console import Console

from tests.support.learner import tiny
from train.bench import alphazero, games, report, search, suite, trainer
from train.bench.suite import SHARED, Figures, Ratio, Request, ratios
from train.bench.timing import BenchRow, ProgramStats
from train.runtime.errors import UsageError

OUT_OF_MEMORY = jax.errors.JaxRuntimeError(
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
)


def row(part: str, name: str, batch: int, **rates: float) -> BenchRow:
    stats = ProgramStats(1.5, 2_000_000)
    return BenchRow(part, name, batch, 1, (1.0,), rates, 0xABC, stats)


def printed(thing) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(thing)
    return text.getvalue()


def test_devices_that_cannot_share_a_batch_stay_idle(monkeypatch):
    monkeypatch.setattr(suite.jax, "device_count", lambda: 4)
    monkeypatch.setattr(suite, "all_devices", lambda count: count)
    assert [suite.devices_for(batch) for batch in (1, 2, 6, 8)] == [1, 2, 2, 4]


def test_pgx_is_othello_unless_others_are_named(monkeypatch):
    named = []
    monkeypatch.setattr(games, "peer_games", lambda name: named.append(name) or [])
    for against in (("pgx",), ("pgx-hex", "pgx"), (suite.MCTX_PUBLIC,)):
        next(suite._env(Request(config=tiny.config(), against=against), 4))
    assert named == ["othello", "hex", "othello"]


def test_ratios_are_of_times_and_of_better_batches():
    found = ratios(
        [
            row("selfplay", trainer.SELFPLAY, 64, positions=20.0, evaluations=80.0),
            row("selfplay", trainer.FORWARD, 64, evaluations=100.0),
            row("learn", trainer.LEARNER, 64, steps=5.0),
            row("learn", trainer.BACKWARD, 64, steps=6.0),
            row("env", games.CORE, 64, plies=300.0),
            row("env", games.CORE, 128, plies=200.0),
            row("env", "env, BTRH", 64, plies=90.0),
            row("env", "pgx othello", 64, plies=50.0),
            row("env", "pgx othello", 128, plies=60.0),
            row("env", "pgx othello, planes", 64, plies=45.0),
            row("env", "pgx othello, plain", 64, plies=30.0),
            row("env", "pgx hex", 64, plies=6.0),
            row("env", "pgx hex, planes", 64, plies=5.0),
            row("env", "pgx hex, plain", 64, plies=75.0),
            row("env", "pgx hex, planes, one device", 64, plies=80.0),
            row("env", "env, BTRH, plain", 64, plies=150.0),
            row("env", "env.step", 128),
            row("search", search.UNIFORM, 64, simulations=40.0),
            row("search", search.NETWORK, 64, simulations=20.0),
            row("search", search.MCTX, 64, simulations=32.0),
            row("search", search.MCTX_NETWORK, 64, simulations=16.0),
            row("search", search.PUBLIC, 64, simulations=4.0),
            row("search", search.PUBLIC_NETWORK, 64, simulations=2.5),
            row("selfplay", f"{alphazero.LOOP}, othello", 64, positions=4.0, evaluations=50.0),
            row("selfplay", f"{alphazero.LOOP}, othello", 128, positions=5.0, evaluations=40.0),
        ]
    )
    assert list(found) == [
        Ratio("time of self-play over network alone", 64, 1.25),
        Ratio("time of learner over network forward and backward", 64, 1.2),
        Ratio("plies of core over pgx othello", 0, 5.0),
        Ratio("plies of env, BTRH over pgx othello, planes", 0, 150 / 45),
        Ratio("plies of core over pgx hex", 0, 4.0),
        Ratio("plies of env, BTRH over pgx hex, planes", 0, 150 / 80),
        Ratio(f"simulations of {search.UNIFORM} over {search.MCTX}", 0, 1.25),
        Ratio(f"simulations of {search.NETWORK} over {search.MCTX_NETWORK}", 0, 1.25),
        Ratio(f"simulations of {search.UNIFORM} over {search.PUBLIC}", 0, 10.0),
        Ratio(f"simulations of {search.NETWORK} over {search.PUBLIC_NETWORK}", 0, 8.0),
        Ratio(f"positions of self-play over {alphazero.LOOP}", 0, 4.0),
        Ratio(f"evaluations of self-play over {alphazero.LOOP}", 0, 1.6),
    ]


def test_parts_of_self_play_add_up():
    """An evaluation of 10, 9, 3, 2 and 0.5 seconds, in self-play, in moves of 16 simulations and a
    root by three searches, and in random play."""
    times = dict(zip(SHARED, (10.0, 9.0, 3.0, 2.0, 0.5), strict=True))
    rows = []
    for name, seconds in times.items():
        speed = {"moves": 1 / seconds / 17, "simulations": 16 / seconds / 17}
        if name == trainer.SELFPLAY:
            speed = {"positions": 3.0, "evaluations": 1 / seconds}
        elif name == SHARED[-1]:
            speed = {"plies": 1 / seconds}
        rows.append(row("selfplay", name, 64, **speed))
    assert list(ratios(rows[:-1])) == []
    found = {ratio.name: ratio.value for ratio in ratios(rows)}
    assert found == pytest.approx(
        {
            "percent of self-play: plies kept, openings, counts": 10.0,
            "percent of self-play: network": 60.0,
            "percent of self-play: planes": 10.0,
            "percent of self-play: trees": 15.0,
            "percent of self-play: the game": 5.0,
        }
    )


def test_games_are_plies_over_the_length_of_a_game():
    """The length is that of all games measured, since few end in a short run of few boards."""
    rows = [row("plot", "x", 2, plies=30.0, games=0.0), row("plot", "x", 4, plies=90.0, games=40.0)]
    assert report.games_by_batch(rows) == {2: 10.0, 4: 30.0}


def test_the_plot_names_batches_and_speeds(tmp_path):
    rows = [
        row("plot", "x", batch, plies=40 * games, games=games)
        for batch, games in ((1, 2.0), (64, 100.0))
    ]
    report.write_plot(tmp_path / "a.svg", rows, title="Random play of hkoi on a chip")
    text = (tmp_path / "a.svg").read_text()
    for said in ("Random play of hkoi on a chip", "games a second", "no knee"):
        assert f"<!-- {said}" in text
    assert "<!-- 64 -->" in text and "<!-- 1 -->" in text
    with pytest.raises(UsageError, match="its ending must be one of"):
        report.write_plot(tmp_path / "a.fun", rows, title="")


def test_table_holds_every_figure():
    rows = row("env", games.CORE, 64, plies=1.25e6), row("learn", trainer.LEARNER, 8, steps=2.0)
    figures = Figures(rows, (Ratio("time of learner over x", 8, 1.3),))
    text = printed(report.bench_report(figures))
    for part in ("1.25 M plies", "1.5", "2.0", "00000abc", "batch 8: 1.30"):
        assert part in text


@pytest.fixture(autouse=True)
def no_garbage(monkeypatch):
    """A batch that does not fit leaves garbage, which takes long to collect beside other tests."""
    monkeypatch.setattr(suite, "gc", SimpleNamespace(collect=lambda: 0))


def measure_up_to(largest: int, error: Exception, asked: list[int] | None = None):
    """A device whose memory ends after a batch."""

    def measure(batch: int) -> list[BenchRow]:
        if asked is not None:
            asked.append(batch)
        if batch > largest:
            raise error
        return [row("selfplay", "self-play", batch, evaluations=float(batch))] * 2

    return measure


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OUT_OF_MEMORY, "out of memory: Out of memory while trying"),
        (MemoryError(), "out of memory: an allocation failed"),
    ],
)
def test_a_sweep_stops_where_memory_ends(error, reason):
    asked: list[int] = []
    measure = measure_up_to(2048, error, asked)
    rows, (note,) = suite.sweep("selfplay", (512, 2048, 8192, 16384), measure)
    assert asked == [512, 2048, 8192]
    assert [each.batch for each in rows] == [512, 512, 2048, 2048]
    assert note.startswith(f"selfplay: stopped before 8,192 boards: {reason}")


@pytest.mark.parametrize(("largest", "error"), [(2, OUT_OF_MEMORY), (4, RuntimeError("broken"))])
def test_the_smallest_batch_must_fit_and_other_errors_are_not_the_end_of_memory(largest, error):
    with pytest.raises(type(error)):
        suite.sweep("env", (4, 8), measure_up_to(largest, error))


@pytest.mark.parametrize(
    ("speeds", "knee", "said"),
    [
        ({256: 100.0, 64: 99.0, 16: 79.0, 1: 1.0}, 64, "knee at 64 boards, the fewest with 80%"),
        ({16: 10.0}, None, "no knee: the speed still rises at 16 boards"),
        ({16: 10.0, 64: 98.9}, None, "no knee: the speed still rises at 64 boards"),
        ({16: 10.0, 64: 98.9, 256: 124.0}, None, "no knee: the speed still rises at 256 boards"),
        ({16: 10.0, 64: 98.9, 256: 400.0}, None, "no knee: the speed still rises at 256 boards"),
    ],
)
def test_knee_is_the_first_near_the_best_and_a_rising_curve_has_none(speeds, knee, said):
    assert report.knee_at(speeds) == knee
    assert report.knee_text(speeds).startswith(said)


def test_a_sweep_has_a_line_for_its_knee():
    speeds = ((512, 50.0), (2048, 95.0), (8192, 100.0))
    rows = tuple(row("learn", "learner", x, positions=speed) for x, speed in speeds)
    line = "learner: knee at 2,048 samples, the fewest with 80% of the best speed\n"
    assert line in printed(report.bench_report(Figures(rows)))
    assert "knee" not in printed(report.bench_report(Figures(rows[:2])))


def test_networks_of_table_1_stand_beside_the_papers():
    """6R evaluates 100 boards a second, 6T 40: 2.5 times the time; 2.65 in the paper."""
    rows = [
        row("table1", name, 16, evaluations=x) for name, x in (("6R, …", 100.0), ("6T, …", 40.0))
    ]
    assert list(suite.table1_times(rows)) == [
        ("time of 6R over 6R (paper 1.00)", 1.0),
        ("time of 6T over 6R (paper 2.65)", 2.5),
    ]


def test_the_suite_sweeps_each_part_on_its_own(monkeypatch):
    """Only the part that does not fit stops; what it could not measure is told."""
    monkeypatch.setattr(suite.jax, "default_backend", lambda: "gpu")
    measured = []

    def measure(request, part, batch, on_progress):
        measured.append((part, batch))
        return measure_up_to(2048 if part == "selfplay" else 10**6, OUT_OF_MEMORY)(batch)

    monkeypatch.setattr(suite, "measure_part", measure)
    monkeypatch.setattr(suite, "ratios", lambda rows: ())
    found = suite.run_suite(Request(tiny.config(), parts=("selfplay", "learn")))
    assert [batch for part, batch in measured if part == "selfplay"] == [512, 2048, 8192]
    assert [batch for part, batch in measured if part == "learn"] == [512, 2048, 8192, 16384]
    assert [note.partition(":")[0] for note in found.notes] == ["selfplay"]
