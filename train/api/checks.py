"""Checks of what calls are given, and errors of one line."""

import contextlib
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from train.runtime.dataframes import to_dataframe as to_dataframe
from train.runtime.errors import UsageError
from train.runtime.host import usage_error_message

MAX_SEED = 2**31 - 1


def key_of(what: str, seed: int) -> jax.Array:
    """The random key of a seed.

    Raises:
      UsageError: JAX cannot take it.
    """
    check_whole(what, 0, MAX_SEED, seed=seed)
    return jax.random.key(seed)


def check_whole(
    what: str, least: float = -math.inf, most: float = math.inf, /, **numbers: Any
) -> None:
    """Refuse numbers that are not whole, or outside of a range, with a UsageError."""
    for name, number in numbers.items():
        try:
            operator.index(number)
        except TypeError:
            raise UsageError(f"{what}: {name} ({number!r}) must be a whole number") from None
        if not least <= number <= most:
            allowed = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise UsageError(f"{what}: {name} ({number}) must be {allowed}")


def check_list(what: str, players: Any, least: int) -> None:
    """Refuse what is no list of at least this many players with a UsageError."""
    if isinstance(players, str) or not isinstance(players, Sequence):
        raise UsageError(f"{what}: players must be a list, not {players!r}")
    if len(players) < least:
        raise UsageError(f"{what}: {len(players)} players are too few")


@contextlib.contextmanager
def callback_errors() -> Iterator[None]:
    """Raise a UsageError of a host callback, which a program wraps, as itself."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        message = usage_error_message(error)
        if message is None:
            raise
        raise UsageError(message) from None
