"""Progress, keys, and errors of one line."""

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax

from train.runtime.dataframes import to_dataframe as to_dataframe
from train.runtime.errors import UsageError
from train.runtime.host import usage_error_message

MAX_SEED = 2**31
OnProgress = Callable[[int], None]


def key_of(what: str, seed: int) -> jax.Array:
    """The random key of a seed.

    Raises:
      UsageError: JAX cannot take it.
    """
    check_whole(what, seed=seed)
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"{what}: seed ({seed}) must be from 0 to {MAX_SEED - 1}")
    return jax.random.key(seed)


def check_whole(what: str, **numbers: Any) -> None:
    """Refuse numbers that are not whole ones with a UsageError."""
    for name, number in numbers.items():
        try:
            operator.index(number)
        except TypeError:
            raise UsageError(f"{what}: {name} ({number!r}) must be a whole number") from None


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


@contextlib.contextmanager
def progress_bar(title: str, total: int, *, is_shown: bool) -> Iterator[OnProgress]:
    """A bar of rich, on a terminal or in a notebook; call what is yielded with the parts done."""
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=not is_shown) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
