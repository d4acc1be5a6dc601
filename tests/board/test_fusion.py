"""The fusion border hands its values through unchanged."""

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board.fusion import materialize


def test_values_pass_unchanged():
    values = {"bits": jnp.arange(5, dtype=jnp.uint32), "flag": jnp.array([True, False])}

    def border(values, counter):
        return materialize(values, never=counter < 0)

    passed = jax.jit(border)(values, jnp.int32(0))
    assert jax.tree.map(lambda leaf: leaf.dtype, passed) == {"bits": jnp.uint32, "flag": jnp.bool_}
    np.testing.assert_array_equal(passed["bits"], np.arange(5))
    np.testing.assert_array_equal(passed["flag"], [True, False])


def test_border_works_under_vmap_inside_a_loop():
    def body(carry, _):
        total, counter = carry
        total = materialize(total + 1, never=counter < 0)
        return (total, counter + 1), total

    def run(total):
        return jax.lax.scan(body, (total, jnp.int32(0)), None, length=3)[1]

    totals = jax.jit(jax.vmap(run))(jnp.arange(4))
    np.testing.assert_array_equal(totals, np.arange(4)[:, None] + np.arange(1, 4))
