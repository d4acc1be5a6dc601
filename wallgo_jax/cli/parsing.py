"""Command lines read by tyro, with one clear line for what is wrong in place of a boxed report."""

import contextlib
import dataclasses
import difflib
import io
import os
import re
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from wallgo_jax._version import __version__
from wallgo_jax.cli import help_page

# Rows from which a box only gives advice, and the words that end it.
_ADVICE = ("Argument helptext", "For full helptext", "Got errors")
_HELP = ("-h", "--help")
_PLAIN_WORDS = (
    (
        r"Error parsing (\S+): invalid literal for int\(\) .*?: (.*)",
        r"\1: \2 is not a whole number",
    ),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"\1: \2 is not a number"),
    (
        r"Error parsing (\S+): no type matching \{None\}\|(?:FLOAT|INT) could .* \[(.*)\]",
        r"\1: \2 is not a number",
    ),
    (r"Missing value for argument '(--\S+)'\. Expected 1 values", r"\1 has no value"),
    (r"Missing value for argument '\w+'\. Expected 1 values", "an argument is missing"),
    (r"\.? \(required\)", ""),
)

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
"""An option without a value; its help page does not say that it is off unless it is given."""


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


@contextlib.contextmanager
def flushed_output() -> Iterator[None]:
    """Write what is printed out at the end, also of a help page, rather than when Python exits.

    Raises:
      BrokenPipeError: the reader has left, as `head` does.
    """
    try:
        yield
    finally:
        sys.stdout.flush()


def open_missing_streams() -> None:
    """Open the null device in place of each standard stream that the process was started without,
    as after `>&-`; and let no character end a command that the output's encoding lacks."""
    # In the order of their numbers: a file takes the lowest number that is free.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


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
    if words and words[0] == "help":
        words = [*words[1:2], "--help"]
    first = words[0] if words else ""
    if "--version" in words[:2]:
        print(_version())
        raise SystemExit(0)
    if first in _HELP:
        groups = {
            title: {name: _first_sentence(commands[name]) for name in names}
            for title, names in program.groups.items()
        }
        help_page.print_program(program.name, program.description, groups, program.examples)
        raise SystemExit(0)
    if first not in commands:
        raise ValueError(_unknown_command(program, first, list(commands)))
    try:
        return read(program.commands, words, program=program.name, command=first)
    except SystemExit:
        help_page.print_examples(program.name, getattr(commands[first], "EXAMPLES", ()))
        raise


def read(
    options: Any, words: Sequence[str], *, program: str, command: str = ""
) -> tuple[Any, list[str]]:
    """The options that the words give, and the words that are none of them.

    `--help` prints the options' help and leaves by SystemExit(0).

    Args:
      options: a dataclass, or a union of them, with tyro's annotations.
      words: the command line without the program.
      program: what the user types before the words.
      command: the first word, if it chooses a command.

    Raises:
      ValueError: in one line, what is missing or cannot be read, and what is allowed.
    """
    report, page = io.StringIO(), help_page.Page()
    try:
        with contextlib.redirect_stderr(report), contextlib.redirect_stdout(page):
            return tyro.cli(
                options,
                prog=program,
                args=list(words),
                return_unknown_args=True,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if not stop.code:
            print(help_page.wrapped(page.getvalue()))
            raise
        asked = f"{program} {command}".rstrip()
        raise ValueError(f"{_in_one_line(report.getvalue())}; see {asked} --help") from None


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


def _first_sentence(command: type) -> str:
    return " ".join((command.__doc__ or "").split()).partition(". ")[0].rstrip(".")


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
    return _in_plain_words(text.strip(" ;.").replace(" ;", ";").replace(".;", ";"))


def _in_plain_words(sentence: str) -> str:
    """What is wrong, without the names of Python's types and of the program's own fields."""
    for pattern, plain in _PLAIN_WORDS:
        sentence = re.sub(pattern, plain, sentence)
    return sentence
