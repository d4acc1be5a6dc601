"""The heads: each takes features [B, H, W, F] and their pooled features [B, 2F].

Their last layers start at zero: a new network has a uniform policy and predicts value 0.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.game import MOVE_OFFSETS, NUM_SIDES, PLAYS_PER_STONE
from train.network.config import NetworkConfig
from train.network.layers import Playable, keep, shifted
from train.network.slots import POLICY_PLANES


def pool(x: jax.Array, playable: Playable) -> jax.Array:
    """[B, 2F]: mean and maximum over the playable cells."""
    if playable is None:
        mean, largest = x.mean(axis=(1, 2)), _largest(x)
    else:
        cells = playable.sum(axis=(1, 2), dtype=jnp.float32)
        mean = (x * playable).sum(axis=(1, 2), dtype=jnp.float32) / cells
        largest = _largest(jnp.where(playable > 0, x, -jnp.inf))
    return jnp.concatenate([mean.astype(x.dtype), largest], axis=-1)


@jax.custom_vjp
def _largest(x: jax.Array) -> jax.Array:
    """[B, F]: the maximum over the cells of [B, H, W, F].

    The gradient goes in equal shares to the cells within rounding of the maximum. The gradient of
    `jnp.max` goes to the cells equal to it and is NaN where there are none, which happens where XLA
    computes the features again for the comparison and rounds them differently.
    """
    return x.max(axis=(1, 2))


def _largest_forward(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    top = _largest(x)
    return top, (x, top)


def _largest_backward(kept: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array]:
    x, top = kept
    kind = x.dtype
    # Half a step of the features' type, as far as another rounding of the same number can be; at
    # least a few steps of float32, in which they are computed.
    rounding = max(float(jnp.finfo(kind).eps) / 2, 8 * float(jnp.finfo(jnp.float32).eps))
    x, top = x.astype(jnp.float32), top.astype(jnp.float32)
    is_top = x >= (top - rounding * jnp.abs(top))[:, None, None, :]
    count = jnp.maximum(is_top.sum(axis=(1, 2), dtype=jnp.float32), 1.0)
    share = gradient / count.astype(gradient.dtype)
    return (jnp.where(is_top, share[:, None, None, :], 0).astype(kind),)


_largest.defvjp(_largest_forward, _largest_backward)


def multiply_cells(x: jax.Array, kernel: jax.Array, *args: Any, **options: Any) -> jax.Array:
    """[B, H, W, D]: a convolution of `x` [B, H, W, C] by a kernel of one cell [1, 1, C, D].

    It is a matrix product, which XLA on CPU runs faster, above all backwards. Further arguments, of
    `jax.lax.conv_general_dilated`, are left unread.
    """
    del args, options
    return jnp.einsum("bhwc,cd->bhwd", x, kernel[0, 0])


class CellHead(nnx.Module):
    """Numbers for each cell, from its own features and the pooled ones: float32[B, H, W, D]."""

    def __init__(self, config: NetworkConfig, numbers: int, *, dtype: Any, rngs: nnx.Rngs) -> None:
        zeros: dict[str, Any] = {"kernel_init": nnx.initializers.zeros_init()}
        options: dict[str, Any] = {"dtype": dtype, "rngs": rngs, **zeros}
        by_cell = {"conv_general_dilated": multiply_cells, **options}
        self.here = nnx.Conv(config.width, numbers, (1, 1), **by_cell)
        self.everywhere = nnx.Linear(2 * config.width, numbers, use_bias=False, **options)

    def __call__(self, x: jax.Array, pooled: jax.Array) -> jax.Array:
        numbers = self.here(x) + self.everywhere(pooled)[:, None, None, :]
        return numbers.astype(jnp.float32)


def add_destinations(policy: jax.Array, walls: jax.Array, playable: Playable) -> jax.Array:
    """float32[B, H, W, 53]: policy logits plus those of the cells where the moves end.

    logit(cell, move, wall) = policy(cell, move, wall) + walls(cell + move, wall). A move that ends
    off the board keeps its logit, and so do placements.

    Args:
      policy: float32[B, H, W, 53].
      walls: float32[B, H, W, 4], a logit for each wall around a cell where a move ends.
    """
    chex.assert_shape(policy, (*walls.shape[:3], POLICY_PLANES))
    chex.assert_axis_dimension(walls, 3, NUM_SIDES)
    ends = [shifted(keep(walls, playable), offset) for offset in MOVE_OFFSETS]
    placements = jnp.zeros_like(policy[..., PLAYS_PER_STONE:])
    return policy + jnp.concatenate([*ends, placements], axis=-1)


class BoardHead(nnx.Module):
    """Numbers for the board, from the pooled features alone: float32[B, D]."""

    def __init__(self, config: NetworkConfig, numbers: int, *, dtype: Any, rngs: nnx.Rngs) -> None:
        options = {"dtype": dtype, "rngs": rngs}
        self.hidden = nnx.Linear(2 * config.width, config.value_width, **options)
        self.last = nnx.Linear(
            config.value_width, numbers, kernel_init=nnx.initializers.zeros_init(), **options
        )

    def __call__(self, x: jax.Array, pooled: jax.Array) -> jax.Array:
        del x
        return self.last(nnx.relu(self.hidden(pooled))).astype(jnp.float32)


def num_values(kind: str, players: int) -> int:
    """Number of outputs of the value head: see `expected_rewards`."""
    if kind == "wdl":
        return players + 1
    return 1 if players == 2 else players


def expected_rewards(numbers: jax.Array, kind: str, players: int) -> jax.Array:
    """float32[B, P] in [-1, 1] from the value head's numbers, the player to move first.

    With `scalar` the numbers are expected rewards before the tanh: the mover's for two players,
    else one a player. With `wdl` they are logits of each player's win, the mover first, then of a
    draw; a win gives 1 and costs each other player 1 / (P - 1).
    """
    if kind == "wdl":
        chances = jax.nn.softmax(numbers, axis=-1)[:, :players]
        lost = chances.sum(axis=-1, keepdims=True) - chances
        return chances - lost / (players - 1)
    values = jnp.tanh(numbers)
    return values * np.array([[1.0, -1.0]], np.float32) if players == 2 else values
