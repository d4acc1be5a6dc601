"""Checkpoints come back bit for bit, few are kept, and others are refused in one line."""

import re
import sys
import tracemalloc
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.checkpoints import CONFIG, assert_same_bits, scrambled, steps
from tests.support.refusals import refusal
from train.checkpoints import store
from train.checkpoints.checkpoint import FORMAT
from train.config import read_config
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.env import VERSION


def test_shapes_without_values_are_enough_to_restore_weights_bit_for_bit(saved, fresh):
    directory, run = saved
    shapes = jax.eval_shape(lambda: fresh.learner.variables)
    assert_same_bits(store.read_weights(directory, shapes), run.learner.variables)


def test_checkpoint_names_no_device(saved):
    # So that another kind of device, or another number of them, can go on.
    for file in saved[0].rglob("*"):
        assert not file.is_file() or b"cpu:0" not in file.read_bytes()


@pytest.mark.parametrize("kind", [store.WEIGHTS, store.RESUME])
def test_meta_says_what_it_is(saved, kind):
    meta = store.read_meta(saved[0], kind)
    assert meta.pop("sums").keys() >= {"learner.step"} if kind == store.RESUME else meta.pop("sums")
    expected = {"format": FORMAT, "env_version": VERSION, "iteration": 7, "config": CONFIG}
    assert meta == expected | {"win_rate": None}


def test_last_weights_are_kept_and_two_runs(saved):
    assert steps(saved[0], store.WEIGHTS) == [5, 7]
    assert steps(saved[0], store.RESUME) == [5, 7]
    assert store.newest_iteration(saved[0], store.WEIGHTS) == 7


def test_best_and_every_fourth_are_kept(fresh, tmp_path):
    rates = {1: 0.5, 2: 0.9, 3: 0.9, 4: 0.1, 5: None, 6: 0.7, 7: None, 8: 0.8, 9: None, 10: None}
    run, weights = {"step": fresh.iterations}, fresh.learner.variables
    config = CONFIG | {"checkpoint": {"keep": 2, "keep_best": 2, "keep_every": 4}}
    for iteration, rate in rates.items():
        store.save_checkpoint(tmp_path, iteration, weights, run, config, win_rate=rate)
    assert steps(tmp_path, store.WEIGHTS) == [2, 3, 4, 8, 9, 10]
    assert steps(tmp_path, store.RESUME) == [9, 10]


def test_the_learning_curve_of_the_documents_keeps_every_second_iteration():
    """Of 24 iterations; those after 12 and 24 played matches."""
    path = Path(__file__).parents[3] / "docs" / "results" / "learning_curve.md"
    page = path.read_text(encoding="utf-8")
    (words,) = re.findall("^python -m train run --name curve (.*)$", page, re.MULTILINE)
    config = read_config(None, words.split())
    every, short = config.checkpoint.every, config.evaluation.every
    kept: set[int] = set()
    for iteration in range(1, config.iterations + 1):
        if iteration % every == 0 or iteration % short == 0 or iteration == config.iterations:
            rates = {12: 0.9, 24: 1.0}
            kept = store.kept_iterations({*kept, iteration}, config.checkpoint, rates)
    assert {*range(2, 25, 2)} <= kept


def test_win_rates_of_other_matches_come_last(fresh, tmp_path):
    """A run that goes on with longer searches in its matches keeps the best so far until it has
    another one."""
    short = CONFIG | {"checkpoint": {"keep": 1, "keep_best": 1}}
    longer = short | {"evaluation": CONFIG["evaluation"] | {"simulations": 99}}
    run = {"step": fresh.iterations}
    kept = []
    for iteration, config, rate in (
        *((1, short, 0.8), (2, short, 0.9), (3, short, None)),
        *((4, longer, None), (5, longer, 0.1), (6, longer, None)),
    ):
        store.save_checkpoint(
            tmp_path, iteration, fresh.learner.variables, run, config, win_rate=rate
        )
        kept.append(steps(tmp_path, store.WEIGHTS))
    assert kept == [[1], [2], [2, 3], [2, 4], [5], [5, 6]]
    assert store.best_iteration(tmp_path, longer, before=7) == 5
    assert store.best_iteration(tmp_path, CONFIG, before=7) is None


def test_newest_is_by_number_and_only_finished_ones_count(tmp_path):
    assert store.newest_iteration(tmp_path, store.WEIGHTS) is None
    for name in ("9", "10", "11.orbax-checkpoint-tmp-1", "notes"):
        (tmp_path / store.WEIGHTS / name).mkdir(parents=True)
    assert store.newest_iteration(tmp_path, store.WEIGHTS) == 10


def test_what_was_saved_may_change_at_once(fresh, tmp_path):
    run = scrambled(fresh, 1)
    expected = jax.tree.map(np.array, run)
    store.save_checkpoint(tmp_path, 1, run.learner.variables, run, CONFIG)
    jax.jit(lambda x: jax.tree.map(jnp.zeros_like, x), donate_argnums=0)(run)
    assert_same_bits(store.read_run(tmp_path, fresh), expected)
    assert_same_bits(
        store.read_weights(tmp_path, fresh.learner.variables), expected.learner.variables
    )


def test_iteration_already_there_is_left_alone(fresh, tmp_path):
    for seed in (1, 2):
        run = scrambled(fresh, seed)
        store.save_checkpoint(tmp_path, 4, run.learner.variables, run, CONFIG)
    assert_same_bits(store.read_run(tmp_path, fresh), scrambled(fresh, 1))


@pytest.mark.parametrize("kind", [store.WEIGHTS, store.RESUME])
def test_no_checkpoint(tmp_path, fresh, kind):
    read, like = (
        (store.read_weights, fresh.learner.variables)
        if kind == store.WEIGHTS
        else (store.read_run, fresh)
    )
    said = refusal(read, tmp_path, like)
    assert said == refusal(store.read_meta, tmp_path, kind) and f"{tmp_path}: no checkpoint" in said
    (tmp_path / kind).mkdir()
    assert refusal(read, tmp_path, like) == said
    assert "no checkpoint" in refusal(read, tmp_path / "missing", like)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda conv: {"kernel": np.zeros((3, 3, 11, 8), np.float32)}, "float32[3, 3, 8, 8] for"),
        (lambda conv: {"kernel": conv["kernel"].astype(np.float64)}, "float32[3, 3, 8, 8] for"),
        (lambda conv: {}, "float32[3, 3, 8, 8] for"),
        (lambda conv: conv | {"bias": conv["kernel"]}, "nothing for"),
    ],
    ids=["shape", "type", "less", "more"],
)
def test_weights_of_another_shape(saved, fresh, change, expected):
    variables = fresh.learner.variables
    stem = variables.params["stem"]
    other = stem | {"conv": change(stem["conv"])}
    variables = variables._replace(params=variables.params | {"stem": other})
    message = refusal(store.read_weights, saved[0], variables)
    place = "params.stem.conv"
    assert message.startswith(
        f"{saved[0] / store.WEIGHTS / '7'}: cannot be read: it has {expected} {place}"
    )
    assert message.endswith("; nor can any other of 2")


def test_a_disk_that_cannot_be_written_is_one_line_at_that_save(
    tmp_path, small_files, capfd, monkeypatch
):
    # Stays as it is until the process ends, so that threads that still write say nothing.
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    draw = np.random.default_rng(0)
    small, large = (draw.integers(0, 255, size, np.uint8) for size in (100, 100_000))
    store.save_checkpoint(tmp_path, 1, {"a": small}, {"x": small}, CONFIG)
    run = {str(number): large for number in range(20)}
    with pytest.raises(UsageError) as raised, small_files(20_000):
        store.save_checkpoint(tmp_path, 2, {"a": small}, run, CONFIG)
    assert (
        str(raised.value) == f"{tmp_path / store.RESUME / '2'}: cannot be written: File too large"
    )
    assert capfd.readouterr() == ("", "")
    # Nothing of it is left, and what was there before is whole.
    assert steps(tmp_path, store.RESUME) == [1]
    assert [path.name for path in (tmp_path / store.RESUME).iterdir()] == ["1"]
    (found,) = jax.tree.leaves(store.read_run(tmp_path, {"x": small}))
    assert (found == small).all()
    # It goes on where there is room.
    store.save_checkpoint(tmp_path, 2, {"a": small}, {"x": small}, CONFIG)
    assert steps(tmp_path, store.RESUME) == [1, 2]


ARRAYS, BYTES = 4, 2**21


def test_a_checkpoint_is_written_without_copies(tmp_path):
    numbers = np.arange(BYTES // 4, dtype=np.int32)
    state = {str(i): jnp.asarray(numbers // 64 + i) for i in range(ARRAYS)}
    weights = {"kernel": jnp.asarray(np.ones((16, 16), np.float32))}
    jax.block_until_ready(state)
    tracemalloc.start()
    try:
        store.save_checkpoint(tmp_path, 1, *fetch((weights, state)), {})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.75 * ARRAYS * BYTES
