"""What every result of the interface knows: its table, its figures as JSON, its rows and its
picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from train.runtime.display import to_dataframe

if TYPE_CHECKING:
    import pandas


class Result:
    """A result of the interface, which the library returns and the command line shows.

    `table()`, `summary()`, `figure()` and `rows` are those of each kind of result.

    Attributes:
      is_interrupted: a signal ended the work.
      is_passed: what was tested holds; else a command's exit code is 1.
      failure: what ended the work early, after which a command tells it.
      written: files that the call wrote, with what they hold, in words.
      on_stop: message printed after an interrupt.
    """

    on_stop: Any = "the same command starts anew"
    is_passed = True
    is_interrupted: Any = False
    failure: Any = None
    written: Any = ()
    rows: Any
    table: Any
    summary: Any

    def shown(self) -> list[Any]:
        """What the command prints."""
        return [self.table()]

    def to_dataframe(self) -> pandas.DataFrame:
        """`rows` as a table of pandas.

        Raises:
          UsageError: pandas is not installed.
        """
        return to_dataframe(self.rows if isinstance(self.rows, list) else self.rows())
