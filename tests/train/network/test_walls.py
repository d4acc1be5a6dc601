"""Gates against the slow referee, walled convolutions against a plain loop."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.game.planes import EVERYTHING, expected_planes
from tests.support.reference.games import random_games
from tests.support.reference.referee import SIDES
from train.network.convolutions import MIN_BOARDS
from train.network.restnet import playable_cells
from train.network.walls import by_rows, by_stack, convolve_walled, wall_gates
from train.runtime.devices import BY_BOARD, all_devices
from wallgo_jax import planes as planes_lib

GRID, PLAYERS = 5, 2
CHANNELS = planes_lib.channels(EVERYTHING, PLAYERS, has_playable=True)


def gates_of(planes, channels=CHANNELS) -> np.ndarray:
    """float32[B, H, W, 4]."""
    playable = playable_cells(planes, channels)
    return np.asarray(wall_gates(planes, channels, playable, dtype=jnp.float32))


@functools.cache
def positions() -> tuple[np.ndarray, np.ndarray]:
    """Planes of positions of random games, boards of 3x3 to 5x5 in a grid, and their open sides."""
    rng = random.Random(3)
    games = random_games(5, 20, grid=GRID, sizes=(3, 4, 5), players=PLAYERS, stones=2)
    planes, is_open = [], np.zeros((len(games), GRID, GRID, 4), np.float32)
    for index, game in enumerate(games):
        ply = rng.randrange(len(game.plies) // 2, len(game.plies))
        planes.append(expected_planes(game, ply))
        board = game.plies[ply].board
        for cell in board.cells():
            is_open[index, *cell] = [board.is_open(cell, side) for side in SIDES]
    return np.stack(planes), is_open


def test_gates_are_the_open_sides():
    planes, is_open = positions()
    np.testing.assert_array_equal(gates_of(planes), is_open)
    assert 0.3 < is_open.mean() < 0.7


def test_gates_need_no_plane_of_playable_cells():
    planes, is_open = positions()
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
    planes, gates = positions()
    draw = np.random.default_rng(2)
    x = draw.standard_normal((*planes.shape[:3], 4)).astype(np.float32)
    return x, gates, draw.standard_normal((5, 4, deep)).astype(np.float32)


@pytest.mark.parametrize("form", [by_rows, by_stack])
def test_walled_convolution_sums_what_no_wall_parts(form):
    np.testing.assert_allclose(form(*given()), looped(*given()), atol=1e-5)


def test_gradients_of_both_forms_agree():
    x, gates, kernel = given()

    def gradients(form):
        return jax.grad(lambda x, k: jnp.square(form(x, gates, k)).sum(), (0, 1))(x, kernel)

    for rows, stack in zip(*map(gradients, (by_rows, by_stack)), strict=True):
        np.testing.assert_allclose(rows, stack, rtol=1e-4, atol=1e-3)


def test_boards_spread_over_devices_keep_their_neighbours():
    x, gates, kernel = given()

    @jax.jit
    def values_and_gradient(x, gates, kernel):
        return by_rows(x, gates, kernel), jax.grad(
            lambda x: jnp.square(by_rows(x, gates, kernel)).sum()
        )(x)

    one = values_and_gradient(x, gates, kernel)
    by_board = all_devices(2).sharding(BY_BOARD)
    two = values_and_gradient(*jax.device_put((x, gates), by_board), kernel)
    for found, expected in zip(two, one, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


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


def test_gates_and_kernel_fit_the_features():
    x = jnp.zeros((2, 3, 3, 8))
    for gates, kernel in (((2, 3, 3, 5), (5, 8, 8)), ((2, 3, 3, 4), (4, 8, 8))):
        with pytest.raises(AssertionError):
            convolve_walled(x, jnp.zeros(gates), jnp.zeros(kernel))
