"""Runs whose numbers and seeds differ share their programs, and each number does what it says."""

import dataclasses

import jax
import numpy as np
import pytest
from train.loop.numbers import NUMBERS, numbers_of, with_numbers, without_numbers
from train.loop.train_step import make_run_programs

import train
from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import untimed
from train.loop.training import run_iteration

# Every number is an argument here: none has the value that switches something off.
ON = (
    *("--network.reply=true", "--network.margin=true", "--learner.value_mix=0.5"),
    *("--learner.ema_decay=0.1", "--learner.steps=4", "--learner.warmup=1"),
    *("--selfplay.full_search_prob=0.5", "--selfplay.cheap_policy_weight=0.5"),
    *("--selfplay.policy_surprise_weight=0.5", "--selfplay.setup_prob=0.5"),
    *("--selfplay.opening_prob=0.5", "--selfplay.opening_plies=2"),
    *("--selfplay.random_opening_prob=0.5", "--selfplay.temperature=1"),
    *("--selfplay.plies=16", "--iterations=4", "--selfplay.boards=16"),
    *("--search.simulations=8", "--search.max_considered_actions=4", "--search.c_base=2"),
    "--search.least_spread=0.5",
)
_PUCT = {key for key in NUMBERS if key.startswith(("search.c_", "search.d", "search.t"))}
_GUMBEL = {"search.value_scale", "search.visit_offset", "search.least_spread"}
_SGD = {"learner.momentum"}
_DRAWN = {"selfplay.final_temperature", "selfplay.temperature_halflife"}
"""Numbers that one kind of search or optimizer reads, that another one leads to, that a run reads
late."""


def _run(config, iterations=2):
    programs, rows = make_run_programs(config), []
    state = programs.init()
    for iteration in range(iterations):
        state, row = run_iteration(programs, state, iteration)
        rows.append(untimed(row))
    return rows, jax.device_get(state.learner.player)


def _differ(one, other):
    return one[0] != other[0] or not all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one[1]), jax.tree.leaves(other[1]), strict=True)
    )


def _changed(config, key):
    """The config with another number."""
    value = float(numbers_of(config)[key])
    return with_numbers(config, {key: value / 2})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_each_number_is_an_argument(kind):
    """Runs of each other number compile nothing, and come out differently."""
    # `selfplay.temperature` draws in place of `search.temperature`.
    puct = ("--search.kind=puct", "--learner.optimizer=sgd", "--selfplay.temperature=0")
    config = tiny.config(*ON, *({"gumbel": (), "puct": puct}[kind]))
    keys = numbers_of(config).keys()
    assert keys == NUMBERS.keys() - {"gumbel": set(), "puct": {"selfplay.temperature"}}[kind]
    base, again = _run(config), _run(config)
    assert not _differ(base, again)
    idle = {"gumbel": _PUCT | _SGD, "puct": _GUMBEL | _DRAWN}[kind]
    with compiling.count_compilations() as count:
        differing = {key for key in keys if _differ(base, _run(_changed(config, key)))}
        assert differing == keys - idle
        assert _differ(base, _run(dataclasses.replace(config, seed=8)))
        assert count() == 0


def test_a_number_that_switches_something_off_stays_a_constant():
    config = tiny.config(*ON, "--learner.value_mix=0")
    assert numbers_of(config).keys() == NUMBERS.keys() - {"learner.value_mix"}
    shape = without_numbers(config)
    assert (shape.learner.value_mix, hash(shape)) == (0, hash(without_numbers(config)))
    assert shape == without_numbers(_changed(config, "learner.learning_rate"))
    assert shape != without_numbers(tiny.config(*ON))


def test_the_second_run_of_a_sweep_compiles_nothing(tmp_path):
    compiling.forget_programs()

    def last_loss(seed, rate):
        config = tiny.config(f"--seed={seed}", f"--learner.learning_rate={rate}", "--iterations=2")
        config = dataclasses.replace(config, name=f"run-{seed}")
        return train.run(config, runs=tmp_path).rows[-1]["loss"]

    losses = [last_loss(1, 1e-3)]
    with compiling.count_compilations() as count:
        losses += [last_loss(2, 1e-3), last_loss(3, 1e-2)]
        assert count() == 0
    assert len(set(losses)) == 3
