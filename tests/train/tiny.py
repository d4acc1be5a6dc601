"""The smallest run there is: a 3x3 board with a stone each, a network of width 8."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from train import loop
from train.config import RunConfig, read_config
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Variant, make_variant

RULES = Rules(size=3, stones=1, order=(0, 1))

PATH = Path(__file__).with_name("tiny.toml")


def config(*overrides: str) -> RunConfig:
    """The run, changed by `--some.key value` words."""
    return read_config(PATH, overrides)


shared_programs = functools.cache(loop.make_programs)
"""In place of `loop.make_programs`: runs of one config share what is compiled."""


def variants(rules: Rules, boards: int, *, grid: int | None = None) -> Variant:
    """[B] times the same rules."""
    return jax.tree.map(
        lambda x: jnp.broadcast_to(jnp.asarray(x), (boards, *np.shape(x))),
        make_variant(rules, grid=grid),
    )
