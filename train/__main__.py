"""The command line: `python -m train COMMAND`, or `wallgo-train COMMAND`.

What takes time to import is imported where Ctrl-C is answered.
"""

import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command in this process, as `train.cli.command_line.main` does."""
    from train.cli import command_line

    return command_line.main(arguments)


def program() -> None:
    """Run the process's command and leave with the exit code."""
    try:
        from train.cli import command_line

        command_line.program()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    program()
