"""The fusion barrier returns its values unchanged, and the compiler fuses nothing across it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wallgo_jax.board.fusion import fusion_barrier


def test_values_pass_unchanged():
    bits, flag = jnp.arange(5, dtype=jnp.uint32), jnp.array([True, False])
    values = {"bits": bits, "flag": flag, "more": bits + 7, "most": bits + 9}

    def barred(values, counter):
        return fusion_barrier(values, token=counter < 0)

    passed = jax.jit(barred)(values, jnp.int32(0))
    for name, value in values.items():
        assert passed[name].dtype == value.dtype
        np.testing.assert_array_equal(passed[name], value)


def make_program(*, has_barrier: bool):
    """Sines of 8 cells, of which each is read by 64 hyperbolic tangents."""

    def run(cells, counter):
        sines = jnp.sin(cells)
        if has_barrier:
            sines = fusion_barrier(sines, token=counter < 0)
        return jnp.tanh(sines[:, None] + jnp.arange(64.0)[None, :]).sum(axis=1)

    return jax.jit(run).trace(jnp.ones(8), jnp.int32(0))


def computations_with(text: str, *operations: str) -> list[bool]:
    """Whether each computation of a compiled program that holds the first operation holds all."""
    computations = [part for part in text.split("\n\n") if f" {operations[0]}(" in part]
    return [all(f" {name}(" in part for name in operations) for part in computations]


def test_cpu_fuses_nothing_across_the_barrier():
    """The plain program computes the sines again for each tangent, in one fusion of both."""
    plain = make_program(has_barrier=False).lower().compile().as_text()
    barred = make_program(has_barrier=True).lower().compile().as_text()
    assert computations_with(plain, "sine", "tanh") == [True]
    assert computations_with(barred, "sine", "tanh") == [False]
    assert computations_with(barred, "while") == [True]
    assert computations_with(plain, "while") == []


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_accelerators_get_the_plain_barrier(platform):
    text = make_program(has_barrier=True).lower(lowering_platforms=(platform,)).as_text()
    assert text.count("stablehlo.optimization_barrier") == 1
    assert "stablehlo.while" not in text
