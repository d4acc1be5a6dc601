"""Convolutions by kernels of 3x3 cells, each in the way that is fastest on this device.

XLA's own, everywhere but on a CPU. There batches of boards go by tiles: each tile of up to 4x4
cells as polynomials at a few points, where convolving is multiplying (Winograd, "Arithmetic
Complexity of Computations", 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016). On 7x7 cells that is 121 products of a pair of planes instead of 441, as
matrix products, which XLA runs near the peak; the ways to the points and back are matrix products
too. In float32 the result differs from XLA's by about 1e-5 of the largest number.

B boards, H W cells, F planes in, D planes out.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TILE = 4
"""Most cells of a tile in a row: with more, float32 loses digits."""
POINTS = (0.0, 1.0, -1.0, 2.0, -2.0)
"""Where polynomials are read; infinity is one more."""
MIN_BOARDS = 32
"""Fewer do not repay what is worked out of the kernel."""
MIN_WIDTH = 48
"""Planes, in and out, from which tiles are faster."""


class Tile(NamedTuple):
    """A tile along one axis: n cells, n + 2 points, c cells that it reads."""

    start: int  # of the cells that it reads, those beyond the border left out
    stop: int
    read: np.ndarray  # float64[n + 2, c], from cells to points
    kernel: np.ndarray  # float64[n + 2, 3], from the kernel to points
    write: np.ndarray  # float64[n, n + 2], from products at points to cells


def convolve(x: jax.Array, kernel: jax.Array, *args: Any, **options: Any) -> jax.Array:
    """[B, H, W, D]: in place of `jax.lax.conv_general_dilated` in a layer of stride 1 that keeps
    the shape of the board.

    Args:
      x: [B, H, W, F].
      kernel: [3, 3, F, D].
    """
    boards, *_, planes = x.shape
    if jax.default_backend() != "cpu" or boards < MIN_BOARDS or x.dtype != jnp.float32:
        return jax.lax.conv_general_dilated(x, kernel, *args, **options)
    if min(planes, kernel.shape[3]) >= MIN_WIDTH:
        return by_tiles(x, kernel)
    return _directly(x, kernel)


def _directly(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """XLA's, with a plane of zeros more where their number is odd: it convolves 13 planes in 1.7
    times the time of 14."""
    if x.shape[-1] % 2:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, 1), (0, 0)))
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def by_tiles(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """[B, H, W, D]: `convolve`, tile by tile."""
    boards, height, width, planes = x.shape
    deep = kernel.shape[3]
    rows = []
    for down in tiles(height):
        row = []
        for across in tiles(width):
            read, of_kernel, write = (
                np.kron(one, other).astype(np.float32)
                for one, other in zip(down[2:], across[2:], strict=True)
            )
            seen = x[:, down.start : down.stop, across.start : across.stop]
            seen = seen.transpose(1, 2, 0, 3).reshape(read.shape[1], boards * planes)
            at_points = (read @ seen).reshape(-1, boards, planes)
            factors = (of_kernel @ kernel.reshape(9, planes * deep)).reshape(-1, planes, deep)
            products = jnp.einsum("pbf,pfd->pbd", at_points, factors)
            cells = write @ products.reshape(write.shape[1], boards * deep)
            cells = cells.reshape(len(down.write), len(across.write), boards, deep)
            row.append(cells.transpose(2, 0, 1, 3))
        rows.append(jnp.concatenate(row, axis=2))
    return jnp.concatenate(rows, axis=1)


@functools.cache
def tiles(length: int) -> tuple[Tile, ...]:
    """The tiles of so many cells in a row, as even as they get, none of more than TILE."""
    count = -(-length // TILE)
    found, first = [], 0
    for index in range(count):
        cells = length // count + (index < length % count)
        read, kernel, write = _toom_cook(cells, 3)
        start, stop = max(first - 1, 0), min(first + cells + 1, length)
        inside = slice(start - (first - 1), stop - (first - 1))
        found.append(Tile(start, stop, read[:, inside], kernel, write))
        first += cells
    return tuple(found)


def _toom_cook(cells: int, taps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices that make `cells` sums of `taps` neighbours each of `write @ ((kernel @ k) * (read @
    x))`: the product of two polynomials by their values at points, transposed.

    Returns:
      read float64[points, points], kernel float64[points, taps], write float64[cells, points].
    """
    points = cells + taps - 1

    def values(degrees: int) -> np.ndarray:
        """[points, degrees]: powers of each point; at infinity the highest counts alone."""
        powers = np.vander(POINTS[: points - 1], degrees, increasing=True)
        return np.vstack([powers, np.eye(degrees)[-1]])

    return np.linalg.inv(values(points)).T, values(taps), values(cells).T
