"""Positions and games on the command line: `python -m wallgo_jax`, or `wallgo`.

What takes time to import is imported where Ctrl-C is answered.
"""

import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    from wallgo_jax.cli import command_line

    return command_line.main(arguments)


def program() -> None:
    """Run the process's command and leave with its exit status."""
    try:
        from wallgo_jax.cli import command_line

        command_line.program()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    program()
