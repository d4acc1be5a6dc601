"""What tests of checkpoints share: runs of random bits, exact comparison."""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.learner import tiny
from tests.support.learner.loop import Loop
from train.config import config_to_dict
from train.loop.programs import TrainState

CONFIG = config_to_dict(tiny.config("--checkpoint.keep=2", "--checkpoint.keep_best=0"))


def scrambled(tree: Any, seed: int) -> Any:
    """The tree with random bits in every leaf: NaN, denormal and extreme numbers among them."""
    rng = np.random.default_rng(seed)

    def fill(leaf: jax.Array) -> jax.Array:
        if leaf.dtype == jnp.bool_:
            return jax.device_put(rng.random(leaf.shape) < 0.5)
        bits = rng.bytes(int(np.prod(leaf.shape)) * leaf.dtype.itemsize)
        return jax.device_put(np.frombuffer(bits, leaf.dtype).reshape(leaf.shape))

    return jax.tree.map(fill, tree)


def assert_same_bits(found: Any, expected: Any) -> None:
    """Equal structure, types and bytes."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def steps(directory: Path, kind: str) -> list[int]:
    """The iterations that are on disk."""
    return sorted(int(entry.name) for entry in (directory / kind).iterdir())


@functools.cache
def new_run() -> TrainState:
    """Zeros of the shapes and types of a run."""
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), Loop(tiny.config()).like)
