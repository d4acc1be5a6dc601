"""A loop that ends by its data on a CPU, and after a fixed number of turns elsewhere."""

import functools
from collections.abc import Callable
from typing import TypeVar

import jax

T = TypeVar("T")

_UNROLLED = 8
"""Turns of a fixed number that are written out, for a compiler to fuse into one kernel."""


def loop_until_done(
    is_unfinished: Callable[[T], jax.Array], body: Callable[[T], T], start: T, *, most: int
) -> T:
    """Repeat `body` while something is unfinished.

    Under `vmap` the loop ends with the slowest board. A CPU looks after each turn whether it has.
    The host of a GPU would have to read that from the device, which takes longer than many turns of
    a few words; there, and on TPUs, the number of turns is fixed.

    Args:
      is_unfinished: carry -> bool[].
      body: carry -> carry; it changes nothing that the caller reads once nothing is unfinished.
      start: the first carry.
      most: turns after which nothing is unfinished, whatever the start.
    """
    return jax.lax.platform_dependent(
        start,
        cpu=functools.partial(jax.lax.while_loop, is_unfinished, body),
        default=functools.partial(repeat, body, most=most),
    )


def repeat(body: Callable[[T], T], start: T, *, most: int) -> T:
    """Repeat `body` a fixed number of times."""

    def turn(carry: T, _: None) -> tuple[T, None]:
        return body(carry), None

    return jax.lax.scan(turn, start, None, length=most, unroll=min(_UNROLLED, most))[0]
