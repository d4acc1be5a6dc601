"""The picture and the table of runs, and the command that writes them."""

import csv
import errno
import json
import os
from unittest import mock

import numpy as np
import pytest

from tests.support.learner.commands import command, complaint
from tests.support.refusals import refusal
from train.metrics import figure
from train.metrics.figure import draw_metrics, x_values
from train.metrics.rows import write_csv

ROWS = [
    {"iteration": 1, "positions": 10.0, "games_per_second": 4.0, "elapsed_seconds": 3600.0},
    {"iteration": 2, "positions": 10.0, "games_per_second": 5.0, "elapsed_seconds": 7200.0}
    | {"loss": 3.0, "win_rate": 0.5, "opponent": "greedy", "matches": {"greedy": 0.5}}
    | {"intervals_95": {"greedy": [0.4, 0.6]}},
    {"iteration": 3, "positions": 10.0, "games_per_second": 6.0, "elapsed_seconds": 9000.0}
    | {"loss": 2.0}
    | {"matches_by_rules": {"small": {"greedy": 0.75}}, "elo_by_rules": {"small": {"greedy": None}}}
    | {"intervals_by_rules": {"small": {"greedy": [0.625, 0.875]}}},
]


@pytest.fixture
def runs(tmp_path):
    """Two run directories: one with matches, one that is being written."""
    for name, rows, end in (
        ("one", ROWS, ""),
        ("old", ROWS[:2], '{"iter'),
    ):
        (tmp_path / name).mkdir()
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / name / "metrics.jsonl").write_text(lines + end)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "opening", "axis"),
    [
        ("a.png", b"\x89PNG", "iteration"),
        ("b/c.svg", b"<?xml", "hours"),
        ("d.pdf", b"%PDF", "positions"),
    ],
)
def test_command_draws_runs(runs, name, opening, axis):
    out = runs / name
    said = command("curves", runs / "one", runs / "old", "--out", out, "--axis", axis)
    assert (said.code, said.err, said.out) == (0, "", f"written: {out} (curves)\n")
    assert out.read_bytes().startswith(opening)


def test_the_default_picture_lies_with_the_run(runs, monkeypatch):
    monkeypatch.setattr(
        "train.metrics.figure.draw_metrics", lambda path, *_, **__: path.write_bytes(b"")
    )
    for names, folder in ((["one"], runs / "one"), (["one", "old"], runs)):
        said = command("curves", *(runs / name for name in names))
        assert said.out == f"written: {folder / 'curves.png'} (curves)\n"
        assert (folder / "curves.png").exists()


def test_panels_show_what_the_rows_say(runs, monkeypatch):
    drawn = []
    monkeypatch.setattr(figure, "_add_legend", lambda picture, runs: drawn.append(picture))
    draw_metrics(runs / "a.svg", {"one": ROWS, "two": ROWS[:1]}, axis="hours")
    axes = drawn[0].axes
    assert [each.get_title(loc="left") for each in axes] == [
        *("loss", "win rate against greedy", "games a second")
    ]
    (loss,) = axes[0].lines
    np.testing.assert_allclose(loss.get_xydata(), [[2.0, 3.0], [2.5, 2.0]])
    first, second = axes[2].lines
    np.testing.assert_allclose(first.get_xydata(), [[1, 4], [2, 5], [2.5, 6]])
    np.testing.assert_allclose(second.get_xydata(), [[1, 4]])
    # The band of one match has no width, so a line shows its interval.
    band, line = axes[1].collections
    assert band.get_paths()[0].get_extents().intervaly.tolist() == [0.4, 0.6]
    assert line.get_segments()[0][:, 1].tolist() == [0.4, 0.6]
    # No run has matches: no panel for them.
    draw_metrics(runs / "b.svg", {"two": ROWS[:1]})
    assert [each.get_title(loc="left") for each in drawn[1].axes] == ["games a second"]


def test_a_run_of_several_rule_sets_has_a_line_for_each(runs, monkeypatch):
    row = {"iteration": 1, "win_rate": 0.5, "opponent": "wjx", "intervals_95": {"wjx": [0.4, 0.6]}}
    by_rules = {
        "matches_by_rules": {"small": {"wjx": 0.75}, "large": {"wjx": 0.25}},
        "intervals_by_rules": {"small": {"wjx": [0.6, 0.9]}, "large": {"wjx": [0.1, 0.4]}},
    }
    row |= {"positions": 10.0}
    rows = [row, {**row, "iteration": 2} | by_rules]
    drawn = []
    monkeypatch.setattr(figure, "_add_legend", lambda picture, runs: drawn.append((picture, runs)))
    draw_metrics(runs / "a.svg", {"mixed": rows})
    draw_metrics(runs / "b.svg", {"mixed": rows, "other": [row]})
    (alone, names), (_, beside) = drawn
    assert (list(names), list(beside)) == (["mixed", "small", "large"], ["mixed", "other"])
    _, small, large, _ = alone.axes[0].lines  # the last is the line at one half
    assert small.get_xydata().tolist() == [[2, 0.75]]
    assert large.get_xydata().tolist() == [[2, 0.25]]
    draw_metrics(runs / "c.svg", {"small": rows}, axis="positions")
    by_positions, names = drawn[-1]
    assert list(names) == ["small", "small (rule set)", "large"]
    assert by_positions.axes[0].lines[1].get_xydata().tolist() == [[20, 0.75]]


def test_the_same_rows_give_the_same_file(runs):
    for name in ("a.svg", "b.svg"):
        draw_metrics(runs / name, {"one": ROWS})
    assert (runs / "a.svg").read_bytes() == (runs / "b.svg").read_bytes()


def test_a_damaged_row_stands_at_the_time_before_it():
    damaged = [ROWS[0], {"iteration": 2}, ROWS[2]]
    np.testing.assert_allclose(x_values(damaged, "hours"), [1, 1, 2.5])


def test_running_means_are_those_of_the_window():
    values = np.arange(9.0) ** 2
    expected = [np.mean(values[max(0, i - 2) : i + 3]) for i in range(9)]
    np.testing.assert_allclose(figure._running_mean(values, 5), expected)


def test_table_of_all_runs(runs):
    path = runs / "all.csv"
    said = command("curves", runs / "one", runs / "old", "--csv", path)
    assert said.out == f"written: {path} (metrics)\n"
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["run"], line["iteration"]) for line in lines] == [
        *(("one", "1"), ("one", "2"), ("one", "3"), ("old", "1"), ("old", "2"))
    ]
    assert (lines[1]["win_rate/greedy"], lines[1]["low/greedy"]) == ("0.5", "0.4")
    assert (lines[0]["win_rate/greedy"], lines[0]["loss"]) == ("", "")
    rates = [lines[2][f"small/{name}/greedy"] for name in ("win_rate", "low", "high")]
    assert rates == ["0.75", "0.625", "0.875"]
    assert lines[1]["small/low/greedy"] == ""
    assert not (runs / "curves.png").exists()


@pytest.mark.parametrize(("write", "name"), [(write_csv, "a.csv"), (draw_metrics, "a.svg")])
def test_a_full_disk_leaves_no_half_file(tmp_path, monkeypatch, write, name):
    (tmp_path / name).write_text("old")
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "replace", mock.Mock(side_effect=error))
    message = refusal(write, tmp_path / name, {"one": ROWS})
    assert message == f"{tmp_path / name}: cannot be written: No space left on device"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([], "RUNS: "),
        (["nowhere"], "nowhere"),
        (["empty"], "empty/metrics.jsonl"),
        (["new"], "iteration"),
        (["one", "one"], "once"),
        (["one", "--out", "x.bmp"], ".png"),
        (["one", "--out", "one/metrics.jsonl/x.png"], "written"),
        (["one", "--csv", "empty"], "empty"),
        (["one", "--csv", "x.csv", "--axis", "hours"], "--axis"),
    ],
)
def test_usage_errors_are_one_line(runs, monkeypatch, words, word):
    monkeypatch.chdir(runs)
    (runs / "empty").mkdir()
    (runs / "new").mkdir()
    (runs / "new" / "metrics.jsonl").write_text("")
    assert word in complaint(command("curves", *words))
