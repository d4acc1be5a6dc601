"""`python -m wallgo_jax show|replay|convert`: positions and games on the command line."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence

import tyro
from rich.console import Console

from wallgo_jax.cli.commands import Convert, Replay, Show

_PROGRAM = "python -m wallgo_jax"
BAD_INPUT = 2
"""Exit status after one line on standard error that says what is wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    try:
        command = _parse(sys.argv[1:] if arguments is None else arguments)
        command.run(Console(soft_wrap=True))
    except BrokenPipeError:
        # The reader has enough; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    return 0


def _refuse(message: str) -> int:
    print(f"wallgo_jax: {message}", file=sys.stderr)
    return BAD_INPUT


def _parse(arguments: Sequence[str]) -> Show | Replay | Convert:
    """Parse the command; a ValueError carries tyro's boxed complaint as one line."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Show | Replay | Convert,
                prog=_PROGRAM,
                description="WallGo positions and games: show, replay, convert.",
                args=list(arguments),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ValueError(_one_line(complaint.getvalue())) from None


def _one_line(boxed: str) -> str:
    """Return the sentences of a box, up to its advice to read the help."""
    rows = [line.strip("│| ") for line in boxed.splitlines()[1:-1]]
    said = ""
    for row in rows:
        if row.startswith(("For full helptext", "Argument helptext", "Got errors")):
            break
        said += "; " if not row.strip("─-") else f" {row}"
    return f"{' '.join(said.split()).replace(' ;', ';').strip('.; ')}; see {_PROGRAM} --help"


if __name__ == "__main__":
    sys.exit(main())
