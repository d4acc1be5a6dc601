"""The errors that the command line shows as a line instead of a traceback."""

import contextlib
from collections.abc import Iterator


class UsageError(ValueError):
    """An error that the user can fix: one line says what is wrong, where, and what is allowed."""


class NotFiniteError(UsageError):
    """A loss or a gradient is NaN or infinite."""


class ProcessLostError(RuntimeError):
    """Another process of a distributed run has ended; the message is one line."""


def one_line(text: object) -> str:
    """A text or an error on one line."""
    return " ".join(str(text).split())


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the ValueErrors of the package's own checks into UsageErrors of the same line."""
    try:
        yield
    except ValueError as error:
        raise error if isinstance(error, UsageError) else UsageError(str(error)) from None
