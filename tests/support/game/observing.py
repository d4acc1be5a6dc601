"""The engine's planes of many positions, by one program per shape and plane set."""

import functools
from collections.abc import Callable

import jax
import numpy as np

from wallgo_jax import observation
from wallgo_jax.game.state import State

CHUNK = 256


@functools.cache
def _program(planes: str) -> Callable[[State], jax.Array]:
    observe = functools.partial(observation.observe, planes=planes, has_playable=True)
    return jax.jit(jax.vmap(observe))


def observed(states: State, planes: str) -> np.ndarray:
    """bool[..., grid, grid, C]: planes of NumPy states [...], the playable cells last."""
    shape = states.position.ply.shape
    count = int(np.prod(shape))
    places = np.arange(-(-count // CHUNK) * CHUNK) % count
    flat = jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[len(shape) :]), states)
    found = [
        np.asarray(_program(planes)(jax.tree.map(lambda leaf, chunk=chunk: leaf[chunk], flat)))
        for chunk in np.split(places, len(places) // CHUNK)
    ]
    seen = np.concatenate(found)[:count]
    return seen.reshape(*shape, *seen.shape[1:])
