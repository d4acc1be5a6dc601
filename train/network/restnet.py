"""The whole network, from planes to the outputs of the heads, as plain functions."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.game import NUM_SIDES, Channel, orders_by_side
from train.network.config import RESIDUAL, TRANSFORMER, WALLED, NetworkConfig, parse_blocks
from train.network.heads import (
    BoardHead,
    CellHead,
    add_destinations,
    expected_rewards,
    num_values,
    pool,
)
from train.network.layers import Board, Playable, ResidualBlock, Stem, TransformerBlock, store
from train.network.slots import POLICY_PLANES
from train.network.walls import WalledBlock, wall_gates
from train.runtime.devices import backend

BLOCKS = {RESIDUAL: ResidualBlock, TRANSFORMER: TransformerBlock, WALLED: WalledBlock}
"""The module of each letter of a block string."""


class Variables(NamedTuple):
    """The arrays that a network has learned."""

    params: Any  # tree of float32
    batch_stats: Any  # tree of float32, running statistics; empty without batch norm


class Output(NamedTuple):
    """Outputs of the heads for a batch; None where the config has no such head.

    Players are numbered in order of turn, from the player to move.

    Attributes:
      policy: float32[B, H, W, 53] logits: 52 plays from a cell, then a placement on it.
      value: float32[B, P] in [-1, 1], expected reward of each player.
      result: float32[B, P + 1] logits of each player's win and of a draw.
      ownership: float32[B, H, W, P + 1] logits of owners, nobody last.
      margin: float32[B] lead of the mover over the best other, in boards.
      reply: float32[B, H, W, 53] logits of the next ply, as `policy`.
    """

    policy: jax.Array
    value: jax.Array
    result: jax.Array | None
    ownership: jax.Array | None
    margin: jax.Array | None
    reply: jax.Array | None


class Network(NamedTuple):
    """A network as functions that hold its static shape. Planes are bool[B, H, W, C]."""

    init: Callable[[jax.Array], Variables]
    shapes: Variables
    """Shapes and types of the variables, without values."""
    evaluate: Callable[[Variables, jax.Array], Output]
    """Uses running statistics: for search and play."""
    evaluate_batch: Callable[[Variables, jax.Array], tuple[Output, Any]]
    """Uses batch statistics: for learning. Also returns the new running statistics."""
    features: Callable[[Variables, jax.Array], jax.Array]
    """Output of the trunk, float32[B, H, W, F]; uses running statistics."""
    attention: Callable[[Variables, jax.Array], jax.Array]
    """float32[B, T, heads, H W, H W]: in each T block, the weight of each cell (last axis, of sum
    1) in each cell (second to last axis); uses running statistics."""


def make_network(config: NetworkConfig, channels: tuple[Channel, ...]) -> Network:
    """Build the functions of a network for the given channels of planes."""

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

    def merge(graphdef: Any, variables: Variables, planes: jax.Array) -> ResTNet:
        chex.assert_shape(planes, (None, None, None, len(channels)))
        chex.assert_type(planes, bool)
        # Replacing happens in place, so each call gets a tree of its own.
        params, stats = jax.tree.map(lambda x: x, (params_like, stats_like))
        nnx.replace_by_pure_dict(params, variables.params)
        nnx.replace_by_pure_dict(stats, variables.batch_stats)
        return nnx.merge(graphdef, params, stats)

    def evaluate(variables: Variables, planes: jax.Array) -> Output:
        return merge(graph, variables, planes)(planes)

    def evaluate_batch(variables: Variables, planes: jax.Array) -> tuple[Output, Any]:
        model = merge(learning_graph, variables, planes)
        output = model(planes)
        return output, nnx.to_pure_dict(nnx.state(model, nnx.BatchStat))

    def features(variables: Variables, planes: jax.Array) -> jax.Array:
        return merge(graph, variables, planes).trunk(planes)[0].astype(jnp.float32)

    def attention(variables: Variables, planes: jax.Array) -> jax.Array:
        return merge(graph, variables, planes).attention(planes)

    shapes = jax.eval_shape(init, jax.random.key(0))
    return Network(init, shapes, evaluate, evaluate_batch, features, attention)


class ResTNet(nnx.Module):
    """Stem, trunk and heads. bool[B, H, W, C] -> Output."""

    def __init__(
        self, config: NetworkConfig, channels: tuple[Channel, ...], *, rngs: nnx.Rngs
    ) -> None:
        self.dtype = compute_dtype(config.dtype)
        self.deterministic = False  # flax's word for evaluation, which `eval` and `train` set
        self.mover_first = config.mover_first
        self.channels = channels
        self.players = num_players(channels)
        self.value_kind = config.value
        options = {"dtype": self.dtype, "rngs": rngs}
        self.stem = Stem(config, len(channels), **options)
        self.letters = parse_blocks(config.blocks)
        self.blocks = nnx.List(BLOCKS[letter](config, **options) for letter in self.letters)
        owners = self.players + 1
        self.policy = CellHead(config, POLICY_PLANES, **options)
        self.value = BoardHead(config, num_values(config.value, self.players), **options)
        self.ownership = CellHead(config, owners, **options) if config.ownership else None
        self.margin = BoardHead(config, 1, **options) if config.margin else None
        self.reply = CellHead(config, POLICY_PLANES, **options) if config.reply else None
        has_head = config.destination_head
        self.destination = CellHead(config, NUM_SIDES, **options) if has_head else None

    def __call__(self, planes: jax.Array) -> Output:
        x, playable = self.trunk(planes)
        pooled = pool(x, playable)
        outputs = {name: head(x, pooled) for name, head in self.heads().items()}
        policy = outputs["policy"]
        if "destination" in outputs:
            policy = add_destinations(policy, outputs["destination"], playable)
        return Output(
            policy=policy,
            value=expected_rewards(outputs["value"], self.value_kind, self.players),
            result=outputs["value"] if self.value_kind == "wdl" else None,
            ownership=outputs.get("ownership"),
            margin=outputs["margin"][:, 0] if "margin" in outputs else None,
            reply=outputs.get("reply"),
        )

    def trunk(self, planes: jax.Array) -> tuple[jax.Array, Playable]:
        """Features [B, H, W, F], and the playable cells (see `train.network.layers`)."""
        x, board = self._open(planes)
        for block in self.blocks:
            x = block(x, board)
            x = store(x) if self.deterministic else x
        return x, board.playable

    def attention(self, planes: jax.Array) -> jax.Array:
        """float32[B, T, heads, H W, H W]: see `Network.attention`."""
        x, board = self._open(planes)
        maps = []
        for block in self.blocks:
            if isinstance(block, TransformerBlock):
                x, weights = block.attend(x, board)
                maps.append(weights)
            else:
                x = block(x, board)
        return jnp.stack(maps, axis=1)

    def heads(self) -> dict[str, Any]:
        """The heads that the config has, by their names in `Output`; `destination` is added to the
        policy."""
        heads = {
            "policy": self.policy,
            "value": self.value,
            "ownership": self.ownership,
            "margin": self.margin,
            "reply": self.reply,
            "destination": self.destination,
        }
        return {name: head for name, head in heads.items() if head is not None}

    def named_blocks(self) -> Iterator[tuple[str, nnx.Module]]:
        """The blocks, each with its letter."""
        yield from zip(self.letters, self.blocks, strict=True)

    def _open(self, planes: jax.Array) -> tuple[jax.Array, Board]:
        """The stem's features, and what the blocks read of the boards."""
        playable = playable_cells(planes, self.channels, dtype=self.dtype)
        gates = None
        if WALLED in self.letters:
            gates = wall_gates(planes, self.channels, playable, dtype=self.dtype)
        if self.mover_first:
            planes = mover_first(planes, self.channels)
        return self.stem(planes.astype(self.dtype), playable), Board(playable, gates)


def cast_weights(variables: Variables, config: NetworkConfig) -> Variables:
    """Cast the weights of convolutions and matrix products to the compute type of a network.

    `Network.evaluate` casts them at each call. A program that evaluates many times casts them once
    and gets the same outputs to the bit. Norms and tables of biases stay float32; so does all of a
    network that computes in float32 or that Python passes.

    Args:
      variables: JAX or NumPy arrays.
      config: of the network.
    """
    dtype = compute_dtype(config.dtype)
    if config.custom or dtype == jnp.float32:
        return variables

    def cast(module: dict[Any, Any]) -> dict[Any, Any]:
        if "kernel" in module:
            return {name: weights.astype(dtype) for name, weights in module.items()}
        return {name: cast(x) if isinstance(x, dict) else x for name, x in module.items()}

    return variables._replace(params=cast(variables.params))


def num_players(channels: tuple[Channel, ...]) -> int:
    """Number of players that the channels show."""
    return sum(channel.kind == "turn" for channel in channels)


def playable_cells(
    planes: jax.Array, channels: tuple[Channel, ...], *, dtype: Any = jnp.float32
) -> Playable:
    """[B, H, W, 1] of 0 and 1, the plane of playable cells; None where no channel shows it."""
    shown = Channel("playable")
    if shown not in channels:
        return None
    index = channels.index(shown)
    return planes[..., index : index + 1].astype(dtype)


def mover_first(planes: jax.Array, channels: tuple[Channel, ...]) -> jax.Array:
    """Planes with the players renumbered in order of turn, so that player 0 is to move."""
    shown, orders = planes, orders_by_side(channels, num_players(channels))
    for mover, order in enumerate(orders[1:], start=1):
        to_move = planes[..., channels.index(Channel("turn", mover))].any(axis=(1, 2))
        shown = jnp.where(to_move[:, None, None, None], planes[..., np.array(order)], shown)
    return shown


def compute_dtype(name: str) -> np.dtype:
    """The compute type that a config's `dtype` names on this device."""
    if name == "auto":
        name = "float32" if backend() == "cpu" else "bfloat16"
    return jnp.dtype(name)
