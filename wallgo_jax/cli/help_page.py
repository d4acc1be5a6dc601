"""Help pages: a program's own, with its commands by groups, and what tyro writes, made to fit."""

import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence

_TIE = "\0"


def print_program(
    program: str, description: str, groups: Mapping[str, Mapping[str, str]], examples: Sequence[str]
) -> None:
    """Print a program's own help page.

    Args:
      program: what users type before a command.
      description: what it is for.
      groups: by title, what each command of a group does.
      examples: lines to type after the program's name.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for title, commands in groups.items():
        table.add_row(Text(f"\n{title}", style="bold"))
        for name, meaning in commands.items():
            table.add_row(f"  {name}", Text(meaning, style="dim"))
    table.add_row(Text("\noptions", style="bold"))
    for option, meaning in (
        ("-h, --help", "show this page; after a command, that command's"),
        ("--version", "show the versions of the project, jax and Python"),
    ):
        table.add_row(f"  {option}", Text(meaning, style="dim"))
    console = Console(highlight=False, width=min(_width(), 100))
    console.print(f"usage: {program} COMMAND ...\n\n{description}")
    console.print(table)
    print_examples(program, examples)


def print_examples(program: str, examples: Sequence[str]) -> None:
    """Print lines to type; long ones go on after a backslash, as a shell takes them."""
    if examples:
        print("\nexamples:")
    for example in examples:
        line = f"{program} {example}"
        # An option stays beside its value.
        line = re.sub(r"(?<= )(--\S+) (?!-)", rf"\1{_TIE}", line)
        parts = textwrap.wrap(line, _width() - 6, break_on_hyphens=False, break_long_words=False)
        print("  " + " \\\n      ".join(parts).replace(_TIE, " "))


class Page(io.StringIO):
    """A help page that tyro colours and draws as it would on the real standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._out = sys.stdout

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]: StringIO has None there
        return getattr(self._out, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._out.isatty() and not os.environ.get("NO_COLOR")


def wrapped(page: str) -> str:
    """The page with its prose wrapped, which tyro leaves to the terminal."""
    *prose, boxes = page.rstrip("\n").split("\n\n", 2)  # usage, description, options
    wrapped = [
        textwrap.fill(" ".join(part.split()), _width(), break_on_hyphens=False) for part in prose
    ]
    # A help that fills its column and has no default behind it is followed by an empty row.
    boxes = re.sub(r"^│ +│\n", "", boxes, flags=re.MULTILINE)
    return "\n\n".join([*wrapped, boxes])


def _width() -> int:
    return shutil.get_terminal_size().columns
