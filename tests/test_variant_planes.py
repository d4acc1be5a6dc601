"""The planes that name the rules, for a network that plays several of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wallgo_jax
from wallgo_jax import Rules

V_PLANES = 12
STAY, LIMITED = 0, 1
LEFT = slice(2, 10)  # over 0, over 2, over 5, over 10, for Red and Blue each
TIES = slice(10, 12)  # region, mover_loses


def _variant_planes(env, state) -> np.ndarray:
    """bool[12] of a state, after checking that each plane is even over the board."""
    planes = np.asarray(state.observation)[..., -V_PLANES:]
    assert (planes == planes[:1, :1]).all()
    assert env.observation_shape[-1] == planes.shape[-1] + 13
    return planes[0, 0]


@pytest.mark.parametrize(
    ("preset", "stay", "limited", "left", "ties"),
    [
        ("wallzero-4stone", False, False, [True] * 8, [True, False]),
        ("hkoi", False, False, [True] * 8, [True, True]),
        ("playwallgo-2p", True, True, [True] * 8, [False, False]),
    ],
)
def test_presets_are_named(preset, stay, limited, left, ties):
    env = wallgo_jax.make(preset, planes="BTRV")
    shown = _variant_planes(env, jax.jit(env.init)())
    assert shown[STAY] == stay
    assert shown[LIMITED] == limited
    assert shown[LEFT].tolist() == left
    assert shown[TIES].tolist() == ties


def test_walls_left_are_counted_down():
    rules = Rules(size=5, stones=1, order=(0, 1), walls=3, stay_needs_room=True, tie=())
    env = wallgo_jax.make(rules, planes="BTRV")
    step = jax.jit(env.step)
    state = jax.jit(env.init)()
    for action in (1300 + 0, 1300 + 24):
        state = step(state, jnp.int32(action))
    seen = []
    for _ in range(4):
        seen.append(_variant_planes(env, state)[LEFT].tolist())
        legal = np.flatnonzero(state.legal_action_mask)
        state = step(state, jnp.int32(legal[0]))
    over_0_and_2 = [row[:4] for row in seen]
    # Red and Blue have (3, 3), (2, 3), (2, 2) and (1, 2) walls left.
    assert over_0_and_2[0] == [True, True, True, True]
    assert over_0_and_2[1] == [True, True, False, True]
    assert over_0_and_2[2] == [True, True, False, False]
    assert over_0_and_2[3] == [True, True, False, False]
    assert not any(any(row[4:]) for row in seen)


def test_other_planes_stay_as_they_were():
    plain, named = (
        np.asarray(jax.jit(wallgo_jax.make("playwallgo-2p", planes=planes).init)().observation)
        for planes in ("BTR", "BTRV")
    )
    np.testing.assert_array_equal(named[..., :13], plain)


def test_rim_is_dark():
    env = wallgo_jax.make(Rules(size=5, stones=1, order=(0, 1)), grid=7, planes="BV")
    planes = np.asarray(jax.jit(env.init)().observation)
    assert planes.shape == (7, 7, 8 + V_PLANES + 1)
    assert not planes[5:].any()
    assert not planes[:, 5:].any()
