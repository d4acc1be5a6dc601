"""The heads: each takes features [B, H, W, F] and their pooled features [B, 2F].

Their last layers start at zero: a new network has a uniform policy and predicts value 0.
"""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.game import MOVE_OFFSETS, MOVE_PATHS, NUM_SIDES, PLAYS_PER_STONE, SIDE_OFFSETS
from train.network.config import NetworkConfig
from train.network.layers import Playable, keep, shifted
from train.network.slots import POLICY_PLANES

ONE_STEP_MOVES = sum(len(paths[0]) <= 1 for paths in MOVE_PATHS)
"""Moves of at most one step, which are numbered before those of two steps."""
TWO_STEP_PLAYS = NUM_SIDES * (len(MOVE_PATHS) - ONE_STEP_MOVES)
"""Plays of a stone whose moves have two steps, the last of its plays."""


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
    """Numbers for each cell, from its own features and the pooled ones: float32[B, H, W, D]; with
    `hidden` through a layer of that many ReLUs."""

    def __init__(
        self,
        config: NetworkConfig,
        numbers: int,
        *,
        hidden: int = 0,
        dtype: Any,
        rngs: nnx.Rngs,
    ) -> None:
        zeros: dict[str, Any] = {"kernel_init": nnx.initializers.zeros_init()}
        options: dict[str, Any] = {"dtype": dtype, "rngs": rngs}
        by_cell = {"conv_general_dilated": multiply_cells, **options}
        first: dict[str, Any] = {} if hidden else zeros
        width = hidden or numbers
        self.here = nnx.Conv(config.width, width, (1, 1), **by_cell, **first)
        self.everywhere = nnx.Linear(2 * config.width, width, use_bias=False, **options, **first)
        self.last = nnx.Conv(hidden, numbers, (1, 1), **by_cell, **zeros) if hidden else None

    def __call__(self, x: jax.Array, pooled: jax.Array) -> jax.Array:
        numbers = self.here(x) + self.everywhere(pooled)[:, None, None, :]
        if self.last is not None:
            numbers = self.last(nnx.relu(numbers))
        return numbers.astype(jnp.float32)


class PairHead(nnx.Module):
    """A logit for each play from a cell, bilinear in the features there and where the move ends:
    float32[B, H, W, 52], 0 where that is off the board.

    logit(cell, move, wall) is the product of two vectors, start(cell) and end(cell + move, wall).
    """

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        rank = config.destination_rank
        options = {"conv_general_dilated": multiply_cells, "dtype": dtype, "rngs": rngs}
        self.start = nnx.Conv(
            config.width, rank, (1, 1), kernel_init=nnx.initializers.zeros_init(), **options
        )
        # Without a bias the numbers of cells that are not playable, whose features are 0, are 0.
        self.end = nnx.Conv(config.width, NUM_SIDES * rank, (1, 1), use_bias=False, **options)

    def __call__(self, x: jax.Array, pooled: jax.Array) -> jax.Array:
        del pooled
        boards, height, width, _ = x.shape
        rank, cells = self.start.out_features, height * width
        start = self.start(x).reshape(boards, cells, rank)
        end = self.end(x).reshape(boards, cells, rank, NUM_SIDES)
        # All pairs of cells in one product: sums of shifted products take longer, above all to
        # compile.
        products = jnp.einsum("bcr,bers->bces", start, end)
        ends, is_on_board = _make_ends(height, width)
        plays = products[:, np.arange(cells)[:, None], ends]  # [B, H W, 13, 4]
        plays = jnp.where(is_on_board[None, :, :, None], plays, 0)
        return plays.reshape(boards, height, width, PLAYS_PER_STONE).astype(jnp.float32)


def _make_ends(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The cell where each move from each cell ends, int[H W, 13], and bool[H W, 13], whether that
    is on the board; else the cell is 0."""
    rows, columns = np.divmod(np.arange(height * width)[:, None], width)
    down, across = np.array(MOVE_OFFSETS).T
    rows, columns = rows + down, columns + across
    is_on_board = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.where(is_on_board, rows * width + columns, 0), is_on_board


def path_plays(between: jax.Array, gates: jax.Array) -> jax.Array:
    """float32[B, H, W, 52]: logits of plays from the cells that their moves pass on the way.

    logit(cell, move, wall) is the sum of between(cell on the way, move, wall) over the ways of the
    move that are open; a diagonal has two ways. Moves of fewer than two steps pass no cell: 0.

    Args:
      between: float32[B, H, W, 32], for each play of two steps, in their order.
      gates: [B, H, W, 4] of 0 and 1, closed by stones, too: see `train.network.walls.wall_gates`.
    """
    chex.assert_shape(between, (*gates.shape[:3], TWO_STEP_PLAYS))
    chex.assert_axis_dimension(gates, 3, NUM_SIDES)
    plays = [jnp.zeros((*between.shape[:3], NUM_SIDES * ONE_STEP_MOVES), between.dtype)]
    for index, paths in enumerate(MOVE_PATHS[ONE_STEP_MOVES:]):
        logits = between[..., NUM_SIDES * index : NUM_SIDES * (index + 1)]
        ways = [
            gates[..., first, None]
            * shifted(logits * gates[..., second, None], SIDE_OFFSETS[first])
            for first, second in paths
        ]
        plays.append(functools.reduce(jnp.add, ways))
    return jnp.concatenate(plays, axis=-1)


def add_plays(policy: jax.Array, *plays: jax.Array) -> jax.Array:
    """float32[B, H, W, 53]: policy logits plus those of plays, in parts of float32[B, H, W, 52];
    placements stay."""
    placements = jnp.zeros_like(policy[..., PLAYS_PER_STONE:])
    return policy + jnp.concatenate([*plays, placements], axis=-1)


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
    return add_plays(policy, *ends)


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
