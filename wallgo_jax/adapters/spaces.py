"""The two spaces that the gymnax adapter needs, gymnax's own where it is loaded."""

import sys
from typing import Any

import jax
import jax.numpy as jnp

from wallgo_jax.arguments import check_key


class Discrete:
    """The integers 0 to n - 1."""

    def __init__(self, num_categories: int) -> None:
        self.n = num_categories
        self.shape = ()
        self.dtype = jnp.dtype(jnp.int32)

    def __repr__(self) -> str:
        return f"Discrete({self.n})"

    def sample(self, key: jax.Array) -> jax.Array:
        """int32: each as likely as the others."""
        check_key(key, call="space.sample(keys)")
        return jax.random.randint(key, self.shape, 0, self.n, jnp.int32)

    def contains(self, x: jax.Array) -> jax.Array:
        """bool: whether x is one of them."""
        return (jnp.asarray(x) >= 0) & (jnp.asarray(x) < self.n)


class Box:
    """Arrays of one shape between two numbers."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...], dtype: Any) -> None:
        self.low = low
        self.high = high
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Box({self.low}, {self.high}, {self.shape})"

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw each entry uniformly."""
        check_key(key, call="space.sample(keys)")
        low, high = jnp.float32(self.low), jnp.float32(self.high)
        drawn = jax.random.uniform(key, self.shape, jnp.float32, minval=low, maxval=high)
        return drawn.astype(self.dtype)

    def contains(self, x: jax.Array) -> jax.Array:
        """bool: whether every entry lies between the bounds."""
        return jnp.all((x >= self.low) & (x <= self.high))


def discrete(size: int) -> Any:
    """Make a space of the integers 0 to size - 1."""
    return _class("Discrete", Discrete)(size)


def box(shape: tuple[int, ...]) -> Any:
    """Make a space of float32 arrays from 0 to 1."""
    return _class("Box", Box)(0.0, 1.0, shape, jnp.float32)


def _class(name: str, own: Any) -> Any:
    """Return gymnax's class where the program has imported gymnax, whose wrappers ask for it."""
    return getattr(sys.modules.get("gymnax.environments.spaces"), name, own)
