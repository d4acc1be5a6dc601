"""The scripts that compare searches in rounds, and take self-play's time apart."""

import pytest

from tests.support.learner import tiny
from train.bench.harness.timing import Row
from train.bench.scripts import rounds, selfplay_parts


def test_parts_add_up_to_the_whole():
    times = [10.0, 9.0, 3.0, 2.0, 0.5, 6.0]
    parts = dict(selfplay_parts.parts_of(times))
    assert sum(parts.values()) == pytest.approx(times[0])
    assert parts["network"] == 6.0 and parts["planes"] == 1.0


def test_network_calls_of_a_search():
    assert rounds.steps_of(16, 16) == (17, 2)
    assert rounds.steps_of(16, 64) == (65, 16)


def test_both_searches_are_those_that_are_named():
    for found in (False, True):
        config = rounds.with_rounds(tiny.config(), found)
        assert config.search.rounds is found and config.selfplay.full_search_prob == 1


def test_a_move_counts_its_root():
    row = Row("x", 8, 1, (1.0,), {"moves": 1000.0, "simulations": 16e3}, 0, None)
    assert selfplay_parts.microseconds(row, 16) == pytest.approx(1e6 / 17e3)
