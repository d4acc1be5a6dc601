"""Contracts: public functions of a board refuse arrays that are not one board while JAX traces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wallgo_jax import observation
from wallgo_jax.game import actions, referee, symmetry
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import TRAIL_LENGTH, initial_state
from wallgo_jax.planes import HISTORY_LENGTH

BOARDS = 3
STATE = jax.jit(lambda: initial_state(Rules(size=3, stones=1, order=(0, 1))))()
BATCH = jax.tree.map(lambda leaf: jnp.stack([leaf] * BOARDS), STATE)
SLOT, SLOTS = np.int32(0), np.zeros(BOARDS, np.int32)
VERBS = {
    "play": referee.play,
    "step": referee.step,
    "is_legal": actions.is_legal,
    "slot_of_action": actions.slot_of_action,
    "action_of_slot": actions.action_of_slot,
    "legal_slots": lambda state, _: actions.legal_slots(state),
    "legal_actions": lambda state, _: actions.legal_actions(state),
    "territory": lambda state, _: referee.territory(state),
    "observe": lambda state, _: observation.observe(state, planes="BT"),
    "turn_state": lambda state, _: symmetry.turn_state(state, np.int32(1)),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_batch_needs_vmap(verb):
    with pytest.raises(AssertionError):
        jax.eval_shape(verb, BATCH, SLOTS)
    jax.eval_shape(jax.vmap(verb), BATCH, SLOTS)
    jax.eval_shape(verb, STATE, SLOT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stones", np.zeros((2, 1), np.int32)),
        ("walls", np.zeros((2, 1), np.uint32)),
        ("walls_left", np.zeros(3, np.int16)),
        ("trail", np.zeros((TRAIL_LENGTH, 2), np.int8)),
        ("ply", np.zeros((), np.int32)),
        ("terminated", np.zeros((), np.int8)),
    ],
)
def test_an_array_of_another_shape_or_type_is_refused(field, value):
    wrong = STATE._replace(position=STATE.position._replace(**{field: value}))
    with pytest.raises(AssertionError):
        jax.eval_shape(referee.play, wrong, SLOT)


def test_slots_and_policies_are_those_of_one_board():
    with pytest.raises(AssertionError):
        jax.eval_shape(referee.play, STATE, np.float32(0))
    with pytest.raises(AssertionError):
        jax.eval_shape(lambda: symmetry.turn_masks(np.zeros((2, 8)), SLOT, STATE.variant))
    with pytest.raises(AssertionError):
        policies = np.zeros((BOARDS, 52), np.float32)
        jax.eval_shape(lambda: symmetry.turn_policy(policies, SLOT, np.bool_(True), STATE.variant))


def test_history_planes_show_all_that_the_trail_keeps():
    assert HISTORY_LENGTH == TRAIL_LENGTH
