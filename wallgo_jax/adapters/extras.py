"""One line that says what to install where an adapter's library is missing."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import an adapter's library inside this.

    Raises:
      ImportError: the library is not installed, naming the extra that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"wallgo_jax.adapters.{extra} needs {error.name}: pip install 'wallgo-jax[{extra}]'"
        ) from None
