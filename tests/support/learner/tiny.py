"""The smallest run there is: a 3x3 board with a stone each, a network of width 8."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig, read_config
from train.network import Network, NetworkConfig, Variables
from train.network.build import network_for
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Variant, make_variant

RULES = Rules(size=3, stones=1, order=(0, 1))

PATH = Path(__file__).with_name("tiny.toml")


def config(*overrides: str) -> RunConfig:
    """The run, changed by `--some.key value` words."""
    return read_config(PATH, overrides)


def variants(rules: Rules, boards: int, *, grid: int | None = None) -> Variant:
    """The same rules on every board [B]."""
    return jax.tree.map(
        lambda x: jnp.asarray(np.broadcast_to(x, (boards, *np.shape(x)))),
        make_variant(rules, grid=grid),
    )


def new_weights(network: Network, seed: int = 0) -> Variables:
    """Weights of a new network's size, drawn on the host, since compiling its `init` takes long.
    Unlike there, the heads' last layers are not zero."""
    draw = np.random.default_rng(seed)

    def fill(path: tuple, like: jax.ShapeDtypeStruct) -> jax.Array:
        name = path[-1].key
        if name == "kernel":
            noise = draw.standard_normal(like.shape) / np.sqrt(np.prod(like.shape[:-1]))
            return jnp.asarray(noise.astype(like.dtype))
        return jnp.asarray(np.full(like.shape, name in ("scale", "var"), like.dtype))

    return jax.tree_util.tree_map_with_path(fill, network.shapes)


def random_weights(config: NetworkConfig, players: int = 2, seed: int = 0) -> Variables:
    """Weights and statistics with nothing left at zero or one."""
    shapes = network_for(config, players).shapes
    source = np.random.default_rng(seed)

    def number(like):
        return source.normal(0, 0.5, like.shape).astype(np.float32)

    params = jax.tree.map(number, shapes.params)
    stats = jax.tree.map(lambda like: 0.5 + np.abs(number(like)), shapes.batch_stats)
    return Variables(params, stats)
