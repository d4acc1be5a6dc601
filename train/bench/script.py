"""Starts a script of this folder: reads its options, reports bad input in one line."""

import sys
from collections.abc import Callable
from typing import TypeVar

import tyro

from train.runtime.errors import UsageError

EXIT_USAGE = 2
Options = TypeVar("Options")


def run_script(main: Callable[[Options], None], options: type[Options], *, name: str) -> None:
    """Call `main` with the options that the command line gives; exit with 2 on a UsageError.

    Args:
      options: a dataclass; its docstrings are the help.
      name: of the script, as `python -m train.bench.NAME` calls it.
    """
    try:
        main(tyro.cli(options, prog=f"python -m train.bench.{name}"))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
