"""Estimates of what is left, with a clock that the tests turn."""

import pytest

from train.runtime.clock import RunClock, TaskClock, duration


class Watch:
    """Seconds that move only when they are moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def turn(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_run_has_the_iterations_and_matches_left():
    now = Watch()
    # A match of 100 games after iterations 5 and 10 of 12, one of 400 at the end.
    clock = RunClock(12, games_after=lambda done: 100 * ((done < 5) + (done < 10)) + 400, now=now)
    assert clock.remaining() is None
    now.turn(60)  # of which the compiler takes 50
    clock.note_iteration(1, 10.0)
    assert clock.elapsed() == 60
    assert clock.remaining() == 11 * 10
    for done in (2, 3, 4):
        now.turn(10)
        clock.note_iteration(done, 10.0)
    assert clock.remaining() == 8 * 10
    now.turn(10)
    clock.note_match(100, 4.0)
    assert clock.remaining() == 7 * 10 + (1 + 4) * 4
    clock.note_iteration(5, 10.0)
    assert clock.remaining() == 7 * 10 + (1 + 4) * 4


def test_after_the_last_iteration_there_are_matches_left():
    now = Watch()
    clock = RunClock(3, games_after=lambda done: 800, now=now)
    clock.note_iteration(3, 10.0)
    assert clock.remaining() is None
    assert clock.remaining(playing=(100, 2.0)) == 14
    clock.note_match(400, 8.0)
    assert clock.remaining() == 8
    assert clock.remaining(playing=(100, 2.0)) == 6
    assert clock.remaining(playing=(100, 7.0)) == 300 * (8 + 7) / 500
    clock.note_match(400, 8.0)
    assert clock.remaining() == 0


def test_what_is_left_runs_down_within_an_iteration_and_stands_still_when_it_is_late():
    now = Watch()
    clock = RunClock(3, now=now)
    clock.note_iteration(1, 10.0)
    now.turn(4)
    assert clock.remaining() == 16
    now.turn(40)
    assert clock.remaining() == 10
    clock.note_iteration(3, 10.0)
    assert clock.remaining() == 0


def test_a_resumed_run_counts_its_own_iterations_and_all_of_its_time():
    now = Watch()
    clock = RunClock(100, before=3600.0, now=now)
    assert clock.remaining() is None
    now.turn(30)
    clock.note_iteration(91, 20.0)
    assert clock.elapsed() == 3630
    assert clock.remaining() == 9 * 20


def test_recent_iterations_count():
    clock = RunClock(200, now=Watch())
    for done in range(1, 51):
        clock.note_iteration(done, 1.0 if done <= 30 else 3.0)
    assert clock.remaining() == 150 * 3


def test_a_match_leaves_the_compiler_out():
    now = Watch()
    clock = TaskClock(400, now=now)
    now.turn(30)
    assert clock.is_compiling
    assert (clock.seconds(), clock.remaining()) == (0, None)
    clock.note(0)
    assert not clock.is_compiling
    assert clock.remaining() is None
    now.turn(10)
    clock.note(100)
    assert (clock.seconds(), clock.remaining()) == (10, 30)


def test_parts_of_a_task_compile_too():
    now = Watch()
    clock = TaskClock(1000, now=now)
    clock.note(600)  # found, not played
    clock.compile()
    now.turn(50)
    clock.note(600)
    now.turn(10)
    clock.note(700)
    assert clock.remaining() == 30
    clock.compile()
    now.turn(99)
    assert clock.seconds() == 10


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
