"""Rows of results as tables of pandas, which is optional."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from train.runtime.errors import UsageError

if TYPE_CHECKING:
    import pandas


def to_dataframe(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """A table of pandas with a line for each row.

    Raises:
      UsageError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise UsageError(
            "to_dataframe: needs pandas: pip install 'wallgo-jax[notebooks]'"
        ) from None
    return pandas.DataFrame(list(rows))
