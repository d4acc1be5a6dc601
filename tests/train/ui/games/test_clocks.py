"""Clocks run for one player at a time, and add time after a move."""

from train.ui.games.clocks import Clocks, ClockSettings


def test_only_the_clock_of_the_player_to_move_runs():
    now = [100.0]
    clocks = Clocks(ClockSettings(1.0, 5.0), [60.0] * 2, now=lambda: now[0])
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
    clocks = Clocks(ClockSettings(1.0, 0.0), [60.0] * 2, now=lambda: now[0])
    clocks.start(1)
    now[0] += 10
    clocks.stop()
    now[0] += 500
    assert clocks.left(1) == 50
    assert clocks.flagged is None
