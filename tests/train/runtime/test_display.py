"""The console of a run: live lines on a terminal, plain lines elsewhere."""

import io
import re

import pytest
from rich.console import Console

from train.metrics.columns import FIT_COLUMNS, LEARNER_WINS, SELFPLAY_COLUMNS, describe_matches
from train.runtime import display as display_lib
from train.runtime.display import Display, columns_for, duration

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


def row(done: int, **more: float) -> dict[str, float]:
    return {"iteration": done, "games_per_second": 1452.0, "loss": 5.0 - done / 1000, **more}


class Terminal(io.StringIO):
    """Keeps what a terminal would get."""

    def isatty(self) -> bool:
        return True


def terminal(width: int) -> Console:
    return Console(file=Terminal(), force_terminal=True, width=width, height=24, color_system=None)


def test_elsewhere_each_iteration_is_a_plain_line(capsys):
    display = Display(total=4, columns=SELFPLAY_COLUMNS)
    with display:
        assert not display.is_live
        display.show(1, row(1))
        with display.match("a against b", 20) as task:
            task(0)
            task(20)
        display.say("a against b: 50%")
        display.keep("50% against b (iteration 2)")
        display.show(2, row(2, mean_length=28.31))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said
    first, match, second = said.splitlines()
    assert first == "iteration 1: 1452.0 games/s · loss 4.999 · -:--:-- left"
    assert match == "a against b: 50%"
    assert second.startswith("iteration 2: 1452.0 games/s · loss 4.998 · 28.3 plies a game · ")
    assert re.search(r" · \d:\d\d:\d\d left$", second)


def test_a_pipe_is_no_terminal_even_where_colours_are_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display(total=4) as display:
        assert display.console.is_terminal
        assert not display.is_live


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_live_lines(width):
    console = terminal(width)
    display = Display(total=26, done=11, columns=SELFPLAY_COLUMNS, console=console)
    with display:
        display.keep("62% against greedy (iteration 10)")
        display.show(12, row(12, mean_length=28.3))
        with display.match("quickstart@16 against [wjx]", 400) as task:
            task(0)
            task(100)
            task.keep("wjx ahead")
            assert display.note("stopping")
            display._bars.refresh()
    text = console.file.getvalue()
    assert "1452.0 games/s" in text and "wjx ahead" in text and "stopping" in text
    if width >= 80:
        assert "12 of 26 iterations" in text and "100 of 400 games" in text
        assert "quickstart@16 against [wjx]" in text
        assert "1452.0 games/s · 62% against greedy (iteration 10) · loss 4.988" in text


def test_finished_iterations_stay_on_the_terminal_as_a_table():
    console = terminal(80)
    display = Display(total=400, columns=SELFPLAY_COLUMNS, console=console)
    for done in range(1, 401):
        display.show(done, row(done))
    lines = console.file.getvalue().splitlines()
    header = [line for line in lines if line.startswith("iteration ")]
    numbers = [int(line.split()[0]) for line in lines if line not in header]
    # One of two, so that a run leaves about 200; the first and the last are there.
    assert numbers == [1, *range(2, 401, 2)]
    assert len(header) == 11
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("columns", [SELFPLAY_COLUMNS, FIT_COLUMNS])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_tables_fit_and_align(columns, width):
    console = terminal(width)
    Display(total=26, columns=columns, console=console).show(12, ROW)
    header, line = console.file.getvalue().splitlines()
    assert len(header) == len(line) <= width
    chosen = columns_for(columns, width)
    assert chosen[0].heading == "iteration"
    assert set(columns_for(columns, 60)) <= set(columns_for(columns, 80))
    if width == 200:
        assert chosen == list(columns)


def test_the_table_at_80_columns_has_what_matters():
    without_opponent = [column for column in SELFPLAY_COLUMNS if column.heading != LEARNER_WINS]
    chosen = columns_for(without_opponent, 80)
    assert [column.heading for column in chosen] == [
        *("iteration", "loss", "policy", "value", "plies", "games/s", "positions/s", "win rate"),
    ]
    texts = [column.text(ROW) for column in chosen]
    assert texts == "12 5.123 3.250 0.875 28.3 1452.3 41000 62.5%".split()
    # Where a frozen opponent plays, the wins against it stand before the speed in positions.
    headings = [column.heading for column in columns_for(SELFPLAY_COLUMNS, 80)]
    assert LEARNER_WINS in headings and "positions/s" not in headings
    # A figure that a row lacks leaves its place empty.
    assert chosen[-1].text({"iteration": 12}) == ""


def test_matches_in_words():
    assert describe_matches(ROW) == "62% against greedy (iteration 12)"
    assert describe_matches({"iteration": 3}) == ""


def test_quiet_says_nothing(capsys):
    with Display(total=2, columns=SELFPLAY_COLUMNS, is_quiet=True) as display:
        display.show(1, row(1))
        display.say("hello")
    assert capsys.readouterr().out == ""


def test_seconds_of_a_task_leave_the_compiler_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display_lib.time, "monotonic", lambda: now[0])
    with Display().task("match", 1000, "games") as task:
        now[0] += 30
        assert task.seconds == 0
        task(600)  # found, not played
        now[0] += 10
        assert task.seconds == 10
        task.compile()
        now[0] += 50
        assert task.seconds == 10
        task(700)
        now[0] += 5
        assert task.seconds == 15


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-:--:--"),
        (0, "0:00:00"),
        (59.6, "0:01:00"),
        (3725, "1:02:05"),
        (360_000, "100:00:00"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
