"""Accuracy in sampled positions, by alpha-beta, agrees with the tables of a board that has them."""

import io
import itertools
import json

import jax
import numpy as np
import pytest
from rich.console import Console

from tests.support.learner.commands import command, complaint
from train.analysis import sampled_accuracy as lib
from train.analysis.sampled_accuracy import Sample, sampled_accuracy, sampled_record, sampled_table
from train.arena.result import wilson_interval
from train.players.basic import Player
from train.solver.exact_player import tables_of
from train.solver.sampled import sample_positions
from train.solver.tablebase import optimal_slots, value_of
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules

RULES = Rules(size=3, stones=1, order=(0, 1))
SAMPLE = Sample(positions=150, min_walls=2, seed=3)
SMALL = json.dumps(RULES.to_dict())


def first_legal(variables, states, key):
    """Plays the first legal slot."""
    del variables, key
    return jax.vmap(actions.legal_slots)(states).argmax(axis=1)


@pytest.fixture
def measure(monkeypatch):
    """Measures that player, under any name."""
    player = Player("first", (), jax.jit(first_legal))
    monkeypatch.setattr(lib, "make_player", lambda name, rules: player)
    return lambda **how: sampled_accuracy("first", RULES, SAMPLE, batch=64, **how)


@pytest.mark.slow
def test_shares_agree_with_the_tables(measure):
    result = measure()
    states = sample_positions(RULES, 150, min_walls=2, seed=3)
    tables = tables_of(RULES)
    best = np.asarray(jax.vmap(lambda state: optimal_slots(tables, state))(states))
    legal = np.asarray(jax.vmap(actions.legal_slots)(states))
    np.testing.assert_array_equal(
        result.value, jax.vmap(lambda state: value_of(tables, state))(states)
    )
    np.testing.assert_array_equal(result.can_err, (legal & ~best).any(axis=1))
    np.testing.assert_array_equal(result.kept, best[np.arange(150), legal.argmax(axis=1)])
    np.testing.assert_array_equal(result.walls, states.position.ply - 2)
    assert 0.1 < result.kept[result.can_err].mean() < 0.9


def test_table_and_record_say_the_shares(measure):
    result = measure()
    record = json.loads(json.dumps(sampled_record(result)))["positions"]
    kept, strict = result.kept.mean(), result.kept[result.can_err].mean()
    assert record["all"]["kept"] == kept
    assert record["all"]["kept_where_one_can_err"] == strict
    assert record["all"]["interval_95"] == list(wilson_interval(kept, 150))
    by_walls = [figures["total"] for name, figures in record.items() if "walls" in name]
    assert sum(by_walls) == record["all"]["total"] == 150
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(sampled_table(result))
    text = console.export_text()
    assert f"{kept:.2%}" in text
    assert f"{strict:.2%}" in text
    assert "150 positions of random games" in text
    assert "stopped" not in text


def test_stopped_work_counts(measure):
    asked = itertools.count(1)
    result = measure(should_stop=lambda: next(asked) == 40)
    whole = measure()
    assert len(result.value) == 40
    np.testing.assert_array_equal(result.kept, whole.kept[:40])
    assert "stopped after 40 of 150 positions" in str(sampled_table(result).caption)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--positions", "-1"], "accuracy: positions (-1) must be at least 1"),
        (["--positions", "9", "--min-walls", "-1"], "accuracy: min_walls (-1) must not be"),
        (["--positions", "9", "--rules", "wallzero-4stone"], "at most 4x4 cells"),
        (["--positions", "9", "--min-walls", "12"], "meet only 0 positions with 12 or more walls"),
        (["--positions", "9", "--late", "late.jsonl"], "leave out --positions"),
        (["--min-walls", "6"], "accuracy: --min-walls is for --positions"),
        (["--min-walls", "6", "--late", "late.jsonl"], "accuracy: --min-walls is for --positions"),
    ],
)
def test_bad_input_is_one_line(words, reason):
    rules = [] if "--rules" in words or "--late" in words else ["--rules", SMALL]
    assert reason in complaint(command("accuracy", "random", *words, *rules))
