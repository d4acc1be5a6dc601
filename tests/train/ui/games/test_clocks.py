"""Clocks run for one player at a time, and add time after a move."""

import pytest

from train.ui.games.clocks import Clocks, ClockSettings, read_clock


def test_only_the_clock_of_the_player_to_move_runs():
    now = [100.0]
    clocks = Clocks(ClockSettings(1.0, 5.0), 2, now=lambda: now[0])
    now[0] += 30
    assert [clocks.left(player) for player in (0, 1)] == [60, 60]
    clocks.start(0)
    now[0] += 20
    clocks.add_increment(0)
    clocks.start(1)
    now[0] += 7
    assert [clocks.left(player) for player in (0, 1)] == [45, 53]
    assert clocks.flagged is None
    now[0] += 60
    assert clocks.flagged == 1
    assert clocks.left(1) == 0


def test_stopped_clocks_keep_their_time():
    now = [0.0]
    clocks = Clocks(ClockSettings(1.0, 0.0), 2, now=lambda: now[0])
    clocks.start(1)
    now[0] += 10
    clocks.stop()
    now[0] += 500
    assert clocks.left(1) == 50
    assert clocks.flagged is None


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"minutes": 0}, "minutes"),
        ({"minutes": "5"}, "minutes"),
        ({"minutes": 5, "increment": -1}, "increment"),
        ({"minutes": float("nan")}, "minutes"),
    ],
)
def test_settings_that_no_clock_has(fields, word):
    with pytest.raises(ValueError, match=word):
        read_clock(fields)


def test_no_clock():
    assert read_clock(None) is None
    assert read_clock({"minutes": 5, "increment": 3}) == ClockSettings(5.0, 3.0)
