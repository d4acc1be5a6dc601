"""Reads the words of a command line and runs the command."""

import os
import sys
from collections.abc import Sequence

from wallgo_jax.cli.commands import Convert, Replay, Show
from wallgo_jax.cli.parsing import (
    Program,
    flushed_output,
    open_missing_streams,
    parse,
    program_name,
)
from wallgo_jax.formats.option_names import in_options

_COMMANDS = {"show": Show, "replay": Replay, "convert": Convert}
PROGRAM = Program(
    name="python -m wallgo_jax",
    description="WallGo positions and games.",
    groups={"commands": _COMMANDS},
    examples_of={name: command.EXAMPLES for name, command in _COMMANDS.items()},
    examples=(
        "show wallzero-4stone",
        "replay games.jsonl --watch",
        "convert games.jsonl --to moves",
    ),
)
BAD_INPUT = 2
"""Exit status after standard error has said what is wrong."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as of a shell's commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    program = PROGRAM._replace(name=program_name("wallgo_jax", "wallgo"))
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with flushed_output():
            command, _ = parse(program, words)
            from rich.console import Console

            command.run(Console(soft_wrap=True))
    except BrokenPipeError:
        # The reader has enough; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SystemExit as stop:  # a help page, or a report of tyro
        return BAD_INPUT if stop.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    return 0


def program() -> None:
    """Run the process's command and leave with its exit status."""
    open_missing_streams()
    sys.exit(main())


def _refuse(message: str) -> int:
    print(f"error: {in_options(message)}", file=sys.stderr)
    return BAD_INPUT
