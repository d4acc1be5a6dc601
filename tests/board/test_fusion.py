"""The fusion border hands its values through unchanged."""

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board.fusion import fusion_barrier


def test_values_pass_unchanged():
    bits, flag = jnp.arange(5, dtype=jnp.uint32), jnp.array([True, False])
    values = {"bits": bits, "flag": flag, "more": bits + 7, "most": bits + 9}

    def border(values, counter):
        return fusion_barrier(values, token=counter < 0)

    passed = jax.jit(border)(values, jnp.int32(0))
    for name, value in values.items():
        assert passed[name].dtype == value.dtype
        np.testing.assert_array_equal(passed[name], value)


def test_border_works_under_vmap_inside_a_loop():
    def body(carry, _):
        total, counter = carry
        total = fusion_barrier(total + 1, token=counter < 0)
        return (total, counter + 1), total

    def run(total):
        return jax.lax.scan(body, (total, jnp.int32(0)), None, length=3)[1]

    totals = jax.jit(jax.vmap(run))(jnp.arange(4))
    np.testing.assert_array_equal(totals, np.arange(4)[:, None] + np.arange(1, 4))
