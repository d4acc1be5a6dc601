"""ResTNet: residual and Transformer blocks over the cells, with heads that fit any board size.

After Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", the sections on its architecture: R blocks are AlphaZero's, T blocks see the cells as
tokens in row-major order, with a learned bias for each relative position. This file alone knows
flax; the rest of the package sees a `Network` of plain functions over trees of arrays.

B boards, H W cells, C planes, F features, A slots.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.blocks import RESIDUAL, parse_blocks
from wallgo_jax.board.geometry import MAX_GRID, PLAYS_PER_STONE
from wallgo_jax.game import actions
from wallgo_jax.game.state import State
from wallgo_jax.observation import Channel

POLICY_PLANES = PLAYS_PER_STONE + 1
BIAS_SPAN = 2 * MAX_GRID - 1
MASKED = jnp.finfo(jnp.float32).min
"""Logit of an illegal slot: finite, so that a softmax with nothing legal stays finite."""


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Shape of the network.

    Attributes:
      blocks: the trunk, such as `R`, `2R1T` or `R3(RRT)`.
      width: features of the trunk.
      heads: attention heads of a T block.
      mlp_ratio: hidden width of a T block's MLP over `width`.
      value_width: hidden width of the value head.
      planes: feature planes shown to it: B, BT, BTR or BTRH.
      mover_first: show the mover's planes before the other's instead of Red's before Blue's.
      dtype: compute type, `float32` or `bfloat16`; `auto` is bfloat16 on accelerators, float32 on
        CPU. Parameters are always float32.
    """

    blocks: str = "R"
    width: int = 32
    heads: int = 4
    mlp_ratio: float = 2.0
    value_width: int = 64
    planes: str = "BTR"
    mover_first: bool = True
    dtype: str = "auto"

    def __post_init__(self) -> None:
        blocks = parse_blocks(self.blocks)
        if self.width < 1 or self.heads < 1 or self.value_width < 1 or self.mlp_ratio <= 0:
            raise ValueError("width, heads, value_width and mlp_ratio must be positive")
        if blocks.strip(RESIDUAL) and self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise ValueError(f"dtype {self.dtype!r} is not one of auto, float32, bfloat16")


class Variables(NamedTuple):
    """All that a network has learned."""

    params: Any  # tree of float32
    batch_stats: Any  # tree of float32, running statistics of the normalisations


class Output(NamedTuple):
    """What the heads say of a batch."""

    policy: jax.Array  # float32[B, H, W, 53] logits: 52 plays from a cell, then a placement on it
    value: jax.Array  # float32[B] in [-1, 1], expected reward of the player to move


class Network(NamedTuple):
    """A network as functions, closed over its static shape."""

    init: Callable[[jax.Array], Variables]
    shapes: Variables
    """Shapes and types of the variables, without values."""
    evaluate: Callable[[Variables, jax.Array], Output]
    """Running statistics: search and play. (variables, bool[B, H, W, C]) -> Output."""
    evaluate_batch: Callable[[Variables, jax.Array], tuple[Output, Any]]
    """Batch statistics: learning. Also returns the new running statistics."""


def make_network(config: NetworkConfig, channels: tuple[Channel, ...]) -> Network:
    """Build the functions of a network that reads the given channels of two players."""

    def build(rngs: nnx.Rngs) -> ResTNet:
        return ResTNet(config, channels, rngs=rngs)

    def init(key: jax.Array) -> Variables:
        _, params, stats = nnx.split(build(nnx.Rngs(key)), nnx.Param, nnx.BatchStat)
        return Variables(nnx.to_pure_dict(params), nnx.to_pure_dict(stats))

    abstract = nnx.eval_shape(lambda: build(nnx.Rngs(0)))
    abstract.eval()
    graph, params_like, stats_like = nnx.split(abstract, nnx.Param, nnx.BatchStat)
    abstract.train()
    learning_graph = nnx.split(abstract, nnx.Param, nnx.BatchStat)[0]

    def merge(graphdef: Any, variables: Variables) -> ResTNet:
        params, stats = jax.tree.map(lambda x: x, (params_like, stats_like))
        nnx.replace_by_pure_dict(params, variables.params)
        nnx.replace_by_pure_dict(stats, variables.batch_stats)
        return nnx.merge(graphdef, params, stats)

    def evaluate(variables: Variables, planes: jax.Array) -> Output:
        chex.assert_shape(planes, (None, None, None, len(channels)))
        return merge(graph, variables)(planes)

    def evaluate_batch(variables: Variables, planes: jax.Array) -> tuple[Output, Any]:
        chex.assert_shape(planes, (None, None, None, len(channels)))
        model = merge(learning_graph, variables)
        output = model(planes)
        return output, nnx.to_pure_dict(nnx.state(model, nnx.BatchStat))

    shapes = jax.eval_shape(init, jax.random.key(0))
    return Network(init, shapes, evaluate, evaluate_batch)


def count_parameters(variables: Variables) -> int:
    """Learned numbers, running statistics aside."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(variables.params))


def slot_logits(policy: jax.Array, state: State) -> jax.Array:
    """float32[A] logits of one board's slots from its policy planes, MASKED where illegal.

    The 52 plays are gathered at the mover's stones; in setup the last plane is read cell by cell.

    Args:
      policy: float32[grid, grid, 53].
    """
    grid = policy.shape[0]
    flat = policy.reshape(grid * grid, POLICY_PLANES)
    cells = actions.own_cells(state.position)
    slots = actions.num_slots(cells.shape[0], grid=grid)
    play = flat[jnp.maximum(cells, 0), :PLAYS_PER_STONE].reshape(-1)
    place = flat[:, PLAYS_PER_STONE]
    play, place = (jnp.pad(x, (0, slots - x.shape[0])) for x in (play, place))
    logits = jnp.where(actions.in_setup(*state), place, play)
    return jnp.where(actions.legal_slots(state, grid=grid), logits, MASKED)


class ResTNet(nnx.Module):
    """Stem, trunk and heads. bool[B, H, W, C] -> Output.

    The heads' last layers start at zero: a new network knows no preference and calls all even.
    """

    def __init__(
        self, config: NetworkConfig, channels: tuple[Channel, ...], *, rngs: nnx.Rngs
    ) -> None:
        self.dtype = _compute_dtype(config.dtype)
        self.mover_first = config.mover_first
        self.channels = channels
        options = {"dtype": self.dtype, "rngs": rngs}
        self.stem = nnx.Conv(len(channels), config.width, (3, 3), use_bias=False, **options)
        self.stem_norm = nnx.BatchNorm(config.width, **options)
        self.blocks = nnx.List(
            ResidualBlock(config, **options)
            if block == RESIDUAL
            else TransformerBlock(config, **options)
            for block in parse_blocks(config.blocks)
        )
        last = {"kernel_init": nnx.initializers.zeros_init(), **options}
        self.policy = nnx.Conv(config.width, POLICY_PLANES, (1, 1), **last)
        self.policy_pool = nnx.Linear(2 * config.width, POLICY_PLANES, use_bias=False, **last)
        self.value_hidden = nnx.Linear(2 * config.width, config.value_width, **options)
        self.value = nnx.Linear(config.value_width, 1, **last)

    def __call__(self, planes: jax.Array) -> Output:
        playable = playable_cells(planes, self.channels).astype(self.dtype)  # [B, H, W, 1]
        if self.mover_first:
            planes = mover_first(planes, self.channels)
        x = self.stem(planes.astype(self.dtype))
        x = nnx.relu(self.stem_norm(x)) * playable
        for block in self.blocks:
            x = block(x, playable)
        pooled = pool(x, playable)  # [B, 2F]
        policy = self.policy(x) + self.policy_pool(pooled)[:, None, None, :]
        value = self.value(nnx.relu(self.value_hidden(pooled)))[:, 0]
        return Output(policy.astype(jnp.float32), jnp.tanh(value.astype(jnp.float32)))


class ResidualBlock(nnx.Module):
    """AlphaZero's block: conv, norm, ReLU, conv, norm, add, ReLU; convolutions have no bias."""

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        width = config.width
        self.conv1 = nnx.Conv(width, width, (3, 3), use_bias=False, dtype=dtype, rngs=rngs)
        self.norm1 = nnx.BatchNorm(width, dtype=dtype, rngs=rngs)
        self.conv2 = nnx.Conv(width, width, (3, 3), use_bias=False, dtype=dtype, rngs=rngs)
        self.norm2 = nnx.BatchNorm(width, dtype=dtype, rngs=rngs)

    def __call__(self, x: jax.Array, playable: jax.Array) -> jax.Array:
        y = nnx.relu(self.norm1(self.conv1(x))) * playable
        y = self.norm2(self.conv2(y))
        return nnx.relu(x + y) * playable


class TransformerBlock(nnx.Module):
    """Pre-norm attention over the cells and an MLP, with a bias for each head and offset."""

    def __init__(self, config: NetworkConfig, *, dtype: Any, rngs: nnx.Rngs) -> None:
        width, hidden = config.width, round(config.width * config.mlp_ratio)
        options = {"dtype": dtype, "rngs": rngs}
        self.heads = config.heads
        self.norm1 = nnx.LayerNorm(width, **options)
        self.query_key_value = nnx.Linear(width, 3 * width, **options)
        self.merge_heads = nnx.Linear(width, width, **options)
        self.offset_bias = nnx.Param(jnp.zeros((config.heads, BIAS_SPAN, BIAS_SPAN)))
        self.norm2 = nnx.LayerNorm(width, **options)
        self.expand = nnx.Linear(width, hidden, **options)
        self.contract = nnx.Linear(hidden, width, **options)

    def __call__(self, x: jax.Array, playable: jax.Array) -> jax.Array:
        batch, height, width, features = x.shape
        tokens = x.reshape(batch, height * width, features)
        seen = playable.reshape(batch, 1, 1, height * width)
        tokens = tokens + self._attend(self.norm1(tokens), seen, (height, width))
        tokens = tokens + self.contract(nnx.gelu(self.expand(self.norm2(tokens))))
        return tokens.reshape(x.shape) * playable

    def _attend(self, tokens: jax.Array, seen: jax.Array, shape: tuple[int, int]) -> jax.Array:
        batch, cells, features = tokens.shape
        split = self.query_key_value(tokens).reshape(batch, cells, 3, self.heads, -1)
        query, key, value = split[:, :, 0], split[:, :, 1], split[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(features // self.heads)
        scores = scores.astype(jnp.float32) + self._bias(shape)[None]
        weights = jax.nn.softmax(jnp.where(seen > 0, scores, MASKED), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights.astype(tokens.dtype), value)
        return self.merge_heads(mixed.reshape(batch, cells, features))

    def _bias(self, shape: tuple[int, int]) -> jax.Array:
        """float32[heads, cells, cells], gathered by (row, column) offset between two cells."""
        rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
        down = rows[None, :] - rows[:, None] + MAX_GRID - 1
        across = columns[None, :] - columns[:, None] + MAX_GRID - 1
        return self.offset_bias[...][:, down, across]


def playable_cells(planes: jax.Array, channels: tuple[Channel, ...]) -> jax.Array:
    """[B, H, W, 1] of 0 and 1: the plane of playable cells, or ones where it is not shown."""
    shown = Channel("playable")
    if shown not in channels:
        return jnp.ones((*planes.shape[:3], 1), jnp.float32)
    index = channels.index(shown)
    return planes[..., index : index + 1].astype(jnp.float32)


def mover_first(planes: jax.Array, channels: tuple[Channel, ...]) -> jax.Array:
    """Planes with the colours exchanged on the boards where player 1 is to move."""
    blue_to_move = planes[..., channels.index(Channel("turn", 1))].any(axis=(1, 2))
    other = {0: 1, 1: 0, None: None}
    order = [channels.index(c._replace(player=other[c.player])) for c in channels]
    return jnp.where(blue_to_move[:, None, None, None], planes[..., np.array(order)], planes)


def pool(x: jax.Array, playable: jax.Array) -> jax.Array:
    """[B, 2F]: mean and maximum over the playable cells."""
    mean = (x * playable).sum(axis=(1, 2)) / playable.sum(axis=(1, 2))
    largest = jnp.where(playable > 0, x, -jnp.inf).max(axis=(1, 2))
    return jnp.concatenate([mean, largest], axis=-1).astype(x.dtype)


def _compute_dtype(name: str) -> Any:
    if name == "auto":
        return jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    return jnp.dtype(name)
