"""The command line: `python -m train COMMAND`, with a command of `train.cli.commands`."""

import contextlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import jax
import tyro

from train.cli.commands import CONFIGURED, Command, own_options
from train.cli.options import EXIT_INTERRUPTED, EXIT_USAGE
from train.runtime.devices import keep_compiled, use_all_cores
from train.runtime.errors import UsageError
from train.runtime.host import complaint_in


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        command, overrides = _parse(list(sys.argv[1:] if arguments is None else arguments))
        return command.run(overrides)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except jax.errors.JaxRuntimeError as error:
        complaint = complaint_in(error)
        if complaint is None:
            raise
        print(f"error: {complaint}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return EXIT_INTERRUPTED


def _parse(arguments: list[str]) -> tuple[Any, list[str]]:
    """The command, and the words that change keys of the config."""
    overrides: list[str] = []
    if arguments and arguments[0] in CONFIGURED:
        own = own_options(CONFIGURED[arguments[0]])
        arguments, overrides = _set_overrides_apart(arguments, own)
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            command = tyro.cli(
                Command,  # pyright: ignore[reportArgumentType]
                prog="python -m train",
                args=arguments,
            )
    except SystemExit as error:
        if error.code in (0, None):
            raise
        raise UsageError(_in_one_line(complaint.getvalue())) from None
    return command, overrides


def _set_overrides_apart(arguments: list[str], own: set[str]) -> tuple[list[str], list[str]]:
    """The command's own options, and every other option with its value."""
    kept, overrides, rest = [], [], list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word.partition("=")[0] in own:
            kept.append(word)
            continue
        overrides.append(word)
        if "=" not in word and rest:
            overrides.append(rest.pop(0))
    return kept, overrides


def _in_one_line(box: str) -> str:
    """The first part of a boxed complaint. Parts are parted by rules; the title stands in the upper
    border, or, where the terminal has no borders, in a part of its own."""
    parts: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│ ")
        if line.startswith("╭") or not text.strip("─-╰╯"):
            parts.append([])
        else:
            parts[-1].append(text)
    filled = [" ".join(part) for part in parts if part]
    body = filled if "╭" in box else filled[1:]
    return f"command line: {body[0] if body else 'see --help'}"


if __name__ == "__main__":
    use_all_cores()
    keep_compiled()
    sys.exit(main())
