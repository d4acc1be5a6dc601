"""Starts a script of the bench: reads and checks its options, reports bad input in one line."""

import dataclasses
import sys
from collections.abc import Callable, Sequence

import pydantic

from train.runtime.errors import UsageError, usage_errors
from wallgo_jax.cli.parsing import read

EXIT_USAGE = 2


def run_script(
    main: Callable[..., None],
    options: type,
    *,
    name: str,
    takes_keys: bool = False,
    words: Sequence[str] | None = None,
) -> None:
    """Call `main` with the options that the command line gives; exit with 2 on bad input.

    Args:
      options: a dataclass with pydantic's annotations; its docstrings are the help.
      name: of the script, as `python -m train.bench.NAME` calls it.
      takes_keys: `main` also takes the words that are no options, which change keys of a run's
        config (`train.config.change_config`); else they are refused.
      words: words after the program; those of the process by default.
    """
    program, words = f"python -m train.bench.{name}", sys.argv[1:] if words is None else words
    given, overrides = read(options, words, program=program, is_open_ended=takes_keys)
    try:
        with usage_errors():
            checked = pydantic.TypeAdapter(options).validate_python(dataclasses.asdict(given))
        main(checked, *([overrides] if takes_keys else []))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE) from None
