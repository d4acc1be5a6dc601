"""Starts a script of the bench: reads its options, reports bad input in one line."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from train.runtime.errors import UsageError
from wallgo_jax.cli.parsing import read, refuse_unknown

EXIT_USAGE = 2
MAX_SEED = 2**31
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
      name: of the script, as `python -m train.bench.scripts.NAME` calls it.
      arguments: words after the program; those of the process by default.
    """
    with _one_line():
        found, unknown = _read(options, name, arguments)
        _refuse(found, unknown, name)
        main(found)


def run_configured_script(
    main: Callable[[Options, Sequence[str]], None],
    options: type[Options],
    *,
    name: str,
    arguments: Sequence[str] | None = None,
) -> None:
    """As `run_script`; `main` also takes the words that are no options, which change keys of a
    run's config (`train.config.change_config`)."""
    with _one_line():
        main(*_read(options, name, arguments))


def check_least(options: Any, least: int, *names: str) -> None:
    """Refuse options, numbers or tuples of numbers, of which one is below the least.

    Raises:
      UsageError: which.
    """
    for name in names:
        given = getattr(options, name)
        for number in given if isinstance(given, tuple) else (given,):
            if number < least:
                raise UsageError(f"--{name} ({number}) must be at least {least}")


def check_seconds(seconds: float) -> None:
    """Refuse a length of runs that none can have with a UsageError."""
    if not 0 < seconds < math.inf:
        raise UsageError(f"--seconds ({seconds}) must be above 0")


def check_seed(seed: int) -> None:
    """Refuse a seed that JAX cannot take with a UsageError."""
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"--seed ({seed}) must be from 0 to {MAX_SEED - 1}")


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the ValueErrors of settings that are made of options into UsageErrors."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def _read(options: Any, name: str, arguments: Sequence[str] | None) -> tuple[Any, list[str]]:
    """The options that the words give, and the other words."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return read(options, words, program=_program(name))
    except ValueError as error:
        raise UsageError(f"command line: {error}") from None


def _refuse(found: Any, unknown: Sequence[str], name: str) -> None:
    try:
        refuse_unknown(found, unknown, program=_program(name))
    except ValueError as error:
        raise UsageError(f"command line: {error}") from None


def _program(name: str) -> str:
    return f"python -m train.bench.scripts.{name}"


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """Turn bad input into one line and exit code 2."""
    try:
        yield
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
