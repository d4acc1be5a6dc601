"""Gates against the slow referee, walled convolutions against a plain loop."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.game.planes import EVERYTHING, expected_planes
from tests.support.reference.games import random_games
from tests.support.reference.referee import SIDES, Board
from train.network.convolutions import MIN_BOARDS
from train.network.restnet import playable_cells
from train.network.walls import (
    by_rows,
    by_stack,
    convolve_walled,
    wall_gates,
)
from train.runtime.devices import BY_BOARD, all_devices
from wallgo_jax import planes as planes_lib

GRID, PLAYERS = 5, 2
CHANNELS = planes_lib.channels(EVERYTHING, PLAYERS, has_playable=True)


def gates_of(planes, channels=CHANNELS) -> np.ndarray:
    """float32[B, H, W, 4]."""
    return np.asarray(_gates_of(planes, channels))


@functools.partial(jax.jit, static_argnums=1)
def _gates_of(planes, channels):
    playable = playable_cells(planes, channels)
    return wall_gates(planes, channels, playable, dtype=jnp.float32)


@functools.cache
def boards() -> tuple[np.ndarray, list[Board]]:
    """Planes of positions of random games, boards of 3x3 to 5x5 in a grid, and their boards."""
    rng = random.Random(3)
    games = random_games(5, 20, grid=GRID, sizes=(3, 4, 5), players=PLAYERS, stones=2)
    planes, found = [], []
    for game in games:
        ply = rng.randrange(len(game.plies) // 2, len(game.plies))
        planes.append(expected_planes(game, ply))
        found.append(game.plies[ply].board)
    return np.stack(planes), found


@functools.cache
def open_sides() -> np.ndarray:
    """float32[B, H, W, 4]: the open sides of the cells of `boards`."""
    found = boards()[1]
    is_open = np.zeros((len(found), GRID, GRID, 4), np.float32)
    for index, board in enumerate(found):
        for cell in board.cells():
            is_open[index, *cell] = [board.is_open(cell, side) for side in SIDES]
    return is_open


def test_gates_are_the_open_sides():
    np.testing.assert_array_equal(gates_of(boards()[0]), open_sides())
    assert 0.3 < open_sides().mean() < 0.7


def test_gates_need_no_plane_of_playable_cells():
    planes, is_open = boards()[0], open_sides()
    full = planes[..., -1].all(axis=(1, 2))
    assert full.sum() > 3
    np.testing.assert_array_equal(gates_of(planes[full, ..., :-1], CHANNELS[:-1]), is_open[full])


def looped(x: np.ndarray, gates: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """The walled convolution, cell by cell."""
    boards, height, width, _ = x.shape
    y = np.zeros((boards, height, width, kernel.shape[2]))
    for board, row, column in np.ndindex(boards, height, width):
        y[board, row, column] = x[board, row, column] @ kernel[0]
        for side, (down, across) in enumerate(SIDES):
            if gates[board, row, column, side]:
                y[board, row, column] += x[board, row + down, column + across] @ kernel[1 + side]
    return y


def given(deep: int = 3):
    """Features, gates and a kernel of the positions."""
    planes, gates = boards()[0], open_sides()
    draw = np.random.default_rng(2)
    x = draw.standard_normal((*planes.shape[:3], 4)).astype(np.float32)
    return x, gates, draw.standard_normal((5, 4, deep)).astype(np.float32)


def values_and_gradients(form, x, gates, kernel):
    """The convolution in a form, and the gradients of the sum of its squares by x and kernel."""

    @jax.jit
    def compute(x, gates, kernel):
        def total(x, kernel):
            y = form(x, gates, kernel)
            return jnp.square(y).sum(), y

        gradients, y = jax.grad(total, (0, 1), has_aux=True)(x, kernel)
        return y, *gradients

    return compute(x, gates, kernel)


def test_walled_convolution_sums_what_no_wall_parts():
    """In both forms, and where boards beside each other in memory lie on two devices."""
    x, gates, kernel = given()
    spread = jax.device_put((x, gates), all_devices(2).sharding(BY_BOARD))
    rows, stack = (values_and_gradients(form, x, gates, kernel) for form in (by_rows, by_stack))
    on_two = values_and_gradients(by_rows, *spread, kernel)
    np.testing.assert_allclose(rows[0], looped(x, gates, kernel), atol=1e-5)
    for found, also, expected in zip(rows, on_two, stack, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(also, found, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("boards", "dtype", "form"),
    [
        (MIN_BOARDS - 1, jnp.float32, by_stack),
        (MIN_BOARDS, jnp.bfloat16, by_stack),
        (MIN_BOARDS, jnp.float32, by_rows),
    ],
)
def test_form_fits_batch_and_type(boards, dtype, form):
    shapes = (boards, 3, 3, 8), (boards, 3, 3, 4), (5, 8, 8)
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    assert str(jax.make_jaxpr(convolve_walled)(*arguments)) == str(jax.make_jaxpr(form)(*arguments))
