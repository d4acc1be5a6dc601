"""The mean over turned copies of a root: mapped back, in one batch, at the root alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from tests.support.learner import tiny
from tests.support.learner.searching import random_evaluator, random_ply
from train.network.build import network_for
from train.search import search as search_lib
from train.search.config import SearchConfig
from train.search.evaluator import (
    SYMMETRY_ORDER,
    Evaluation,
    evaluator_for,
    make_symmetric_evaluator,
)
from train.search.tree import Choice
from wallgo_jax.game import actions, symmetry
from wallgo_jax.game.state import State, initial_position

GRID = 5
turn = jax.jit(jax.vmap(symmetry.turn_state, in_axes=(0, None)))
turn_back = jax.jit(jax.vmap(symmetry.turn_policy, in_axes=(0, None, 0, 0)))
phases = jax.jit(jax.vmap(symmetry.phase_of))
legal_slots = jax.jit(jax.vmap(actions.legal_slots))
evaluate_once = jax.jit(random_evaluator)
inverse = jax.jit(symmetry.inverse)
public_actions = jax.jit(jax.vmap(jax.vmap(actions.action_of_slot, (None, 0)), (0, None)))
turn_actions = jax.jit(jax.vmap(jax.vmap(symmetry.turn_action, (0, None, None)), (0, None, 0)))


@functools.cache
def evaluator_of(symmetries: int):
    return jax.jit(make_symmetric_evaluator(random_evaluator, symmetries))


@functools.cache
def some_states() -> State:
    """Boards of 3x3 in a corner of the grid and boards as large as it, after one ply, which placed
    a stone, and after three."""
    sizes = [
        tiny.variants(dataclasses.replace(tiny.RULES, size=n), 4, grid=GRID) for n in (3, GRID)
    ]
    variant = jax.tree.map(lambda *x: np.concatenate(x), *sizes)
    states = [State(variant, jax.jit(jax.vmap(initial_position))(variant))]
    play = jax.jit(jax.vmap(random_ply))
    for bits in np.random.default_rng(0).integers(2**32, size=(3, 8), dtype=np.uint32):
        states.append(play(states[-1], bits))
    return jax.tree.map(lambda *x: np.concatenate(x), states[1], states[3])


def test_a_finished_board_keeps_its_one_slot():
    """Every other board is over; the others are evaluated as if none were."""
    states = some_states()
    is_over = np.arange(len(states.position.ply)) % 2 == 0
    assert not np.asarray(states.position.terminated).any()
    mixed = states._replace(position=states.position._replace(terminated=jnp.asarray(is_over)))
    found, running = (jax.device_get(evaluator_of(8)((), each)) for each in (mixed, states))
    assert np.isfinite(found.logits).all() and np.isfinite(found.value).all()
    policy = scipy.special.softmax(found.logits.astype(np.float64), axis=1)
    assert (policy[is_over, 0] == 1).all() and (policy[is_over, 1:] == 0).all()
    np.testing.assert_array_equal(found.logits[~is_over], running.logits[~is_over])


def test_the_mean_is_over_the_copies_each_read_in_its_own_slots():
    """Three copies, by public actions: each legal one is looked up in each turned board."""
    states = some_states()
    found = jax.device_get(evaluator_of(3)((), states))
    legal, places = np.asarray(legal_slots(states)), jnp.arange(found.logits.shape[1])
    expected, values = np.zeros(found.logits.shape), np.zeros(found.value.shape)
    public = public_actions(states, places)
    for g in SYMMETRY_ORDER[:3]:
        turned = turn(states, jnp.int32(g))
        evaluation = jax.device_get(evaluate_once((), turned))
        asked = np.asarray(turn_actions(public, jnp.int32(g), states.variant))
        named = np.asarray(public_actions(turned, places))
        own = np.asarray(legal_slots(turned))
        for board, slot in zip(*np.nonzero(legal), strict=True):
            (there,) = np.flatnonzero((named[board] == asked[board, slot]) & own[board])
            expected[board, slot] += evaluation.logits[board, there] / 3
        values += evaluation.value / 3
    np.testing.assert_allclose(found.logits[legal], expected[legal], rtol=1e-5)
    np.testing.assert_allclose(found.value, values, rtol=1e-5, atol=1e-6)


def test_one_symmetry_is_the_evaluator_itself():
    assert make_symmetric_evaluator(random_evaluator, 1) is random_evaluator
    for wrong in (0, 9):
        with pytest.raises(AssertionError):
            make_symmetric_evaluator(random_evaluator, wrong)


def test_searches_begin_with_the_mean_and_look_at_leaves_once(monkeypatch):
    states, sizes = some_states(), []

    def evaluate(variables, states, analysis=None) -> Evaluation:
        sizes.append(len(states.position.ply))
        return random_evaluator(variables, states, analysis)

    def choose(key, root, play) -> Choice:
        slot = root.logits.argmax(axis=1)
        step = play(slot, root.position)
        return Choice(slot, jax.nn.softmax(root.logits), step.value, None)

    monkeypatch.setattr(search_lib, "make_engine", lambda config, **_: choose)
    search = search_lib.make_search(evaluate, SearchConfig(), explores=False, symmetries=8)
    found = jax.jit(search)((), states, jax.random.key(0))
    boards = len(states.position.ply)
    assert sizes == [8 * boards, boards]
    expected = evaluator_of(8)((), states)
    np.testing.assert_allclose(found.prior, expected.logits, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found.slot, np.asarray(expected.logits).argmax(axis=1))


def test_a_network_sees_turned_copies_alike():
    """Each copy's logits, turned back, and its values are those of the states."""
    config, states = tiny.config().network, some_states()
    variables = tiny.new_weights(network_for(config, 2))
    evaluate = jax.jit(make_symmetric_evaluator(evaluator_for(config, tiny.RULES), 8))
    expected, legal = evaluate(variables, states), np.asarray(legal_slots(states))
    for g in SYMMETRY_ORDER:
        found = evaluate(variables, turn(states, jnp.int32(g)))
        back = turn_back(found.logits, inverse(jnp.int32(g)), phases(states), states.variant)
        for ours, theirs in ((back, expected.logits), (found.value, expected.value)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        assert ((np.asarray(back) > -1e30) == legal).all()
