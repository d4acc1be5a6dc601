"""Accuracy is exact for players whose errors are known, and in sampled positions agrees with the
tables of a board that has them."""

import functools
import itertools
import json
from typing import Any

import jax
import numpy as np
import pytest

from tests.support.learner import exact
from tests.support.learner.commands import command, complaint
from tests.support.refusals import refusal
from tests.train.solver.test_solver import keys_of
from train.analysis.accuracy import (
    Accuracy,
    SampleOptions,
    sampled_accuracy,
    value_accuracy,
    value_kept,
)
from train.players.basic import Player, make_random_player
from train.runtime.host import batches
from train.solver.exact_player import tables_of
from train.solver.positions import reachable_levels, sample_positions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

# The stones stand beforehand, so that positions are few.
RULES = Rules(size=3, stones=1, start=((1, 1, 0), (0, 0, 1)), order=())


@pytest.fixture(scope="module")
def whole() -> list[State]:
    """The positions of each ply."""
    return [*reachable_levels(RULES)]


@pytest.fixture(scope="module")
def levels(whole) -> list[State]:
    """Some of the positions of each ply, which the last batch of a level does not fill."""
    return [jax.tree.map(lambda x: x[:200], level) for level in whole]


def right_as_blue(tables: Any, states: State, key: jax.Array) -> np.ndarray:
    """Plays the first best slot as Blue, and as Red the first legal slot that is worse, if any."""
    del key
    _, best, legal = jax.device_get(exact.look_up(tables, states))
    is_right = (states.position.player == 1) | ~(legal & ~best).any(axis=1)
    return np.where(is_right, best.argmax(axis=1), (legal & ~best).argmax(axis=1))


@pytest.fixture(scope="module")
def result(levels) -> Accuracy:
    player, key = Player("marked", tables_of(RULES), right_as_blue), jax.random.key(3)
    return value_kept(player, RULES, tables_of(RULES), levels, key=key, batch=exact.BATCH)


def test_shares_of_a_player_with_known_errors(levels, result):
    red = np.concatenate([level.position.player == 0 for level in levels])
    np.testing.assert_array_equal(result.kept, ~(red & result.can_err))
    figures = result.summary()["positions"]["all"]
    total, share = figures["total_where_one_can_err"], figures["kept_where_one_can_err"]
    assert total == result.can_err.sum()
    assert share == (result.can_err & ~red).sum() / total
    assert 0.2 < share < 0.8
    assert result.can_err.mean() > 0.5
    assert not result.can_err[result.value == -1].any()


def test_record_says_the_shares(result):
    record = json.loads(json.dumps(result.summary()))["positions"]
    for name in ("all", "won", "drawn", "lost"):
        share = record[name]["kept_where_one_can_err"]
        assert (share is None) == (record[name]["total_where_one_can_err"] == 0)
    # Whoever has lost loses no value by any move.
    assert record["lost"]["kept_where_one_can_err"] is None
    by_ply = [figures for name, figures in record.items() if name.startswith("ply")]
    assert sum(figures["total"] for figures in by_ply) == record["all"]["total"]
    assert Rules.from_dict(result.summary()["rules"]) == RULES


def test_positions_are_distinct_unfinished_and_in_order(whole):
    seen = set()
    for ply, level in enumerate(whole):
        assert (level.position.ply == ply).all()
        assert not level.position.terminated.any()
        keys = keys_of(level)
        assert all(len(walls) == ply for walls, _, _ in keys)
        assert len(set(keys)) == len(keys)
        assert seen.isdisjoint(keys)
        seen |= set(keys)
    assert len(seen) > 1000


def test_batches_hold_everything_once():
    parts = list(batches((np.arange(10), np.arange(20, 30)), 4))
    assert [own for _, own in parts] == [4, 4, 2]
    assert np.concatenate([part[0][:own] for part, own in parts]).tolist() == [*range(10)]
    assert all(len(part[1]) == 4 for part, _ in parts)


def test_board_that_is_not_solved_is_refused():
    message = refusal(value_accuracy, make_random_player(), Rules(), is_quiet=True)
    assert "3x3 with at most 2" in message


SAMPLE = SampleOptions(positions=150, min_walls=2, seed=3)
RULES_WORD = json.dumps(RULES.to_dict())


def first_legal(tables, states, key):
    """Plays the first legal slot."""
    del key
    return np.asarray(exact.look_up(tables, states)[2]).argmax(axis=1)


@pytest.fixture(scope="module")
def measure():
    player = Player("first", tables_of(RULES), first_legal)
    return functools.partial(sampled_accuracy, player, RULES, SAMPLE, batch=exact.BATCH)


@pytest.fixture(scope="module")
def sampled(measure) -> Accuracy:
    return measure()


@pytest.mark.slow
def test_sampled_shares_agree_with_the_tables(sampled):
    states = sample_positions(RULES, 150, min_walls=2, seed=3)
    value, best, legal = exact.look_up_all(tables_of(RULES), states)
    np.testing.assert_array_equal(sampled.value, value)
    np.testing.assert_array_equal(sampled.can_err, (legal & ~best).any(axis=1))
    np.testing.assert_array_equal(sampled.kept, best[np.arange(150), legal.argmax(axis=1)])
    np.testing.assert_array_equal(sampled.number, states.position.ply)
    assert 0.1 < sampled.kept[sampled.can_err].mean() < 0.9


def test_stopped_work_counts(measure, sampled):
    asked = itertools.count(1)
    stopped = measure(should_stop=lambda: next(asked) == 40)
    assert len(stopped.value) == 40
    np.testing.assert_array_equal(stopped.kept, sampled.kept[:40])
    assert "stopped after 40 of 150 positions" in str(stopped.table().caption)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--positions", "-1"], "--positions: Input should be greater than or equal to 0"),
        (["--positions", "9", "--min-walls", "-1"], "--min-walls: "),
        (["--positions", "9", "--rules", "wallzero-4stone"], "4x4"),
        (["--positions", "9", "--min-walls", "12"], "meet only 0 positions"),
        (["--min-walls", "6"], "--min-walls"),
    ],
)
def test_bad_input_is_one_line(words, reason):
    rules = [] if "--rules" in words else ["--rules", RULES_WORD]
    assert reason in complaint(command("accuracy", "random", *words, *rules))
