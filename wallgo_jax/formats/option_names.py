"""An argument in a message: as Python writes it, and as a command line does."""

import ast
import re
import shlex
from typing import Any

_ARGUMENT = re.compile(r"`(\w+)=(|True|-?\d+|'[^'`]*'|\"[^\"`]*\")`")


def argument(name: str, value: Any = "") -> str:
    """An argument of a call, with its value if there is one: `rules=`, `transfer=True`, `name='x'`,
    between backticks. Errors name arguments so; a command line shows them by `in_options`."""
    return f"`{name}={value if value == '' else repr(value)}`"


def in_options(message: str) -> str:
    """A message with options for the arguments that `argument` wrote: `--rules`, `--name x`."""
    return _ARGUMENT.sub(_option_of, message)


def _option_of(found: re.Match[str]) -> str:
    name, written = found.groups()
    option = f"--{name.replace('_', '-')}"
    value = ast.literal_eval(written) if written else True
    return option if value is True else f"{option} {shlex.quote(str(value))}"
