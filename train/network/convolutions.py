"""Convolutions by kernels of 3x3 cells, computed in the way that is fastest on this device.

Accelerators use XLA's own convolution. On a CPU large batches are computed tile by tile (Winograd,
"Arithmetic Complexity of Computations", 1980; Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks", CVPR 2016). A tile is at most 4 cells on a side; 7 cells in a row make tiles of 4
and 3 cells:

    cells of the row      0 1 2 3 | 4 5 6
    first tile reads    . 0 1 2 3   4          the dot lies beyond the border and counts as zero
    second tile reads           3   4 5 6 .

    cells --read--> values at points --times the kernel's values--> products --write--> cells

Along an axis the n cells of a tile and the kernel are polynomials. At any point the value of their
product is the product of their values, and n + 2 points determine it. In two dimensions a tile of
n x m cells takes (n + 2) (m + 2) products for each pair of planes in and out instead of 9 n m: on
7x7 cells 121 instead of 441. They are matrix products, which XLA runs near the CPU's peak, and so
are the steps to the points and back. In float32 the result differs from XLA's by about 1e-5 of the
largest number.

B boards, H W cells, F planes in, D planes out.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import backend

TILE = 4
"""Cells on a side of the largest tile: with more, float32 loses digits."""
POINTS = (0.0, 1.0, -1.0, 2.0, -2.0)
"""Points at which polynomials are evaluated; infinity is one more."""
MIN_BOARDS = 32
"""Smallest batch computed by tiles: a smaller one gains less than the kernel's values cost."""
MIN_WIDTH = 48
"""Number of planes, in and out, from which tiles are faster."""


class Tile(NamedTuple):
    """A tile along one axis: n cells of output, n + 2 points, c cells of input."""

    start: int  # first cell of input; cells beyond the border are left out
    stop: int  # one past the last cell of input
    read: np.ndarray  # float64[n + 2, c], from cells to points
    kernel: np.ndarray  # float64[n + 2, 3], from the kernel to points
    write: np.ndarray  # float64[n, n + 2], from products at points to cells


def convolve(x: jax.Array, kernel: jax.Array, *args: Any, **options: Any) -> jax.Array:
    """[B, H, W, D]: replaces `jax.lax.conv_general_dilated` in a layer of stride 1 with padding
    SAME.

    Args:
      x: [B, H, W, F].
      kernel: [3, 3, F, D].
    """
    chex.assert_rank(x, 4)
    chex.assert_shape(kernel, (3, 3, x.shape[-1], None))
    planes = x.shape[-1]
    if not is_large_on_cpu(x):
        return jax.lax.conv_general_dilated(x, kernel, *args, **options)
    if min(planes, kernel.shape[3]) >= MIN_WIDTH:
        return by_tiles(x, kernel)
    return _convolve_even(x, kernel)


def is_large_on_cpu(x: jax.Array) -> bool:
    """Whether forms made for a CPU pay for [B, H, W, F]: a large batch of float32 on a CPU."""
    return backend() == "cpu" and x.shape[0] >= MIN_BOARDS and x.dtype == jnp.float32


def _convolve_even(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """XLA's convolution, with one more plane of zeros where the number of planes is odd: on a CPU
    it takes 1.7 times as long for 13 planes as for 14."""
    if x.shape[-1] % 2:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))
        kernel = jnp.pad(kernel, ((0, 0), (0, 0), (0, 1), (0, 0)))
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def by_tiles(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """[B, H, W, D]: `convolve`, tile by tile; the steps are those of the picture above."""
    boards, height, width, planes = x.shape
    deep = kernel.shape[3]
    rows = []
    for down in tiles(height):
        row = []
        for across in tiles(width):
            # Both axes at once: the product of the axes' matrices acts on row-major cells.
            read, of_kernel, write = (
                np.kron(one, other).astype(np.float32)
                for one, other in zip(down[2:], across[2:], strict=True)
            )
            cells_in = x[:, down.start : down.stop, across.start : across.stop]
            cells_in = cells_in.transpose(1, 2, 0, 3).reshape(read.shape[1], boards * planes)
            at_points = (read @ cells_in).reshape(-1, boards, planes)
            factors = (of_kernel @ kernel.reshape(9, planes * deep)).reshape(-1, planes, deep)
            products = jnp.einsum("pbf,pfd->pbd", at_points, factors)
            cells = write @ products.reshape(write.shape[1], boards * deep)
            cells = cells.reshape(len(down.write), len(across.write), boards, deep)
            row.append(cells.transpose(2, 0, 1, 3))
        rows.append(jnp.concatenate(row, axis=2))
    return jnp.concatenate(rows, axis=1)


@functools.cache
def tiles(length: int) -> tuple[Tile, ...]:
    """The tiles of a row of cells: as few as possible, of even sizes, none larger than TILE."""
    count = -(-length // TILE)
    found, first = [], 0
    for index in range(count):
        cells = length // count + (index < length % count)
        read, kernel, write = _toom_cook(cells, 3)
        start, stop = max(first - 1, 0), min(first + cells + 1, length)
        # Cells beyond the border are zero, so their columns of `read` are left out.
        inside = slice(start - (first - 1), stop - (first - 1))
        found.append(Tile(start, stop, read[:, inside], kernel, write))
        first += cells
    return tuple(found)


def _toom_cook(cells: int, taps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices of the algorithm of Toom and Cook, transposed.

    With them `write @ ((kernel @ k) * (read @ x))` gives `cells` sums, each of `taps` neighbours in
    `x` weighted by `k`. Polynomials are multiplied by their values at points; a convolution is the
    transpose of that product in `x`, hence the transposed matrices.

    Returns:
      read float64[points, points], kernel float64[points, taps], write float64[cells, points].
    """
    points = cells + taps - 1

    def values(degrees: int) -> np.ndarray:
        """[points, degrees]: powers of each point; at infinity only the highest remains."""
        powers = np.vander(POINTS[: points - 1], degrees, increasing=True)
        return np.vstack([powers, np.eye(degrees)[-1]])

    return np.linalg.inv(values(points)).T, values(taps), values(cells).T
