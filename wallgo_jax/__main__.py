"""Positions and games on the command line: `python -m wallgo_jax`, or `wallgo`."""

import os
import sys
from collections.abc import Sequence

from wallgo_jax.cli.commands import Convert, Replay, Show
from wallgo_jax.cli.parsing import parse, refuse_unknown

_PROGRAM = "python -m wallgo_jax"
BAD_INPUT = 2
"""Exit status after one line on standard error that says what is wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    try:
        command, unknown = parse(
            Show | Replay | Convert,
            sys.argv[1:] if arguments is None else arguments,
            program=_PROGRAM,
            description="WallGo positions and games: show, replay, convert.",
        )
        refuse_unknown(command, unknown)
        from rich.console import Console

        command.run(Console(soft_wrap=True))
    except BrokenPipeError:
        # The reader has enough; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    return 0


def program() -> None:
    """Run the process's command and leave with its exit status."""
    sys.exit(main())


def _refuse(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    program()
