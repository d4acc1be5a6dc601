"""Plies of the replay are searched again: which ones, what they find, what stays."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.checkpoints import assert_same_bits
from tests.support.learner.commands import untimed
from tests.support.learner.loop import Loop
from tests.support.refusals import refusal
from train.data.best_slots import keep_best
from train.data.reanalyse import draw_rows
from train.data.selfplay import POLICY_DTYPE
from train.game import State
from train.loop.stages import evaluations
from train.runtime.devices import all_devices
from train.search.evaluator import evaluator_for
from train.search.search import make_search

PLIES, SIMULATIONS = 3, 4
WORDS = (
    *(f"--replay.reanalyse={PLIES}", f"--replay.reanalyse_simulations={SIMULATIONS}"),
    *("--selfplay.full_search_prob=0.5", "--selfplay.cheap_simulations=1"),
    *("--learner.value_mix=0.5", "--evaluation.opponents=[]", "--evaluation.every=0"),
)


def after(iterations: int) -> Loop:
    """A run on one device, after some iterations."""
    loop = Loop(tiny.config(*WORDS), all_devices(1))
    for iteration in range(iterations):
        loop.iterate(iteration)
    return loop


def test_rows_are_drawn_from_those_that_are_written():
    state = Loop(tiny.config()).state.replay_state
    rows = state.plies.terminated.shape[0]
    draw = jax.jit(jax.vmap(lambda key, written: draw_rows(written, key, count=PLIES), (0, None)))
    for written in (PLIES, 5, rows, 3 * rows + 1):
        keys = jax.random.split(jax.random.key(written), 2000)
        drawn = np.asarray(draw(keys, state._replace(written=jnp.int32(written))))
        assert all(len(set(each)) == PLIES for each in drawn.tolist())
        counts = np.bincount(drawn.ravel(), minlength=rows)
        held = min(written, rows)
        assert counts[held:].sum() == 0
        # Each equally often: five standard deviations.
        share = PLIES / held
        spread = 5 * np.sqrt(2000 * share * (1 - share))
        assert np.abs(counts[:held] - 2000 * share).max() <= spread


def test_rows_get_what_a_search_of_their_positions_finds_and_all_else_stays():
    loop = after(2)
    before = jax.device_get(loop.state.replay_state)
    copy = jax.tree.map(jnp.copy, loop.state.replay_state)
    found, surprise = jax.device_get(loop.reanalyse(2, copy))
    row_key, search_key = jax.random.split(loop.keys(2).reanalyse)
    rows = np.asarray(draw_rows(before, row_key, count=PLIES))
    assert len(set(rows.tolist())) == PLIES

    config = loop.config
    options = dataclasses.replace(config.search, simulations=SIMULATIONS)
    evaluate = evaluator_for(config.network, config.rules)
    search = jax.jit(make_search(evaluate, options, explores=True))
    weights = loop.state.learner.weights
    # As a device's own key is made, of which there is one.
    keys = jax.random.split(jax.random.fold_in(search_key, 0), PLIES)
    surprises = []
    for row, key in zip(rows, keys, strict=True):
        position = jax.tree.map(lambda x, row=row: x[row], before.plies.position)
        expected = search(weights, State(loop.variant, position), key)
        policy = keep_best(expected.policy.astype(POLICY_DTYPE))
        got = jax.tree.map(lambda x, row=row: x[row], found.plies.policy)
        for one, other in zip(got, jax.device_get(policy), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-3)
        np.testing.assert_allclose(found.plies.root_value[row], expected.value, atol=1e-4)
        assert (found.plies.policy_weight[row] == 1).all()
        surprises.append(float(expected.surprise.mean()))
    np.testing.assert_allclose(surprise, np.mean(surprises), atol=1e-4)

    changed = found.plies.policy_weight != before.plies.policy_weight
    assert changed.any(), "some plies were searched cheaply before"
    others = np.setdiff1d(np.arange(changed.shape[0]), rows)

    def kept(state):
        names = ("policy", "policy_weight", "root_value")
        searched = [getattr(state.plies, name) for name in names]
        rest = state.plies._replace(**dict.fromkeys(names))
        return jax.tree.map(lambda x: x[others], searched), rest, state.written, state.finished

    assert_same_bits(kept(found), kept(before))


def test_a_resumed_run_searches_again_what_a_whole_one_does(tmp_path):
    """The loop written out, the run's own and a resumed one give the same rows."""
    config = tiny.config(*WORDS, "--iterations=4")
    loop = Loop(config)
    expected = [untimed(loop.iterate(iteration)) for iteration in range(4)]
    assert all(row["reanalyse_surprise"] > 0 for row in expected)
    with train.start(config, runs=tmp_path) as run:
        next(run)
        next(run)
        run.save()
    with train.resume(tmp_path / config.name) as run:
        assert len(list(run)) == 2
        rows = run.rows
    for mine, theirs in zip(expected, rows, strict=True):
        assert mine == {name: theirs[name] for name in mine}


def test_its_evaluations_are_counted():
    config = tiny.config(*WORDS)
    played = config.selfplay.boards * config.selfplay.plies
    without = evaluations(tiny.config(*WORDS, "--replay.reanalyse=0"), played, played)
    again = config.selfplay.boards * PLIES * (SIMULATIONS + 1)
    assert evaluations(config, played, played) - without == again


def test_a_teachers_iterations_search_nothing_again(tmp_path):
    config = tiny.config(*WORDS, "--selfplay.bootstrap_iterations=2", "--iterations=3")
    rows = train.run(config, runs=tmp_path).rows
    assert ["reanalyse_surprise" in row for row in rows] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--replay.reanalyse=17",), "reanalyse (17) must be at most 16, the plies of each"),
        (("--replay.memory=host",), "must be 0 where replay.memory is 'host'"),
        (("--selfplay.opponent=pretrained:wallzero-4stone",), "0 where selfplay.opponent plays"),
    ],
)
def test_what_cannot_be_searched_again_is_refused(words, told):
    assert told in refusal(tiny.config, *WORDS, *words)


def test_all_devices_search_the_same_rows():
    loop = Loop(tiny.config(*WORDS, "--selfplay.boards=8", "--learner.batch=8"))
    assert loop.devices.count > 1
    loop.iterate(0)
    before = jax.device_get(loop.state.replay_state)
    rows = draw_rows(before, jax.random.split(loop.keys(1).reanalyse)[0], count=PLIES)
    found = jax.device_get(loop.reanalyse(1, loop.state.replay_state)[0])
    is_changed = (found.plies.policy.share != before.plies.policy.share).any(axis=(1, 2))
    assert set(np.flatnonzero(is_changed)) == set(np.asarray(rows).tolist())
