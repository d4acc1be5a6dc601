"""Runs whose floats and seeds differ share their programs, and each float does what it says."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import train
from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import untimed
from tests.support.learner.loop import Loop
from train.config import RunConfig, config_to_dict
from train.learning.config import LearnerConfig
from train.loop.tables import tables_of
from train.runtime.devices import all_devices
from train.runtime.fields import check

# Every number is an argument here: none has the value that switches something off.
ON = (
    *("--network.reply=true", "--network.margin=true", "--learner.value_mix=0.5"),
    *("--learner.ema_decay=0.1", "--learner.steps=4", "--learner.warmup=1"),
    *("--selfplay.full_search_prob=0.5", "--selfplay.cheap_policy_weight=0.5"),
    *("--selfplay.policy_surprise_weight=0.5", "--selfplay.setup_prob=0.5"),
    *("--selfplay.opening_prob=0.5", "--selfplay.opening_plies=2"),
    *("--selfplay.random_opening_prob=0.5", "--selfplay.temperature=2"),
    *("--selfplay.final_temperature=1", "--selfplay.temperature_halflife=1"),
    *("--selfplay.plies=16", "--iterations=4", "--selfplay.boards=16"),
    *("--search.simulations=8", "--search.max_considered_actions=4", "--search.c_base=2"),
    "--search.least_spread=0.5",
)


def paths_of(config: RunConfig) -> set[str]:
    """The floats that a run's programs take as arguments, by their keys."""
    tables = tables_of(config, all_devices(1))
    leaves = jax.tree_util.tree_leaves_with_path((tables.play, tables.learn))
    paths = {jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves}
    return {path.partition(".")[2] for path in paths} - IDLE


IDLE = {"search.player_value_scale", "search.prior_boost_halflife"}
"""Floats that no program reads."""
NUMBERS = paths_of(tiny.config(*ON))
_PUCT = {key for key in NUMBERS if key.startswith(("search.c_", "search.d", "search.t"))}
_GUMBEL = {"search.value_scale", "search.visit_offset", "search.least_spread"}
_SGD = {"learner.momentum"}
_DRAWN = {"selfplay.final_temperature", "selfplay.temperature_halflife"}
"""Numbers that one kind of search or optimizer reads, that another one leads to, that a run reads
late."""


def _run(config, iterations=2):
    loop = Loop(config)
    rows = [untimed(loop.iterate(iteration)) for iteration in range(iterations)]
    return rows, jax.device_get(loop.state.learner.weights)


def _differ(one, other):
    return one[0] != other[0] or not all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(one[1]), jax.tree.leaves(other[1]), strict=True)
    )


def _changed(config, key):
    """The config with another number."""
    return train.make_config(config, {key: _value(config, key) / 2})


def _value(config, key: str) -> float:
    return float(functools.reduce(getattr, key.split("."), config))


def test_floats_are_leaves_and_nothing_else_is():
    """Shares of a schedule are static: Python counts steps by them."""
    assert NUMBERS == {
        *(
            f"learner.weights.{head}"
            for head in ("policy", "value", "ownership", "margin", "reply")
        ),
        *("learner.learning_rate", "learner.final_rate", "learner.momentum", "learner.ema_decay"),
        *("learner.weight_decay", "learner.max_grad_norm", "learner.value_mix"),
        *("search.value_scale", "search.visit_offset", "search.least_spread", "search.c_init"),
        *("search.c_base", "search.dirichlet_fraction", "search.dirichlet_alpha"),
        *("search.temperature", "selfplay.full_search_prob", "selfplay.cheap_policy_weight"),
        *("selfplay.policy_surprise_weight", "selfplay.setup_prob", "selfplay.opening_prob"),
        *("selfplay.random_opening_prob", "selfplay.temperature"),
        *("selfplay.final_temperature", "selfplay.temperature_halflife"),
    }
    tables = tables_of(tiny.config(*ON), all_devices(1))
    for leaf in jax.tree.leaves((tables.play, tables.learn)):
        assert isinstance(leaf, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_each_number_is_an_argument(kind):
    """Runs of each other number compile nothing, and come out differently."""
    # `selfplay.temperature` draws in place of `search.temperature`.
    puct = ("--search.kind=puct", "--learner.optimizer=sgd", "--selfplay.temperature=0")
    config = tiny.config(*ON, *({"gumbel": (), "puct": puct}[kind]))
    keys = paths_of(config)
    assert keys == NUMBERS - {"gumbel": set(), "puct": {"selfplay.temperature"}}[kind]
    base, again = _run(config), _run(config)
    assert not _differ(base, again)
    idle = {"gumbel": _PUCT | _SGD, "puct": _GUMBEL | _DRAWN}[kind]
    with compiling.count_compilations() as count:
        differing = {key for key in keys if _differ(base, _run(_changed(config, key)))}
        assert differing == keys - idle
        assert _differ(base, _run(dataclasses.replace(config, seed=8)))
        assert count() == 0


def test_a_number_that_is_off_is_none_and_files_hold_the_number():
    """Tables with it are another structure; a program is made without it."""
    on, off = tiny.config(*ON), tiny.config(*ON, "--learner.value_mix=0")
    assert (off.learner.value_mix, config_to_dict(off)["learner"]["value_mix"]) == (None, 0)
    assert paths_of(off) == NUMBERS - {"learner.value_mix"}
    shapes = [jax.tree.structure(tables_of(each, all_devices(1)).learn) for each in (on, off)]
    assert shapes[0] != shapes[1]
    changed = tables_of(_changed(off, "learner.learning_rate"), all_devices(1)).learn
    assert shapes[1] == jax.tree.structure(changed)


def test_tables_are_checked_where_they_are_read_and_where_they_stand_in_a_run():
    broken = LearnerConfig(learning_rate=-1.0)  # as a program that is traced needs it
    with pytest.raises(ValueError, match="greater than 0"):
        check(broken)
    with pytest.raises(ValueError, match=r"learner\.learning_rate"):
        RunConfig(learner=broken)


def test_the_second_run_of_a_sweep_compiles_nothing(tmp_path):
    def last_loss(seed, rate):
        config = tiny.config(f"--seed={seed}", f"--learner.learning_rate={rate}", "--iterations=2")
        config = dataclasses.replace(config, name=f"run-{seed}")
        return train.run(config, runs=tmp_path).rows[-1]["loss"]

    losses = [last_loss(1, 1e-3)]
    with compiling.count_compilations() as count:
        losses += [last_loss(2, 1e-3), last_loss(3, 1e-2)]
        assert count() == 0
    assert len(set(losses)) == 3
