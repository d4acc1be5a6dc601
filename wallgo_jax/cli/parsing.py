"""Command lines read by tyro, with one clear line for what is wrong in place of a boxed report."""

import contextlib
import dataclasses
import difflib
import io
import os
import shutil
import sys
import textwrap
import typing
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from wallgo_jax._version import __version__

# Rows from which a box only gives advice, and the words that end it.
_ADVICE = ("Argument helptext", "For full helptext", "Got errors")
_HELP = ("-h", "--help")


class Program(NamedTuple):
    """A program of several commands.

    Attributes:
      name: what users type before a command.
      description: what it is for, in one sentence.
      commands: a union of dataclasses with tyro's annotations. A class may have `EXAMPLES`, lines
        to type after the program's name.
      groups: names of commands by the title that they stand under in the help page.
      examples: lines to type after the program's name, for the program's own help page.
    """

    name: str
    description: str
    commands: Any
    groups: Mapping[str, Sequence[str]]
    examples: Sequence[str] = ()


def program_name(module: str, script: str) -> str:
    """What users type to start this process's program: its script or `python -m MODULE`."""
    return script if Path(sys.argv[0]).stem == script else f"python -m {module}"


def commands_of(commands: Any) -> dict[str, type]:
    """The commands of a union of dataclasses by the names that users type."""
    found = {}
    for each in typing.get_args(commands):
        kind, *settings = typing.get_args(each) or (each,)
        names = [setting.name for setting in settings if getattr(setting, "name", None)]
        found[names[0] if names else kind.__name__.lower()] = kind
    return found


def parse(program: Program, words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the words choose, and the words that it does not know.

    `--help` and `--version` print and leave by SystemExit(0).

    Args:
      program: its commands.
      words: the command line without the program.

    Raises:
      ValueError: in one line, what is missing or cannot be read, and what is allowed.
    """
    commands = commands_of(program.commands)
    first = words[0] if words else ""
    if first == "--version":
        print(_version())
        raise SystemExit(0)
    if first in _HELP:
        _print_help(program, commands)
        raise SystemExit(0)
    if first not in commands:
        raise ValueError(_unknown_command(program, first, list(commands)))
    report, page = io.StringIO(), _Page()
    try:
        with contextlib.redirect_stderr(report), contextlib.redirect_stdout(page):
            return tyro.cli(
                program.commands,
                prog=program.name,
                description=program.description,
                args=list(words),
                return_unknown_args=True,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            print(_wrapped(page.getvalue()))
            _print_examples(program.name, getattr(commands[first], "EXAMPLES", ()))
            raise
        reason = _in_one_line(report.getvalue())
        raise ValueError(f"{reason}; see {program.name} {first} --help") from None


def refuse_unknown(command: Any, unknown: Sequence[str], *, program: str) -> None:
    """Refuse words that a command, a dataclass, has no option for.

    Raises:
      ValueError: there are some; with the option that is nearest to the first.
    """
    if not unknown:
        return
    near = nearest_option(command, unknown[0])
    hint = f"; did you mean {near}?" if near else ""
    raise ValueError(f"Unrecognized options: {', '.join(unknown)}{hint}; see {program} --help")


def nearest_option(command: Any, word: str, *, also: Sequence[str] = ()) -> str | None:
    """The option of a command, a dataclass, or the one of `also`, that is nearest to a word; None
    if none is near."""
    options = [*also] + [
        f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(command)
    ]
    near = difflib.get_close_matches(word.partition("=")[0], options, n=1)
    return near[0] if near else None


def _version() -> str:
    return (
        f"wallgo-jax {__version__} (jax {metadata.version('jax')}, "
        f"Python {sys.version.partition(' ')[0]})"
    )


def _unknown_command(program: Program, word: str, names: list[str]) -> str:
    near = difflib.get_close_matches(word, names, n=1)
    what = f"unknown command {word!r}" if word else "no command"
    hint = f"; did you mean {near[0]}? Commands" if near else "; commands"
    return f"{what}{hint}: {', '.join(names)}; see {program.name} --help"


def _print_help(program: Program, commands: Mapping[str, type]) -> None:
    """The program's own help page: its commands, by groups, and what they are for."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for title, names in program.groups.items():
        table.add_row(Text(f"\n{title}", style="bold"))
        for name in names:
            table.add_row(f"  {name}", Text(_first_sentence(commands[name]), style="dim"))
    table.add_row(Text("\noptions", style="bold"))
    for option, meaning in (
        ("-h, --help", "show this page; after a command, that command's"),
        ("--version", "show the versions of the project, jax and Python"),
    ):
        table.add_row(f"  {option}", Text(meaning, style="dim"))
    console = Console(highlight=False, width=min(_width(), 100))
    console.print(f"usage: {program.name} COMMAND ...\n\n{program.description}")
    console.print(table)
    _print_examples(program.name, program.examples)


def _first_sentence(command: type) -> str:
    return " ".join((command.__doc__ or "").split()).partition(". ")[0].rstrip(".")


def _print_examples(program: str, examples: Sequence[str]) -> None:
    """Lines to type; long ones go on after a backslash, as a shell takes them."""
    if examples:
        print("\nexamples:")
    for example in examples:
        line = f"{program} {example}"
        parts = textwrap.wrap(line, _width() - 6, break_on_hyphens=False, break_long_words=False)
        print("  " + " \\\n      ".join(parts))


class _Page(io.StringIO):
    """A help page that tyro colours and draws as it would on the real standard output."""

    def __init__(self) -> None:
        super().__init__()
        self._out = sys.stdout

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]: StringIO has None there
        return getattr(self._out, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return self._out.isatty() and not os.environ.get("NO_COLOR")


def _wrapped(page: str) -> str:
    """The page with its prose wrapped, which tyro leaves to the terminal."""
    *prose, boxes = page.rstrip("\n").split("\n\n", 2)  # usage, description, options
    wrapped = [
        textwrap.fill(" ".join(part.split()), _width(), break_on_hyphens=False) for part in prose
    ]
    return "\n\n".join([*wrapped, boxes])


def _width() -> int:
    return shutil.get_terminal_size().columns


def _in_one_line(box: str) -> str:
    """The sentences of a box up to its advice, a semicolon in place of each rule.

    The title stands in the upper border, or, where the terminal cannot draw borders, in a row of
    its own above the first rule.
    """
    rows = [row.strip("│ ") for row in box.strip().splitlines()]
    text = ""
    for row in rows[1:] if rows[0].startswith("╭") else rows[2:]:
        if row.startswith(_ADVICE):
            break
        text += f" {row}" if row.strip("╰╯─-") else ";"
    return text.strip(" ;.").replace(" ;", ";").replace(".;", ";")
