"""The blocks of the trunk: each maps features [B, H, W, F] to features of that shape.

R blocks are AlphaZero's. T blocks take the cells as tokens in row-major order, with a learned bias
for each head and relative position; the table is indexed by offset, so a board of any size reads
its part, and the parts that no board has read yet are zero.

`playable` is [B, H, W, 1] of 0 and 1, or None where every cell is playable; features of cells that
are not playable never reach those that are.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.game import MAX_GRID, fusion_barrier
from train.network.config import NetworkConfig
from train.network.convolutions import convolve
from train.network.slots import MASKED
from train.runtime.devices import backend

BIAS_SPAN = 2 * MAX_GRID - 1
Playable = jax.Array | None


class Board(NamedTuple):
    """The parts of the boards that blocks read beside the features."""

    playable: Playable
    gates: jax.Array | None  # [B, H, W, 4], see `train.network.walls`; None where nothing reads it


def keep(x: jax.Array, playable: Playable) -> jax.Array:
    """[B, H, W, F]: `x` with zeros where the cell is not playable."""
    return x if playable is None else x * playable


def shifted(x: jax.Array, offset: tuple[int, int]) -> jax.Array:
    """[B, H, W, F]: at each cell the features of the cell that lies a (row, column) offset from it;
    zeros where that is beyond the border."""
    row, column = offset
    padding = ((0, 0, 0), (-row, row, 0), (-column, column, 0), (0, 0, 0))
    return jax.lax.pad(x, jnp.zeros((), x.dtype), padding)


@jax.custom_vjp
def store(x: jax.Array) -> jax.Array:
    """Return features unchanged; on a CPU they are in memory before anything reads them.

    XLA's CPU compiler fuses the sum that ends a block into all that reads it, and computes it again
    in each: with a few W blocks one behind another, again for each block before it as well.
    """
    return fusion_barrier(x, token=x.reshape(-1)[0] < -jnp.inf) if backend() == "cpu" else x


store.defvjp(lambda x: (store(x), None), lambda _, gradient: (gradient,))

_MOMENTUM = 0.9
"""Of running batch statistics, which self-play reads: 20 steps forget nine tenths of the old ones,
also those of the random weights that a run begins with."""


class Norm(nnx.Module):
    """The normalisation that the config names; batch statistics count playable cells only."""

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        kinds = {
            "batch": functools.partial(nnx.BatchNorm, momentum=_MOMENTUM),
            "layer": nnx.LayerNorm,
        }
        kind = kinds.get(config.norm)
        self.norm = None if kind is None else kind(config.width, dtype=dtype, rngs=rngs)

    def __call__(self, x: jax.Array, playable: Playable) -> jax.Array:
        if self.norm is None:
            return x
        if isinstance(self.norm, nnx.BatchNorm):
            return self.norm(x, mask=None if playable is None else playable > 0)
        return self.norm(x)


class Stem(nnx.Module):
    """Planes to features: conv, norm, ReLU."""

    def __init__(self, config: NetworkConfig, planes: int, *, dtype: Any, rngs: nnx.Rngs) -> None:
        bias = config.norm == "none"
        self.conv = nnx.Conv(
            planes,
            config.width,
            (3, 3),
            use_bias=bias,
            dtype=dtype,
            conv_general_dilated=convolve,
            rngs=rngs,
        )
        self.norm = Norm(config, dtype=dtype, rngs=rngs)

    def __call__(self, planes: jax.Array, playable: Playable) -> jax.Array:
        features = self.norm(self.conv(keep(planes, playable)), playable)
        return keep(nnx.relu(features), playable)


class ResidualBlock(nnx.Module):
    """AlphaZero's block: conv, norm, ReLU, conv, norm, add, ReLU; convolutions have no bias.

    Without norm the convolutions have biases, and a learned number scales the residual.
    """

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        width, plain = config.width, config.norm == "none"
        options = {"use_bias": plain, "dtype": dtype, "rngs": rngs}
        options["conv_general_dilated"] = convolve
        self.conv1 = nnx.Conv(width, width, (3, 3), **options)
        self.norm1 = Norm(config, dtype=dtype, rngs=rngs)
        self.conv2 = nnx.Conv(width, width, (3, 3), **options)
        self.norm2 = Norm(config, dtype=dtype, rngs=rngs)
        self.scale = nnx.Param(jnp.zeros((), jnp.float32)) if plain else None

    def __call__(self, x: jax.Array, board: Board) -> jax.Array:
        playable = board.playable
        y = keep(nnx.relu(self.norm1(self.conv1(x), playable)), playable)
        y = self.norm2(self.conv2(y), playable)
        if self.scale is not None:
            y = y * self.scale[...].astype(y.dtype)
        return keep(nnx.relu(x + y), playable)


class TransformerBlock(nnx.Module):
    """Pre-norm attention over the cells and an MLP, with a bias for each head and offset."""

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        width, hidden = config.width, round(config.width * config.mlp_ratio)
        options = {"dtype": dtype, "rngs": rngs}
        self.heads = config.heads
        self.norm1 = nnx.LayerNorm(width, **options)
        self.query_key_value = nnx.Linear(width, 3 * width, **options)
        self.merge_heads = nnx.Linear(width, width, **options)
        self.offset_bias = nnx.Param(jnp.zeros((config.heads, BIAS_SPAN, BIAS_SPAN), jnp.float32))
        self.norm2 = nnx.LayerNorm(width, **options)
        self.expand = nnx.Linear(width, hidden, **options)
        self.contract = nnx.Linear(hidden, width, **options)

    def __call__(self, x: jax.Array, board: Board) -> jax.Array:
        return self.attend(x, board)[0]

    def attend(self, x: jax.Array, board: Board) -> tuple[jax.Array, jax.Array]:
        """Features, and the attention float32[B, heads, H W, H W] behind them: the weight of each
        cell (last axis, of sum 1) in each cell (second to last axis)."""
        playable = board.playable
        batch, height, width, features = x.shape
        tokens = x.reshape(batch, height * width, features)
        query, key, value = self._project(self.norm1(tokens))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(features // self.heads)
        scores = scores.astype(jnp.float32) + self._bias((height, width))[None]
        if playable is not None:
            is_key = playable.reshape(batch, 1, 1, height * width) > 0
            scores = jnp.where(is_key, scores, MASKED)
        attention = jax.nn.softmax(scores, axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", attention.astype(tokens.dtype), value)
        tokens = tokens + self.merge_heads(mixed.reshape(tokens.shape))
        tokens = tokens + self.contract(nnx.gelu(self.expand(self.norm2(tokens))))
        return keep(tokens.reshape(x.shape), playable), attention

    def _project(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Queries, keys and values [B, H W, heads, F / heads]."""
        batch, cells, _ = tokens.shape
        split = self.query_key_value(tokens).reshape(batch, cells, 3, self.heads, -1)
        return split[:, :, 0], split[:, :, 1], split[:, :, 2]

    def _bias(self, shape: tuple[int, int]) -> jax.Array:
        """float32[heads, H W, H W], gathered by (row, column) offset between two cells."""
        rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        down = rows[None, :] - rows[:, None] + MAX_GRID - 1
        across = columns[None, :] - columns[:, None] + MAX_GRID - 1
        return self.offset_bias[...][:, down, across]
