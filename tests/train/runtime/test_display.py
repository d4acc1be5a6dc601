"""The console of a run: live lines on a terminal, plain lines elsewhere."""

import io
import re

import pytest
from rich.console import Console

from train.metrics.rows import SELFPLAY_FORMATS, describe_matches
from train.runtime import display as display_lib
from train.runtime.display import Display, duration, waiting


def row(done: int, **more: float) -> dict[str, float]:
    return {"iteration": done, "games_per_second": 1452.0, "loss": 5.0 - done / 1000, **more}


class Terminal(io.StringIO):
    """Keeps what a terminal would get."""

    def isatty(self) -> bool:
        return True


def terminal(width: int) -> Console:
    return Console(file=Terminal(), force_terminal=True, width=width, height=24, color_system=None)


def test_elsewhere_each_iteration_is_a_plain_line(capsys):
    display = Display(total=4, figures=SELFPLAY_FORMATS)
    with display:
        assert not display.is_live
        display.show(1, row(1))
        with display.task("a against b", 20, "games") as task:
            task(0)
            task(20)
        display.say("a against b: 50%")
        display.keep("50% against b (iteration 2)")
        display.show(2, row(2, policy_loss=3.25, value_loss=0.75, mean_length=28.31), after=3600)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\r" not in said
    first, match, second = said.splitlines()
    assert first == "iteration 1: 1452.0 games/s · loss 4.999 · -:--:-- left"
    assert match == "a against b: 50%"
    assert second.startswith("iteration 2: 1452.0 games/s · loss 4.998 · policy loss 3.250 · ")
    assert re.search(r" · 1:\d\d:\d\d left$", second)  # with what comes after the iterations
    assert len(second) <= 80


def test_a_pipe_is_no_terminal_even_where_colours_are_forced(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display(total=4) as display:
        assert display.console.is_terminal
        assert not display.is_live


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_live_lines(width):
    console = terminal(width)
    display = Display(total=26, done=11, figures=SELFPLAY_FORMATS, console=console)
    with display:
        display.keep("62% against greedy (iteration 10)")
        display.show(12, row(12, mean_length=28.3))
        with display.task("quickstart@16 against [wjx]", 400, "games") as task:
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


def test_time_left_counts_what_comes_after_the_iterations():
    console = terminal(80)
    display = Display(total=2, figures=SELFPLAY_FORMATS, console=console)
    with display:
        display.show(2, row(2), after=3600)
        display._bars.refresh()
        assert " 1:00:00" in console.file.getvalue()
        console.file.truncate(0)
        with display.task("a against b", 20, "games"):
            display._bars.refresh()
    assert " 1:00:00" not in console.file.getvalue()


def test_lines_of_finished_iterations_stay_on_the_terminal():
    console = terminal(60)
    display = Display(total=400, figures=SELFPLAY_FORMATS, console=console)
    for done in range(1, 401):
        display.show(done, row(done, mean_length=28.31, policy_loss=3.25))
    lines = console.file.getvalue().splitlines()
    # One of two, so that a run leaves about 200.
    assert [line.split(":")[0] for line in lines] == [f"iteration {n}" for n in range(2, 401, 2)]
    assert lines[0] == "iteration 2: 1452.0 games/s · loss 4.998 · policy loss 3.25…"


def test_matches_in_words():
    matched = {"iteration": 12, "matches": {"greedy": 0.625}}
    assert describe_matches(matched) == "62% against greedy (iteration 12)"
    assert describe_matches({"iteration": 3}) == ""


def test_quiet_says_nothing(capsys):
    with Display(total=2, figures=SELFPLAY_FORMATS, is_quiet=True) as display:
        display.show(1, row(1))
        display.say("hello")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("is_quiet", [True, False])
def test_a_quiet_wait_leaves_no_output_in_a_notebook(monkeypatch, is_quiet):
    shown = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("IPython.display.display", shown.append)
    with waiting("compiling", is_quiet=is_quiet):
        pass
    assert bool(shown) != is_quiet


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
