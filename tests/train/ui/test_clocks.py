"""Clocks run for one player at a time."""

from train.ui.game_tree import Clocks, ClockSettings


def test_only_the_clock_of_the_player_to_move_runs():
    now = [100.0]
    clocks = Clocks(ClockSettings(1.0, 5.0), [60.0] * 2, now=lambda: now[0])
    now[0] += 30
    assert [clocks.left(player) for player in (0, 1)] == [60, 60]
    clocks.start(0)
    now[0] += 20
    clocks.start(1)
    now[0] += 7
    assert [clocks.left(player) for player in (0, 1)] == [40, 53]
    clocks.stop()
    now[0] += 500
    assert clocks.left(1) == 53
    clocks.start(1)
    now[0] += 60
    assert clocks.left(1) == 0
