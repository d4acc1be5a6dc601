"""Lines of the console keep to its width and leave out the least important first."""

import pytest

from train.metrics.columns import FIT_COLUMNS, LEARNER_WINS, SELFPLAY_COLUMNS, describe_matches
from train.runtime.lines import (
    MOST_LINES,
    bar_line,
    columns_for,
    figures_line,
    header_line,
    line_every,
    phrases,
    row_line,
)

ROW = {
    "iteration": 12,
    "loss": 5.1234,
    "policy_loss": 3.25,
    "value_loss": 0.875,
    "mean_length": 28.31,
    "games_per_second": 1452.3,
    "positions_per_second": 41000.0,
    "win_rate": 0.625,
    "matches": {"greedy": 0.625},
}
TAIL = (" 46%", "0:01:12 elapsed", "0:01:25 left")


@pytest.mark.parametrize(
    ("width", "shown"),
    [(120, TAIL), (80, TAIL), (60, TAIL[1:]), (40, TAIL[2:]), (24, ())],
)
def test_bar_line(width, shown):
    line = bar_line("iteration 12 of 26", 12 / 26, TAIL, width).plain
    assert len(line) <= width
    assert line.startswith("iteration 12 of 26")
    for part in TAIL:
        assert (part in line) == (part in shown)
    if width >= 60:
        full, rest = line.count("━"), line.count("─")
        assert full + rest >= 8
        assert full == int((full + rest) * 12 / 26)


def test_a_bar_is_full_at_the_end_alone():
    assert bar_line("games", 0.999, (), 46).plain.count("─") == 1
    assert "─" not in bar_line("games", 1.0, (), 46).plain


def test_figures_stay_whole():
    figures = ["1452.3 games/s", "62% against greedy", "loss 5.123"]
    assert figures_line(figures, 80).plain == " · ".join(figures)
    assert figures_line(figures, 40).plain == " · ".join(figures[:2])
    assert figures_line(figures, 20).plain == figures[0]
    assert len(figures_line(figures, 10).plain) == 10


@pytest.mark.parametrize("columns", [SELFPLAY_COLUMNS, FIT_COLUMNS])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_tables_fit_and_align(columns, width):
    chosen = columns_for(columns, width)
    header, row = header_line(chosen), row_line(chosen, ROW)
    assert len(header) == len(row) <= width
    assert chosen[0].heading == "iteration"
    assert set(columns_for(columns, 60)) <= set(columns_for(columns, 80))
    if width == 200:
        assert chosen == list(columns)


def test_the_table_at_80_columns_has_what_matters():
    without_opponent = [column for column in SELFPLAY_COLUMNS if column.heading != LEARNER_WINS]
    chosen = columns_for(without_opponent, 80)
    assert header_line(chosen).split("  ")[0] == "iteration"
    assert [column.heading for column in chosen] == [
        *("iteration", "loss", "policy", "value", "plies", "games/s", "positions/s", "win rate"),
    ]
    assert row_line(chosen, ROW).split() == "12 5.123 3.250 0.875 28.3 1452.3 41000 62.5%".split()
    # Where a frozen opponent plays, the wins against it stand before the speed in positions.
    headings = [column.heading for column in columns_for(SELFPLAY_COLUMNS, 80)]
    assert LEARNER_WINS in headings and "positions/s" not in headings
    # A figure that a row lacks leaves its place empty.
    without = {name: value for name, value in ROW.items() if name != "win_rate"}
    assert row_line(chosen, without).rstrip().endswith("41000")


def test_a_row_in_words():
    said = phrases(SELFPLAY_COLUMNS, ROW)
    assert said[:2] == ["1452.3 games/s", "loss 5.123"]
    assert "28.3 plies a game" in said
    assert describe_matches(ROW) == "62% against greedy (iteration 12)"
    assert describe_matches({"iteration": 3}) == ""


def test_a_long_run_leaves_few_lines():
    assert [line_every(total) for total in (1, 26, 200, 201, 400, 401, 1000, 1001, 10**6)] == [
        *(1, 1, 1, 2, 2, 5, 5, 10, 5000)
    ]
    for total in (7, 333, 12_345):
        assert total / line_every(total) <= MOST_LINES
