"""Accuracy in sampled positions, by alpha-beta, agrees with the tables of a board that has them."""

import functools
import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console

from tests.support.learner import exact
from tests.support.learner.commands import command, complaint
from train.analysis.accuracy import Accuracy, Sample, sampled_accuracy
from train.arena.result import wilson_interval
from train.players.basic import Player
from train.solver.exact_player import tables_of
from train.solver.sampled import sample_positions
from wallgo_jax.game.rules import Rules

RULES = Rules(size=3, stones=1, start=((1, 1, 0), (0, 0, 1)), order=())
SAMPLE = Sample(positions=150, min_walls=2, seed=3)
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
def result(measure) -> Accuracy:
    return measure()


@pytest.mark.slow
def test_shares_agree_with_the_tables(result):
    states = sample_positions(RULES, 150, min_walls=2, seed=3)
    value, best, legal = exact.look_up_all(tables_of(RULES), states)
    np.testing.assert_array_equal(result.value, value)
    np.testing.assert_array_equal(result.can_err, (legal & ~best).any(axis=1))
    np.testing.assert_array_equal(result.kept, best[np.arange(150), legal.argmax(axis=1)])
    np.testing.assert_array_equal(result.number, states.position.ply)
    assert 0.1 < result.kept[result.can_err].mean() < 0.9


def test_table_and_record_say_the_shares(result):
    record = json.loads(json.dumps(result.record()))["positions"]
    kept, strict = result.kept.mean(), result.kept[result.can_err].mean()
    assert record["all"]["kept"] == kept
    assert record["all"]["kept_where_one_can_err"] == strict
    assert record["all"]["interval_95"] == list(wilson_interval(kept, 150))
    by_walls = [figures["total"] for name, figures in record.items() if "walls" in name]
    assert sum(by_walls) == record["all"]["total"] == 150
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(result.table())
    text = console.export_text()
    assert f"{kept:.2%}" in text
    assert f"{strict:.2%}" in text
    assert "150 positions of random games" in text
    assert "stopped" not in text


def test_stopped_work_counts(measure, result):
    asked = itertools.count(1)
    stopped = measure(should_stop=lambda: next(asked) == 40)
    assert len(stopped.value) == 40
    np.testing.assert_array_equal(stopped.kept, result.kept[:40])
    assert "stopped after 40 of 150 positions" in str(stopped.table().caption)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--positions", "-1"], "at least 1"),
        (["--positions", "9", "--min-walls", "-1"], "negative"),
        (["--positions", "9", "--rules", "wallzero-4stone"], "4x4"),
        (["--positions", "9", "--min-walls", "12"], "meet only 0 positions"),
        (["--positions", "9", "--late", "late.jsonl"], "--positions"),
        (["--min-walls", "6"], "--min-walls"),
    ],
)
def test_bad_input_is_one_line(words, reason):
    rules = [] if "--rules" in words or "--late" in words else ["--rules", RULES_WORD]
    assert reason in complaint(command("accuracy", "random", *words, *rules))
