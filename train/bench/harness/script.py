"""Starts a script of the bench: reads its options, reports bad input in one line."""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import read

EXIT_USAGE = 2


def run_script(
    main: Callable[..., None],
    options: type,
    *,
    name: str,
    takes_keys: bool = False,
    arguments: Sequence[str] | None = None,
) -> None:
    """Call `main` with the options that the command line gives; exit with 2 on bad input.

    Args:
      options: a dataclass; its docstrings are the help.
      name: of the script, as `python -m train.bench.scripts.NAME` calls it.
      takes_keys: `main` also takes the words that are no options, which change keys of a run's
        config (`train.config.change_config`); else they are refused.
      arguments: words after the program; those of the process by default.
    """
    program = f"python -m train.bench.scripts.{name}"
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        found, unknown = read(options, words, program=program, is_open_ended=takes_keys)
        main(found, *([unknown] if takes_keys else []))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None


def check_positive(options: Any, *names: str) -> None:
    """Refuse options, numbers or tuples of numbers, of which one is not above 0 or not finite.

    Raises:
      UsageError: which.
    """
    for name in names:
        given = getattr(options, name)
        for number in given if isinstance(given, tuple) else (given,):
            if not 0 < number < math.inf:
                raise UsageError(f"--{name} ({number}) must be above 0")
