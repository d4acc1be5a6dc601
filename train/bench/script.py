"""Starts a script of this folder: reads its options, reports bad input in one line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import read, refuse_unknown

EXIT_USAGE = 2
Options = TypeVar("Options")


def run_script(
    main: Callable[[Options], None],
    options: type[Options],
    *,
    name: str,
    arguments: Sequence[str] | None = None,
) -> None:
    """Call `main` with the options that the command line gives; exit with 2 on bad input.

    Args:
      options: a dataclass; its docstrings are the help.
      name: of the script, as `python -m train.bench.NAME` calls it.
      arguments: words after the program; those of the process by default.
    """
    try:
        main(_read(options, name, list(sys.argv[1:] if arguments is None else arguments)))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None


def _read(options: Any, name: str, words: list[str]) -> Any:
    try:
        program = f"python -m train.bench.{name}"
        found, unknown = read(options, words, program=program)
        refuse_unknown(found, unknown, program=program)
    except ValueError as error:
        raise UsageError(f"command line: {error}") from None
    return found
