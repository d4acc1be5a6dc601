"""Convolutions by tiles against XLA's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.network import convolutions
from train.network.convolutions import MIN_BOARDS, MIN_WIDTH, convolve

LAYOUT = ("NHWC", "HWIO", "NHWC")


def given(boards: int, height: int, width: int, planes: int, deep: int):
    draw = np.random.default_rng(height * width)
    shapes = (boards, height, width, planes), (3, 3, planes, deep)
    return tuple(jnp.asarray(draw.standard_normal(shape, np.float32)) for shape in shapes)


def plainly(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)


def ours(x, kernel):
    return convolve(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)


def primitives(function, *arguments) -> str:
    return str(jax.make_jaxpr(function)(*arguments))


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("size", [1, 3, 4, 5, 9])
def test_tiles_convolve_as_xla_does(size):
    x, kernel = given(2, size, 7, 3, 5)
    assert_near(*jax.jit(lambda *a: (convolutions.by_tiles(*a), plainly(*a)))(x, kernel))


@pytest.mark.parametrize(
    ("boards", "planes", "deep"),
    [(2, 13, 32), (MIN_BOARDS, 13, 32), (MIN_BOARDS, MIN_WIDTH, MIN_WIDTH)],
)
def test_values_and_gradients_are_xlas(boards, planes, deep):
    arguments = given(boards, 5, 5, planes, deep)

    def made(function, *arguments):
        def loss(x, kernel):
            return jnp.square(function(x, kernel)).mean()

        return function(*arguments), *jax.grad(loss, (0, 1))(*arguments)

    both = jax.jit(lambda *a: (made(ours, *a), made(plainly, *a)))(*arguments)
    for found, expected in zip(*both, strict=True):
        assert_near(found, expected)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of a CPU")
def test_tiles_are_taken_where_they_are_faster():
    """Tiles are taken for many wide boards in float32 alone."""
    narrow = given(MIN_BOARDS, 5, 5, MIN_WIDTH - 1, MIN_WIDTH)
    wide = given(MIN_BOARDS, 5, 5, MIN_WIDTH, MIN_WIDTH)
    conv = "conv_general_dilated"
    assert conv not in primitives(ours, *wide)
    assert conv in primitives(ours, *narrow)
    assert conv in primitives(ours, *(x.astype(jnp.bfloat16) for x in map(np.asarray, wide)))
    assert conv in primitives(ours, np.asarray(wide[0])[:1], wide[1])


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of a CPU")
def test_odd_planes_are_made_even():
    x, kernel = given(MIN_BOARDS, 5, 5, 13, 32)
    assert f"f32[{MIN_BOARDS},5,5,14]" in primitives(ours, x, kernel)


@pytest.mark.parametrize(
    ("length", "cells"), [(3, [3]), (5, [3, 2]), (7, [4, 3]), (8, [4, 4]), (9, [3, 3, 3])]
)
def test_tiles_are_even(length, cells):
    assert [len(tile.write) for tile in convolutions.tiles(length)] == cells
