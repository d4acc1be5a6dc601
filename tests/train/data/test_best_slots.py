"""Policies kept by their best slots, against NumPy."""

import jax
import numpy as np
import pytest

from train.data.best_slots import KEPT, all_on, keep_best, spread_out

keep = jax.jit(keep_best)


@pytest.mark.parametrize("slots", [20, 208, 300])
def test_the_likeliest_slots_and_the_sum_of_the_others(slots):
    rng = np.random.default_rng(slots)
    policy = rng.dirichlet(np.full(slots, 0.1), (3, 4)).astype(np.float32)
    best = jax.device_get(keep(policy))
    count = min(KEPT, slots)
    assert best.slot.dtype == (np.uint8 if slots <= 256 else np.uint16)
    order = np.argsort(-policy, axis=-1, kind="stable")
    np.testing.assert_array_equal(best.slot, order[..., :count])
    sorted_policy = np.take_along_axis(policy, order, axis=-1)
    np.testing.assert_array_equal(best.share, sorted_policy[..., :count].astype(np.float16))
    rest = sorted_policy[..., count:].sum(axis=-1)
    np.testing.assert_allclose(best.rest, rest, rtol=1e-3, atol=1e-7)
    assert (rest > 0).all() == (slots > KEPT)
    spread = jax.device_get(spread_out(best, slots))
    known = np.where(policy >= sorted_policy[..., count - 1 : count], policy, 0)
    np.testing.assert_array_equal(spread, known.astype(np.float16))


def test_a_policy_on_one_slot_of_many():
    slot = np.array([[0, 255], [7, 3]], np.int16)
    best = all_on(slot)
    np.testing.assert_array_equal(spread_out(best, 300), np.eye(300)[slot])
    assert not np.any(best.rest)
    whole = jax.device_get(keep(np.eye(300, dtype=np.float32)[slot]))
    assert (whole.slot[..., 0] == slot).all() and (whole.share[..., 0] == 1).all()
    assert not np.any(whole.rest)
