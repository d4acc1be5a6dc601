"""The console of a run: live lines on a terminal, plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from train.metrics.columns import SELFPLAY_COLUMNS
from train.runtime.display import Display


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
        display.show(1, row(1), seconds=2.0)
        with display.match("a against b", 20) as task:
            task(0)
            task(20)
        display.say("a against b: 50%")
        display.keep("50% against b (iteration 2)")
        display.show(2, row(2, win_rate=0.5), seconds=2.0)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said
    assert said.splitlines() == [
        "iteration 1: 1452.0 games/s · loss 4.999 · 0:00:06 left",
        "a against b: 50%",
        "iteration 2: 1452.0 games/s · loss 4.998 · 0:00:04 left",
    ]


def test_a_pipe_is_no_terminal_even_where_colours_are_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display(total=4) as display:
        assert display.console.is_terminal
        assert not display.is_live


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_live_lines_fit(width):
    display = Display(total=26, done=11, columns=SELFPLAY_COLUMNS, console=terminal(width))
    display.keep("62% against greedy (iteration 10)")
    display.show(12, row(12, mean_length=28.3), seconds=3.0)
    with display.match("quickstart@16 against heuristic-search:wjx@64", 400) as task:
        compiling = [line.plain for line in display.lines(width)]
        task(0)
        task(100)
        display.note("stopping: this iteration is finished and saved first")
        lines = [line.plain for line in display.lines(width)]
    assert all(len(line) <= width for line in (*compiling, *lines))
    assert len(lines) == 4
    assert lines[0].startswith("iteration 12 of 26 ")
    assert lines[1].startswith("1452.0 games/s")
    if width >= 60:
        assert lines[0].endswith("elapsed  0:00:42 left")
        assert lines[1].startswith("1452.0 games/s · 62% against greedy (iteration 10)")
    if width >= 80:
        assert "  46%  " in lines[0]
        assert compiling[2].endswith("0 of 400 games  compiling")
        assert lines[2].endswith("100 of 400 games  0:00:00 left")
    assert len(display.lines(width)) == 3


def test_finished_iterations_stay_on_the_terminal_as_a_table():
    console = terminal(80)
    display = Display(total=400, columns=SELFPLAY_COLUMNS, console=console)
    for done in range(1, 401):
        display.show(done, row(done), seconds=1.0)
    lines = console.file.getvalue().splitlines()
    header = [line for line in lines if line.startswith("iteration ")]
    numbers = [int(line.split()[0]) for line in lines if line not in header]
    # One of two, so that a run leaves about 200; the first and the last are there.
    assert numbers == [1, *range(2, 401, 2)]
    assert len(header) == 11
    assert len({len(line) for line in lines}) == 1


def test_quiet_says_nothing(capsys):
    with Display(total=2, columns=SELFPLAY_COLUMNS, is_quiet=True) as display:
        display.show(1, row(1), seconds=1.0)
        display.say("hello")
    assert capsys.readouterr().out == ""
