"""The suite chooses what to measure; ratios, goals, table and record hold its figures."""

import dataclasses
import io
import json

import jax
import pytest
from rich.console import Console

from tests.support.learner import tiny
from tests.support.learner.counting_game import counting_game
from train.bench import report, scaling, suite
from train.bench.harness import peak
from train.bench.harness.program import ProgramStats
from train.bench.harness.timing import Row
from train.bench.parts import alphazero, games, learn, memory, search, selfplay, shares
from train.bench.suite import Figures, Ratio, Request
from train.config import RunConfig
from train.runtime.errors import UsageError


def row(name: str, batch: int, **rates: float) -> Row:
    stats = ProgramStats(1.5, True, 1234, 2_000_000)
    return Row(name, batch, 1, (1.0,), rates, 0xABC, stats)


def figures() -> Figures:
    tree = memory.TreeMemory(4096, 64, 208, 5072, 5080.4, 1_900_000_000)
    rows = (("env", row(games.CORE, 64, plies=1.25e6)), ("learn", row(learn.LEARNER, 8, steps=2.0)))
    return Figures(rows, (Ratio("time of learner over x", 8, 1.3),), tree)


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
    monkeypatch.setattr(suite.peers, "peer_games", lambda names: named.append(list(names)) or [])
    monkeypatch.setattr(suite.peers, "plain_games", lambda names: named.append(list(names)) or [])
    for against in (("pgx",), ("pgx-hex", "pgx"), (suite.MCTX_PUBLIC,)):
        list(suite._env(Request(config=tiny.config(), against=against), 4))
    assert named == [["othello"]] * 2 + [["hex", "othello"]] * 2


def test_search_that_does_not_fit_is_named():
    request = Request(config=RunConfig(), batches=(64, 8192), against=(suite.MCTX_PUBLIC,))
    assert [suite._fits_public(request, batch) for batch in request.batches] == [True, False]
    said = suite._left_out(request, 8192)
    assert said.startswith("left out: mctx over public actions at batch 8,192, whose tree takes 16")
    assert suite._fits_public(dataclasses.replace(request, against=()), 8192)


def in_parts(rows):
    """Rows with the parts that measured them, in order; the peak is measured in each part."""
    part, found = "selfplay", []
    for each in rows:
        part = "learn" if each.name == learn.LEARNER else part
        part = "env" if each.name == games.CORE else part
        part = "search" if each.name == search.UNIFORM else part
        found.append((part, each))
    return found


def test_ratios_are_of_times_and_of_better_batches():
    found = list(
        suite.ratios(
            in_parts(
                [
                    row(selfplay.SELFPLAY, 64, positions=20.0, evaluations=80.0),
                    row(selfplay.FORWARD, 64, evaluations=100.0, operations=70.0),
                    row(peak.PRODUCT, 64, operations=80.0),
                    row(learn.LEARNER, 64, steps=5.0),
                    row(learn.BACKWARD, 64, steps=6.0, operations=60.0),
                    row(peak.PRODUCT, 64, operations=96.0),
                    row(games.CORE, 64, plies=300.0),
                    row(games.CORE, 128, plies=200.0),
                    row("env, BTRH", 64, plies=90.0),
                    row("pgx othello", 64, plies=50.0),
                    row("pgx othello", 128, plies=60.0),
                    row("pgx othello, planes", 64, plies=45.0),
                    row("pgx othello, plain", 64, plies=30.0),
                    row("pgx hex", 64, plies=6.0),
                    row("pgx hex, planes", 64, plies=5.0),
                    row("pgx hex, plain", 64, plies=75.0),
                    row("pgx hex, planes, one device", 64, plies=80.0),
                    row("env, BTRH, plain", 64, plies=150.0),
                    row(search.UNIFORM, 64, simulations=40.0),
                    row(search.NETWORK, 64, simulations=20.0),
                    row(search.MCTX, 64, simulations=32.0),
                    row(search.MCTX_NETWORK, 64, simulations=16.0),
                    row(search.PUBLIC, 64, simulations=4.0),
                    row(search.PUBLIC_NETWORK, 64, simulations=2.5),
                    row(f"{alphazero.LOOP}, othello", 64, positions=4.0, evaluations=50.0),
                    row(f"{alphazero.LOOP}, othello", 128, positions=5.0, evaluations=40.0),
                ]
            )
        )
    )
    assert found == [
        Ratio("time of self-play over network alone", 64, 1.25),
        Ratio("operations of network alone over matrix product", 64, 0.875),
        Ratio("time of learner over network forward and backward", 64, 1.2),
        Ratio("operations of network forward and backward over matrix product", 64, 0.625),
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
    times = dict(zip(shares.PROGRAMS, (10.0, 9.0, 3.0, 2.0, 0.5), strict=True))
    rows = []
    for name, seconds in times.items():
        speed = {"moves": 1 / seconds / 17, "simulations": 16 / seconds / 17}
        if name == selfplay.SELFPLAY:
            speed = {"positions": 3.0, "evaluations": 1 / seconds}
        elif name == shares.PROGRAMS[-1]:
            speed = {"plies": 1 / seconds}
        rows.append(("selfplay", row(name, 64, **speed)))
    assert list(suite.ratios(rows[:-1])) == []
    found = {ratio.name: ratio.value for ratio in suite.ratios(rows)}
    assert found == pytest.approx(
        {
            "percent of self-play: plies kept, openings, counts": 10.0,
            "percent of self-play: network": 60.0,
            "percent of self-play: planes": 10.0,
            "percent of self-play: trees": 15.0,
            "percent of self-play: the game": 5.0,
        }
    )


def test_games_are_plies_over_the_length_of_a_game(monkeypatch):
    """The length is that of all games measured, since few end in a short run of few boards."""
    measured = [row("x", 2, plies=30.0, games=0.0), row("x", 4, plies=90.0, games=40.0)]
    monkeypatch.setattr(scaling.games, "core_game", lambda rules, on_bits: counting_game())
    monkeypatch.setattr(scaling.timing, "take_turns", lambda benches, **how: measured)
    points = scaling.sweep(tiny.config().rules, batches=(2, 4), seconds=1.0, repeats=2)
    assert points == [(2, 30.0, 10.0), (4, 90.0, 30.0)]


def test_the_plot_names_batches_and_both_speeds(tmp_path):
    points = [scaling.Point(1, 80.0, 2.0), scaling.Point(64, 4000.0, 100.0)]
    scaling.draw(tmp_path / "a.svg", points, title="Random play of hkoi on a chip")
    text = (tmp_path / "a.svg").read_text()
    for said in ("Random play of hkoi on a chip", "games a second", "plies a second", "no knee"):
        assert f"<!-- {said}" in text
    assert "<!-- 64 -->" in text and "<!-- 1 -->" in text
    with pytest.raises(UsageError, match="its ending must be one of"):
        scaling.draw(tmp_path / "a.fun", points, title="")


def test_table_holds_every_figure():
    text = printed(report.bench_report(figures()))
    for part in ("1.25 M plies", "1.5 (cache)", "1,234", "2.0", "00000abc", "batch 8: 1.30"):
        assert part in text
    assert "5,072 bytes a node by formula, 5,080 a board and simulation" in text
    assert "1.90 GB by memory analysis, within 2 GB" in text


def test_record_is_json():
    record = report.bench_record(
        Request(config=tiny.config()), figures(), [scaling.Point(4, 2.5, 0.5)]
    )
    again = json.loads(json.dumps(record))
    assert again["rows"][0]["rates"] == {"plies": 1.25e6}
    assert again["rows"][0]["stats"]["equations"] == 1234
    assert again["memory"]["total"] == 1_900_000_000
    assert again["environment"]["versions"]["jax"] == jax.__version__
    assert again["scaling"] == [{"batch": 4, "plies": 2.5, "games": 0.5}]
