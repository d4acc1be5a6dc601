"""Walls inside the network: gates between cells, and the W block, whose convolutions stop at them.

A walled convolution sums, for each cell, a matrix times its own features and one matrix each times
those of its four neighbours. Each side of a cell has a gate. A neighbour counts as zero where the
gate is 0: a wall stands between, or it is not a playable cell. Stones close no gate.

B boards, H W cells, F features in, D out; sides are numbered as in `wallgo_jax.board.geometry`.
"""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import nnx

from train.game import NUM_SIDES, SIDE_OFFSETS, SIDES, Channel, side_delta
from train.network.config import NetworkConfig
from train.network.convolutions import convolve, is_large_on_cpu
from train.network.layers import Board, Norm, Playable, keep, shifted


def wall_gates(
    planes: jax.Array,
    channels: tuple[Channel, ...],
    playable: Playable,
    *,
    dtype: Any,
) -> jax.Array:
    """[B, H, W, 4] of 0 and 1: the gates of each cell by side, from the board as it stands.

    Args:
      planes: bool[B, H, W, C].
      channels: of the planes.
      playable: see `train.network.layers`.
      dtype: of the gates.
    """
    chex.assert_shape(planes, (None, None, None, len(channels)))

    def is_open(kind: str) -> jax.Array:
        """bool[B, H, W]: a playable cell without such a wall of anybody's."""
        owners = [i for i, c in enumerate(channels) if c.kind == kind and c.age == 0]
        return is_playable & ~functools.reduce(jnp.logical_or, (planes[..., i] for i in owners))

    is_playable = jnp.ones(planes.shape[:3], bool) if playable is None else playable[..., 0] > 0
    down = (is_open("horizontal")[:, :-1] & is_playable[:, 1:]).astype(dtype)
    right = (is_open("vertical")[:, :, :-1] & is_playable[:, :, 1:]).astype(dtype)
    # Each open edge is found once, from its upper or left cell, and is a gate of both its cells.
    up = jnp.pad(down, ((0, 0), (1, 0), (0, 0)))
    left = jnp.pad(right, ((0, 0), (0, 0), (1, 0)))
    down = jnp.pad(down, ((0, 0), (0, 1), (0, 0)))
    right = jnp.pad(right, ((0, 0), (0, 0), (0, 1)))
    return jnp.stack([up, right, down, left], axis=-1)


def convolve_walled(x: jax.Array, gates: jax.Array, kernel: jax.Array) -> jax.Array:
    """[B, H, W, D]: the walled convolution, computed in the way that is fastest on this device.

    Args:
      x: [B, H, W, F].
      gates: [B, H, W, 4] of 0 and 1, see `wall_gates`; 0 towards cells that there are not.
      kernel: [5, F, D], the matrix of the cell itself, then of its neighbours by side.
    """
    chex.assert_shape(gates, (*x.shape[:3], NUM_SIDES))
    chex.assert_shape(kernel, (1 + NUM_SIDES, x.shape[-1], None))
    return by_rows(x, gates, kernel) if is_large_on_cpu(x) else by_stack(x, gates, kernel)


def by_stack(x: jax.Array, gates: jax.Array, kernel: jax.Array) -> jax.Array:
    """`convolve_walled` as one product of the features of cell and neighbours, side by side."""
    beside = [shifted(x, SIDE_OFFSETS[side]) * gates[..., side : side + 1] for side in SIDES]
    stacked = jnp.concatenate([x, *beside], axis=-1)
    return jnp.einsum("bhwf,fd->bhwd", stacked, kernel.reshape(-1, kernel.shape[-1]))


def by_rows(x: jax.Array, gates: jax.Array, kernel: jax.Array) -> jax.Array:
    """`convolve_walled` as a product for each matrix; the sum reads the products where they lie.

    The cells of all boards are the rows of one matrix, so that a neighbour is a fixed number of
    rows away; beyond a border that is a cell of another row or board, but there the gate is 0.
    Nothing is padded or copied for a shift, which on a CPU costs more than the products.
    """
    boards, height, width, features = x.shape
    cells = boards * height * width
    gates = gates.reshape(cells, NUM_SIDES)
    own, *beside = kernel
    # A row of cells more at either end, for the first and the last board.
    rows = jnp.pad(x.reshape(cells, features), ((width, width), (0, 0)))
    total = (rows @ own)[width : width + cells]
    for side, matrix in zip(SIDES, beside, strict=True):
        first = width + side_delta(side, width)
        total = total + (rows @ matrix)[first : first + cells] * gates[:, side : side + 1]
    return total.reshape(boards, height, width, -1)


class WalledConvolution(nnx.Module):
    """`convolve_walled` with a learned kernel: [B, H, W, F] -> the same shape."""

    def __init__(self, width: int, *, use_bias: bool, dtype: Any, rngs: nnx.Rngs) -> None:
        self.dtype = dtype
        initial = nnx.initializers.lecun_normal()
        shape = 1 + NUM_SIDES, width, width
        self.kernel = nnx.Param(initial(rngs.params(), shape, jnp.float32))
        self.bias = nnx.Param(jnp.zeros(width, jnp.float32)) if use_bias else None

    def __call__(self, x: jax.Array, gates: jax.Array) -> jax.Array:
        y = convolve_walled(x, gates, self.kernel[...].astype(self.dtype))
        return y if self.bias is None else y + self.bias[None, None, None].astype(self.dtype)


class WalledBlock(nnx.Module):
    """An R block with a walled convolution as its second one."""

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        width, plain = config.width, config.norm == "none"
        options = {"use_bias": plain, "dtype": dtype, "rngs": rngs}
        self.conv = nnx.Conv(width, width, (3, 3), conv_general_dilated=convolve, **options)
        self.norm1 = Norm(config, dtype=dtype, rngs=rngs)
        self.walled = WalledConvolution(width, **options)
        self.norm2 = Norm(config, dtype=dtype, rngs=rngs)
        self.scale = nnx.Param(jnp.zeros((), jnp.float32)) if plain else None

    def __call__(self, x: jax.Array, board: Board) -> jax.Array:
        playable, gates = board.playable, board.gates
        assert gates is not None, "a trunk with W blocks works out the gates"
        y = keep(nnx.relu(self.norm1(self.conv(x), playable)), playable)
        y = self.norm2(self.walled(y, gates), playable)
        if self.scale is not None:
            y = y * self.scale[...].astype(y.dtype)
        return keep(nnx.relu(x + y), playable)
